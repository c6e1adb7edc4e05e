package room

import (
	"time"

	"github.com/netloop/netloop/internal/rpcqueue"
)

// waitsTime is the time after a question for which the waits of messages are counted.
const waitsTime = 10 * time.Second

// waits are the ticks in which the queue counts the waits of messages.
type waits struct {
	began, until uint64
}

// WatchWaits returns the waits of clients' messages by method and the number of ticks in which they
// were counted, and counts them for waitsTime. The first call begins to count; otherwise a message
// costs a comparison to nil. It is a question: see Questions.
func (q *Messages) WatchWaits() (list []rpcqueue.Wait, ticks uint64) {
	now := q.in.Tick
	if q.queue.Waits == nil {
		q.queue.Waits, q.waits.began = rpcqueue.NewWaits(q.schema.RPCs()), now
	}
	q.waits.until = now + q.spec.ticksAfter(waitsTime)
	return q.queue.Waits.All(), now - q.waits.began
}

// expireWaits ends the counting that no question has prolonged.
func (q *Messages) expireWaits() {
	if q.queue.Waits != nil && q.in.Tick > q.waits.until {
		q.queue.Waits = nil
	}
}

// ticksAfter returns the number of ticks after which a time has passed since a question.
func (s *Spec) ticksAfter(d time.Duration) uint64 { return uint64(d/s.Rate.Period()) + 1 }
