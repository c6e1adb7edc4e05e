package client

import (
	"github.com/netloop/netloop/internal/rpcqueue"
)

// held stores the messages that wait for the state that they were sent with. They run in the order
// of their arrival; messages without such a state overtake them. Only Step's goroutine uses it.
type held struct {
	queue []heldMessage // oldest first
	bytes int
	state uint64 // the tick that the state has reached
	early uint64 // messages that ran before their state, because of a limit
}

type heldMessage struct {
	item rpcqueue.Item
	tick uint64 // of the state that it waits for
	came uint64 // the server's tick, estimated, when it arrived
	size int
}

// The limits of held messages. A message waits a few ticks for its state on a healthy link; if no
// snapshot arrives for two seconds of 60 Hz, a message without its state is better than none.
const (
	maxHeld      = 256
	maxHeldBytes = 64 << 10
	maxHeldTicks = 120
)

// hold stores a message, or reports false if its state has arrived, which is always the case for
// tick 0. run runs messages that are removed to make room.
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

// reached records the tick that the state has reached with a whole snapshot, and runs the messages
// that waited for it.
func (h *held) reached(tick uint64, run func(rpcqueue.Item)) {
	h.state = max(h.state, tick)
	for len(h.queue) > 0 && h.queue[0].tick <= h.state {
		run(h.pop())
	}
}

// expire runs messages that have waited too long.
func (h *held) expire(now uint64, run func(rpcqueue.Item)) {
	for len(h.queue) > 0 && now >= h.queue[0].came+maxHeldTicks {
		h.early++
		run(h.pop())
	}
}

// release runs all messages: no more state will arrive.
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
