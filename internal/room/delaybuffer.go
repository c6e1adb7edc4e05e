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

// delayBuffer holds the data of the spectator feed until it is sent to the delayed spectators. The
// goroutine of the played room adds data at the end, and the goroutine of the spectator room takes
// data from the head.
type delayBuffer struct {
	delay time.Duration
	most  int    // in bytes: see maxDelayBuffer
	rouse func() // wakes the spectator room

	mu     sync.Mutex
	ticks  fifo.Queue[delayedTick]
	pool   fifo.Pool[delayedTick]
	bytes  int
	newest stamp // of the newest tick added
	ended  bool  // the last tick has been added
}

// delayedTick holds the data of one tick for the spectator feed.
type delayedTick struct {
	stamp
	packets, large [][]byte
	messages       []transport.Message
	scale          *loop.Scale       // nil: unchanged since the previous tick
	end            *transport.Closed // nil: not the last tick
}

// stamp is the number and the time of a tick.
type stamp struct {
	tick  uint64
	at    time.Duration // start of the tick
	epoch loop.Epoch    // in force at that tick
}

// maxDelayBuffer limits the bytes of a delay buffer. While the buffer is full, the feed gets
// neither snapshots nor messages; the messages are lost, and the next snapshot holds all changes.
const maxDelayBuffer = 64 << 20

// entrySize is the assumed overhead, in bytes, of a stored tick or message in addition to its
// payload.
const entrySize = 256

// size returns the number of bytes that the tick counts against maxDelayBuffer.
func (t *delayedTick) size() int {
	n := entrySize
	for _, b := range t.packets {
		n += len(b)
	}
	for _, b := range t.large {
		n += len(b)
	}
	for i := range t.messages {
		n += sizeOf(&t.messages[i])
	}
	return n
}

// sizeOf returns the number of bytes that a message counts against maxDelayBuffer.
func sizeOf(m *transport.Message) int { return entrySize + len(m.Payload) }

// size returns the bytes of all waiting ticks.
func (b *delayBuffer) size() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.bytes
}

// hasSpace reports whether the buffer would have space left after n more bytes.
func (b *delayBuffer) hasSpace(n int) bool { return b.size()+n < b.most }

// add appends a tick, whose memory belongs to the buffer from then on. Once a tick with an end was
// added, further ticks are dropped.
func (b *delayBuffer) add(t delayedTick) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended {
		return
	}
	if t.end != nil {
		t.tick, t.epoch = b.newest.tick, b.newest.epoch
	}
	b.newest = t.stamp
	waits := b.ticks.Len() == 0 || t.end != nil
	b.ended = t.end != nil
	b.bytes += t.size()
	*b.ticks.Push(&b.pool) = t
	if waits {
		b.rouse()
	}
}

// due describes the stored ticks that are due at a given time, so that spectators may see them.
type due struct {
	any         bool  // the buffer holds at least one tick, due or not
	first, last stamp // the oldest tick, and the newest due tick
	count       int   // number of due ticks
	ended       bool  // no tick will be added
}

// due returns the ticks that began at the time at or earlier. After the end of the played room all
// ticks are due if watched is false, because no spectator is left.
func (b *delayBuffer) due(at time.Duration, watched bool) (d due) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.ticks.Len()
	d.ended = b.ended
	if n == 0 {
		return d
	}
	d.any, d.first = true, b.ticks.At(0).stamp
	if d.count = n; !b.ended || watched {
		d.count = b.countLocked(at)
	}
	if d.count > 0 {
		d.last = b.ticks.At(d.count - 1).stamp
	}
	return d
}

// countLocked counts the ticks that began at the given time or before: usually none or a few.
func (b *delayBuffer) countLocked(at time.Duration) (n int) {
	for n < b.ticks.Len() && b.ticks.At(n).at <= at {
		n++
	}
	return n
}

// take removes the oldest tick.
func (b *delayBuffer) take() (t delayedTick) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ticks.Pop(&b.pool, &t)
	b.bytes -= t.size()
	return t
}

// clones copies packets, because their memory is reused.
func clones(packets [][]byte) [][]byte {
	all := slices.Clone(packets)
	for i, b := range all {
		all[i] = bytes.Clone(b)
	}
	return all
}
