package room

import (
	"bytes"
	"slices"
	"sync"
	"time"

	"github.com/netloop/netloop/internal/fifo"
	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/transport"
)

// reel is the delay buffer: data recorded for the spectator feed that the delayed spectators have
// not been sent yet. The played room's goroutine adds to its end, the goroutine of the spectator
// room takes from its head.
type reel struct {
	delay time.Duration
	most  int    // in bytes: see maxReel
	rouse func() // wakes the spectator room

	mu     sync.Mutex
	shots  fifo.Queue[shot]
	pool   fifo.Pool[shot]
	bytes  int
	newest take // take of the newest shot added
	ended  bool // the last shot has been added
}

// shot holds the data of one tick for the spectator feed.
type shot struct {
	take
	packets, large [][]byte
	messages       []transport.Message
	scale          *loop.Scale       // nil: as in the shot before
	end            *transport.Closed // nil: not the last shot
}

// take identifies the tick of a shot.
type take struct {
	tick  uint64
	at    time.Duration // begin of the tick
	epoch loop.Epoch    // in force at that tick
}

// maxReel limits the bytes of a reel. While the reel is full, the feed gets neither snapshots nor
// messages; the messages are lost, and the next snapshot holds all changes since.
const maxReel = 64 << 20

// shotSize is counted per shot and per message, beside their payload.
const shotSize = 256

// size returns the bytes that the shot is counted as.
func (s *shot) size() int {
	n := shotSize
	for _, b := range s.packets {
		n += len(b)
	}
	for _, b := range s.large {
		n += len(b)
	}
	for i := range s.messages {
		n += sizeOf(&s.messages[i])
	}
	return n
}

// sizeOf returns the bytes that a message is counted as.
func sizeOf(m *transport.Message) int { return shotSize + len(m.Payload) }

// size returns the bytes of all waiting shots.
func (l *reel) size() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bytes
}

// takes reports whether the reel has room left after another first bytes.
func (l *reel) takes(first int) bool { return l.size()+first < l.most }

// add appends a shot, which belongs to the reel from now on. Shots after the last one are dropped.
func (l *reel) add(s shot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	if s.end != nil {
		s.tick, s.epoch = l.newest.tick, l.newest.epoch
	}
	l.newest = s.take
	waits := l.shots.Len() == 0 || s.end != nil
	l.ended = s.end != nil
	l.bytes += s.size()
	*l.shots.Push(&l.pool) = s
	if waits {
		l.rouse()
	}
}

// due describes the shots that may be shown at some moment.
type due struct {
	any         bool // the reel holds at least one shot, due or not
	first, last take // the oldest shot, and the newest due shot
	count       int  // number of due shots
	ended       bool // no shot will be added
}

// due counts the shots of ticks that began at the given time or before. After the end of the reel
// all shots are due if watched is false: there is no spectator left to show them to.
func (l *reel) due(at time.Duration, watched bool) (d due) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.shots.Len()
	d.ended = l.ended
	if n == 0 {
		return d
	}
	d.any, d.first = true, l.shots.At(0).take
	if d.count = n; !l.ended || watched {
		d.count = l.countLocked(at)
	}
	if d.count > 0 {
		d.last = l.shots.At(d.count - 1).take
	}
	return d
}

// countLocked counts the shots of ticks that began at the given time or before: mostly none, or a
// few.
func (l *reel) countLocked(at time.Duration) (n int) {
	for n < l.shots.Len() && l.shots.At(n).at <= at {
		n++
	}
	return n
}

// take removes the oldest shot.
func (l *reel) take() (s shot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shots.Pop(&l.pool, &s)
	l.bytes -= s.size()
	return s
}

// clones copies packets, because their memory is reused.
func clones(packets [][]byte) [][]byte {
	all := slices.Clone(packets)
	for i, b := range all {
		all[i] = bytes.Clone(b)
	}
	return all
}
