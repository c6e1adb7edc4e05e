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

// reel is what a room's camera was sent and its screening has not shown yet. The one room's
// goroutine adds to its end, the other's takes from its head.
type reel struct {
	delay time.Duration
	most  int    // bytes: see maxReel
	rouse func() // of the screening

	mu     sync.Mutex
	shots  fifo.Queue[shot]
	pool   fifo.Pool[shot]
	bytes  int
	newest take // of the shots that were added
	ended  bool // the last one is there
}

// shot is what a camera was sent in one tick.
type shot struct {
	take
	packets, large [][]byte
	messages       []transport.Message
	scale          *loop.Scale       // nil: it is that of the shot before
	end            *transport.Closed // nil: more will come
}

// take says which tick a shot is of.
type take struct {
	tick  uint64
	at    time.Duration // when it began
	epoch loop.Epoch    // that was in force
}

// maxReel bounds the bytes of a reel. A camera that finds it full is sent nothing until there is
// room again, and then what has changed meanwhile; the messages of that time are lost.
const maxReel = 64 << 20

// shotSize is what a shot counts with besides what it carries.
const shotSize = 256

// size is what the shot counts with.
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

// sizeOf is what a message counts with.
func sizeOf(m *transport.Message) int { return shotSize + len(m.Payload) }

// size is how many bytes wait.
func (l *reel) size() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bytes
}

// takes reports whether there is room for something behind so many bytes that will come first.
func (l *reel) takes(first int) bool { return l.size()+first < l.most }

// add adds a shot, which is the reel's from now on. After the last one there is none.
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

// due is what of a reel may be shown at a moment.
type due struct {
	any         bool // there is a shot at all, be it due or not
	first, last take // the oldest shot, and the newest that is due
	count       int  // of shots that are due
	ended       bool // nothing more will be added
}

// due returns what may be shown of that which began at a time or before. Of a reel that has ended
// nobody may be there to see the rest: then all of it is due.
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

// countLocked counts the shots that began at a time or before. Mostly it is none, or a few.
func (l *reel) countLocked(at time.Duration) (n int) {
	for n < l.shots.Len() && l.shots.At(n).at <= at {
		n++
	}
	return n
}

// take takes the oldest shot out.
func (l *reel) take() (s shot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shots.Pop(&l.pool, &s)
	l.bytes -= s.size()
	return s
}

// clones copies packets, whose memory is used again.
func clones(packets [][]byte) [][]byte {
	all := slices.Clone(packets)
	for i, b := range all {
		all[i] = bytes.Clone(b)
	}
	return all
}
