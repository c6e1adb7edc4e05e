package client

import (
	"github.com/netloop/netloop/internal/rpcqueue"
)

// held is the messages that wait for the state that they were sent with. They
// run in the order in which they came; what is not held overtakes them. It belongs
// to Step's goroutine.
type held struct {
	queue []heldMessage // oldest first
	bytes int
	state uint64 // the tick that the state has reached
	early uint64 // ran before their state, because of a bound
}

type heldMessage struct {
	item rpcqueue.Item
	tick uint64 // of the state that it waits for
	came uint64 // the server's tick, estimated, when it came
	size int
}

// The bounds of what is held. A message waits a few ticks for its state on a
// healthy link; on one that brings no snapshots for two seconds of 60 Hz it is
// better late state than no message at all.
const (
	maxHeld      = 256
	maxHeldBytes = 64 << 10
	maxHeldTicks = 120
)

// hold keeps a message, or reports that its state is there, as that of tick 0 always is. run runs
// those that must go for it.
func (h *held) hold(m heldMessage, run func(rpcqueue.Item)) bool {
	if m.tick <= h.state {
		return false
	}
	for len(h.queue) > 0 && (len(h.queue) >= maxHeld || h.bytes+m.size > maxHeldBytes) {
		h.early++
		run(h.pop())
	}
	h.queue = append(h.queue, m)
	h.bytes += m.size
	return true
}

// reached takes the tick that the state has reached with a whole snapshot, and runs what
// has waited for it.
func (h *held) reached(tick uint64, run func(rpcqueue.Item)) {
	h.state = max(h.state, tick)
	for len(h.queue) > 0 && h.queue[0].tick <= h.state {
		run(h.pop())
	}
}

// expire runs what has waited for too long.
func (h *held) expire(now uint64, run func(rpcqueue.Item)) {
	for len(h.queue) > 0 && now >= h.queue[0].came+maxHeldTicks {
		h.early++
		run(h.pop())
	}
}

// release runs everything: no state will come any more.
func (h *held) release(run func(rpcqueue.Item)) {
	for len(h.queue) > 0 {
		h.early++
		run(h.pop())
	}
}

func (h *held) pop() rpcqueue.Item {
	m := h.queue[0]
	h.queue[0] = heldMessage{} // The message belongs to its handler now.
	h.queue = h.queue[1:]
	h.bytes -= m.size
	return m.item
}
