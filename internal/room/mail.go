package room

import (
	"errors"

	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/rpcqueue"
	"github.com/netloop/netloop/internal/schema"
	"github.com/netloop/netloop/internal/transport"
)

// A room message is a message of one room to another, or to the program around the server:
//
//	Mail ──▶ Deliver ──▶ posts of the other room ──▶ takePosts ──▶ drainRPCs ──▶ its handler
//	  │         │                   │                    │                          │
//	too many  gone, full      the room ends        not queued                      Held
//	  └─────────┴───────────────────┴────────────────────┴──▶ lost                  │
//	                                                            └──▶ settled ◀──────┘
//
// Each message ends in one of two ways, once: its handler has run, or it is lost and counted. A
// sender that has asked receives the outcome as the result of work in one of its next ticks.

// Mailbox holds the messages that are posted to a room, and sends messages to other rooms.
type Mailbox struct {
	*core
	posts    posts
	mailed   mailed
	messages *Messages
	async    *Async
}

// Sender is the room that has sent a message.
type Sender struct {
	Room string // its name
	Kind string
}

// Mail is a message that a room sends in a tick.
type Mail struct {
	To     string // for the digest of a recording
	Method *schema.Method
	Stage  loop.Stage // 0 is the default of the method
	Msg    any        // copied
	// Deliver queues the message at its receiver, or returns one of the errors of Post. A replay
	// does not call it.
	Deliver func(rpcqueue.Item) error
	// Then receives the outcome in EarlyUpdate of a later tick. Nil: the outcome is not reported.
	Then func(error)
}

// roomMessage is the envelope of a message under way. Message queues call its Held once the
// handler has returned.
type roomMessage struct {
	from    Sender
	size    int    // encoded size
	work    *Async // of the sender
	number  uint64 // number of the work that waits for the outcome
	receipt func(any, error)
}

var _ rpcqueue.Holds = (*roomMessage)(nil)

// roomMessageOf returns the envelope of a message; nil if no room has sent it.
func roomMessageOf(it *rpcqueue.Item) *roomMessage {
	l, _ := it.Holds.(*roomMessage)
	return l
}

// Limits of messages between rooms. The sender's tick pays only for the encoding, the receiver for
// the rest: neither one room nor all rooms together can fill the queue of another.
const (
	maxMails        = 1024    // messages sent by a room in a tick
	maxMailBytes    = 1 << 20 // encoded bytes sent by a room in a tick
	maxRoomMessages = 4096    // waiting for a tick of a room: one from each of as many tables
	maxFromRoom     = 256     // waiting messages of one sender
	maxWaiting      = 4 << 20 // encoded bytes of all waiting messages
)

// mailed counts the messages that a room has sent in a tick.
type mailed struct {
	tick     uint64
	messages int
	bytes    int
}

// fits counts a message and reports true, if the limits of the tick permit one more.
func (m *mailed) fits(tick uint64, size int) bool {
	if m.tick != tick {
		*m = mailed{tick: tick}
	}
	if m.messages >= maxMails || m.bytes+size > maxMailBytes {
		return false
	}
	m.messages++
	m.bytes += size
	return true
}

// Reasons for a lost message.
var (
	errNoRoom = transport.Refuse(transport.CodeRoomUnknown, "the room is not there, or has ended before it took the message")
	errNoRest = transport.Refuse(transport.CodeBusy, "too many messages wait there")
	errMails  = transport.Refuse(transport.CodeBusy, "the room has sent too many messages in this tick")
)

// Send sends a message through Deliver. It panics if the message cannot be encoded. It reports
// false, without sending the message, if a receipt is wanted and too much work is running.
func (b *Mailbox) Send(m Mail) bool {
	payload := b.messages.Encode(m.Method, m.Msg)
	if m.Then != nil && b.async.pending >= maxAsync {
		b.metrics.Drops.Add(1, "async", "full")
		return false
	}
	b.sent.mail(m.To, m.Method.Queue.ID, m.Stage, payload)
	fits := b.mailed.fits(b.in.Tick, len(payload))
	l := &roomMessage{from: Sender{b.spec.Name, b.spec.Kind}, size: len(payload), work: b.async}
	if m.Then != nil {
		l.receipt = func(_ any, err error) { m.Then(err) }
		l.number = b.async.expect(Work{New: newReceipt, Then: l.receipt})
	}
	if b.async.recorded != nil {
		return true // The outcome is recorded.
	}
	if b.givenUp.Load() {
		b.metrics.Drops.Add(1, "room_message", "sender_gone")
		return true // The sender has ended: the outcome is not reported.
	}
	if !fits {
		b.metrics.Drops.Add(1, "room_message", "too_many")
		l.settled(errMails)
		return true
	}
	msg, err := m.Method.In.Decode(payload) // Rooms share no memory.
	if err != nil {
		panic("netloop: a message that was just encoded cannot be decoded: " + err.Error())
	}
	l.deliver(m.Deliver, rpcqueue.Item{Method: &m.Method.Queue, Stage: m.Stage, Msg: msg, Held: 1, Holds: l})
	return true
}

// deliver queues a message at its receiver, or counts it as lost.
func (l *roomMessage) deliver(to func(rpcqueue.Item) error, it rpcqueue.Item) {
	switch err := to(it); {
	case err == nil:
	case errors.Is(err, ErrFull):
		l.work.metrics.Drops.Add(1, "room_message", "queue_full")
		l.settled(errNoRest)
	case errors.Is(err, ErrEnded):
		l.gone()
	default: // An error of the program.
		l.work.metrics.Drops.Add(1, "room_message", "no_handler")
		l.settled(err)
	}
}

// newReceipt allocates the empty value of a receipt, which consists only of an error.
func newReceipt() any { return new(struct{}) }

// Held implements rpcqueue.Holds: the handler has returned, or panicked.
func (l *roomMessage) Held(int) { l.settled(nil) }

// gone counts the message as lost: its receiver does not exist, or has run its last tick. Any
// goroutine may call it.
func (l *roomMessage) gone() {
	l.work.metrics.Drops.Add(1, "room_message", "room_gone")
	l.settled(errNoRoom)
}

// settled reports the outcome to the sender, if it has asked. Any goroutine may call it.
func (l *roomMessage) settled(err error) {
	if l.receipt != nil {
		l.work.finish(result{l.number, newReceipt(), err, l.receipt, nil})
		l.work.Sleep.rouse()
	}
}

// refused settles a message that the queue of its stage has rejected and counted.
func (l *roomMessage) refused(it *rpcqueue.Item, out rpcqueue.Outcome) {
	l.settled(transport.Refuse(outcomeCode(out), "%s: %s", it.Method.Name, out))
}

// dropQueued drops messages of rooms that wait for handlers after the room's last tick.
func (b *Mailbox) dropQueued() {
	b.messages.queue.Each(func(it *rpcqueue.Item) {
		if l := roomMessageOf(it); l != nil {
			l.gone()
		}
	})
}

// SenderOf returns the room that has sent a message; nil if none has.
func SenderOf(it *rpcqueue.Item) *Sender {
	if l := roomMessageOf(it); l != nil {
		return &l.from
	}
	return nil
}
