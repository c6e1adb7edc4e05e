package room

import (
	"errors"
	"sync"

	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/rpcqueue"
	"github.com/netloop/netloop/internal/schema"
	"github.com/netloop/netloop/internal/transport"
)

// A room message is a message from one room to another room, or to the program that runs the
// server:
//
//	Send ──▶ Deliver ──▶ posts of the other room ──▶ its poll ──▶ rpc.drain ──▶ its handler
//	  │         │                   │                    │                          │
//	too many  gone, full      the room ends        not queued                      Held
//	  └─────────┴───────────────────┴────────────────────┴──▶ lost                  │
//	                                                            └──▶ settled ◀──────┘
//
// Each message has exactly one of two outcomes: its handler has run, or it is lost and counted. A
// sender with Mail.Then receives the outcome as the result of work in one of its next ticks.

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
	To     string // name of the receiver, for the digest of a recording
	Method *schema.Method
	Stage  loop.Stage // 0: the default of the method
	Msg    any        // the room sends a copy
	// Deliver queues the message at its receiver, or returns one of the errors of Post, or
	// ErrElsewhere. A replay does not call it.
	Deliver func(rpcqueue.Item) error
	// Forward sends the message to a room of another server, after ErrElsewhere.
	Forward func(*Letter)
	// Then receives the outcome in EarlyUpdate of a later tick. Nil: the outcome is not reported.
	Then func(error)
}

// roomMessage is the envelope of a message to another room or to the program. Message queues call
// its method Held after the handler has returned.
type roomMessage struct {
	from    Sender
	program bool   // the program of another server has sent it, so from is not set
	size    int    // encoded size
	work    *Async // the sender's work; nil for a message of another server
	number  uint64 // number of the work that waits for the outcome
	receipt func(any, error)
	done    func(error) // takes the outcome of a message of another server
}

var _ rpcqueue.Holds = (*roomMessage)(nil)

// roomMessageOf returns the envelope of a message; nil if no room has sent it.
func roomMessageOf(it *rpcqueue.Item) *roomMessage {
	e, _ := it.Holds.(*roomMessage)
	return e
}

// Limits of messages between rooms, so that neither one room nor all rooms together can fill the
// queue of another room. The sender's tick encodes and copies a message; all other work is done in
// the receiver's tick.
const (
	maxMails        = 1024    // messages sent by a room in a tick
	maxMailBytes    = 1 << 20 // encoded bytes sent by a room in a tick
	maxRoomMessages = 4096    // waiting for a tick of one room: one from each of 4096 rooms
	maxFromRoom     = 256     // waiting messages of one sender
	maxWaiting      = 4 << 20 // encoded bytes of all waiting messages
)

// mailed counts the messages that a room has sent in a tick.
type mailed struct {
	tick     uint64
	messages int
	bytes    int
}

// fits reports whether the limits of the tick permit another message of size bytes, and counts it
// if so.
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
	ErrNoRoom = transport.Refuse(transport.CodeRoomUnknown, "the room does not exist, or has ended before it read the message")
	errNoRest = transport.Refuse(transport.CodeBusy, "too many messages wait there")
	errMails  = transport.Refuse(transport.CodeBusy, "the room has sent too many messages in this tick")
)

// Send sends a message through Deliver. It panics if the message cannot be encoded. It reports
// false, without sending the message, if m.Then is set and maxAsync pieces of work are running.
func (b *Mailbox) Send(m Mail) bool {
	payload := b.messages.Encode(m.Method, m.Msg)
	if m.Then != nil && b.async.pending >= maxAsync {
		b.metrics.Drops.Add(1, "async", "full")
		return false
	}
	b.sent.mail(m.To, m.Method.Queue.ID, m.Stage, payload)
	fits := b.mailed.fits(b.in.Tick, len(payload))
	e := &roomMessage{from: Sender{b.spec.Name, b.spec.Kind}, size: len(payload), work: b.async}
	if m.Then != nil {
		e.receipt = func(_ any, err error) { m.Then(err) }
		e.number = b.async.expect(Work{New: newReceipt, Then: e.receipt})
	}
	if b.async.recorded != nil {
		return true // The outcome is recorded.
	}
	if b.givenUp.Load() {
		b.metrics.Drops.Add(1, "room_message", "sender_gone")
		return true // The sender has ended: it gets no outcome.
	}
	if !fits {
		b.metrics.Drops.Add(1, "room_message", "too_many")
		e.settled(errMails)
		return true
	}
	msg, err := m.Method.In.Decode(payload) // Rooms share no memory.
	if err != nil {
		panic("netloop: a message that was just encoded cannot be decoded: " + err.Error())
	}
	it := rpcqueue.Item{Method: &m.Method.Queue, Stage: m.Stage, Msg: msg, Held: 1, Holds: e}
	if !e.deliver(m.Deliver, it) {
		m.Forward(e.letter(m.Method, m.Stage, payload))
	}
	return true
}

// deliver queues a message at its receiver, or counts it as lost. It reports false if the receiver
// is on another server.
func (e *roomMessage) deliver(to func(rpcqueue.Item) error, it rpcqueue.Item) (here bool) {
	switch err := to(it); {
	case err == nil:
	case errors.Is(err, ErrElsewhere):
		return false
	case errors.Is(err, ErrFull):
		e.lost(queueFull, errNoRest)
	case errors.Is(err, ErrEnded):
		e.gone()
	default: // The program returned an error.
		e.lost(noHandler, err)
	}
	return true
}

// newReceipt allocates the value of a receipt. The value is empty, because a receipt consists only
// of an error.
func newReceipt() any { return new(struct{}) }

// Held implements rpcqueue.Holds: the handler has returned, or panicked.
func (e *roomMessage) Held(int) { e.settled(nil) }

// gone counts the message as lost: its receiver does not exist, or has run its last tick. Any
// goroutine may call it.
func (e *roomMessage) gone() { e.lost(roomGone, ErrNoRoom) }

// loss is the reason for which a message is lost.
type loss uint8

const (
	queueFull loss = iota
	roomGone
	noHandler
	noAnswer
)

// lost counts a lost message at the sender, and settles it. For a message of another server, that
// server counts.
func (e *roomMessage) lost(why loss, err error) {
	if a := e.work; a != nil {
		switch why {
		case queueFull:
			a.metrics.Drops.Add(1, "room_message", "queue_full")
		case roomGone:
			a.metrics.Drops.Add(1, "room_message", "room_gone")
		case noHandler:
			a.metrics.Drops.Add(1, "room_message", "no_handler")
		case noAnswer:
			a.metrics.Drops.Add(1, "room_message", "no_answer")
		}
	}
	e.settled(err)
}

// settled reports the outcome to the sender, if it waits for that. Any goroutine may call it.
func (e *roomMessage) settled(err error) {
	switch {
	case e.done != nil:
		e.done(err)
	case e.receipt != nil:
		e.work.finish(result{e.number, newReceipt(), err, e.receipt, nil})
		e.work.Sleep.rouse()
	}
}

// refused settles a message that the queue of its stage has rejected and counted.
func (e *roomMessage) refused(it *rpcqueue.Item, out rpcqueue.Outcome) {
	e.settled(transport.Refuse(outcomeCode(out), "%s: %s", it.Method.Name, out))
}

// dropQueued counts messages of other rooms that still wait for handlers after the last tick of
// this room as lost.
func (b *Mailbox) dropQueued() {
	b.messages.queue.Each(func(it *rpcqueue.Item) {
		if e := roomMessageOf(it); e != nil {
			e.gone()
		}
	})
}

// SenderOf returns the room that has sent a message, or nil if no room has sent it.
func SenderOf(it *rpcqueue.Item) *Sender {
	if e := roomMessageOf(it); e != nil && !e.program {
		return &e.from
	}
	return nil
}

// posts queues messages of Post and of other rooms, within limits.
type posts struct {
	mu        sync.Mutex
	items     []rpcqueue.Item // under mu
	fromRooms int             // messages of other rooms among items; under mu
	bytes     int             // encoded size of messages of other rooms; under mu
	each      map[string]int  // number of messages by sending room; under mu
	closed    bool            // under mu
	spare     []rpcqueue.Item // belongs to the room's goroutine
}

const maxPosts = 1024 // a burst of ten seconds at 100 a second

// The errors of Post.
var (
	ErrFull  = errors.New("netloop: the room's queue of posted messages is full")
	ErrEnded = errors.New("netloop: the room has ended")
	// ErrElsewhere is the error of Mail.Deliver for a room that may be on another server.
	ErrElsewhere = errors.New("netloop: the room is not on this server")
)

// Post queues a message of the program for one of the next ticks. Any goroutine may call it.
func (b *Mailbox) Post(it rpcqueue.Item) error {
	err := b.Receive(it)
	switch {
	case errors.Is(err, ErrEnded):
		b.metrics.Drops.Add(1, "post", "closed")
	case errors.Is(err, ErrFull):
		b.metrics.Drops.Add(1, "post", "full")
	}
	return err
}

// Receive is Post for a message of another room. The sender counts a rejected message; Receive does
// not.
func (b *Mailbox) Receive(it rpcqueue.Item) error {
	err := b.posts.add(it)
	if err == nil {
		b.Sleep.rouse()
	}
	return err
}

// add queues a message. The error is ErrEnded, or ErrFull if the limit for posted messages, or for
// messages of rooms, is reached.
func (p *posts) add(it rpcqueue.Item) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return ErrEnded
	}
	e := roomMessageOf(&it)
	if e != nil && e.program {
		e = nil
	}
	switch {
	case e == nil && len(p.items)-p.fromRooms >= maxPosts,
		e != nil && (p.fromRooms >= maxRoomMessages || p.bytes+e.size > maxWaiting || p.each[e.from.Room] >= maxFromRoom):
		return ErrFull
	case e != nil:
		if p.each == nil {
			p.each = map[string]int{}
		}
		p.each[e.from.Room]++
		p.fromRooms++
		p.bytes += e.size
	}
	p.items = append(p.items, it)
	return nil
}

// take empties the queue. The returned slice is valid until the next call.
func (p *posts) take() []rpcqueue.Item {
	clear(p.spare) // Release the messages.
	p.mu.Lock()
	defer p.mu.Unlock()
	p.items, p.spare = p.spare[:0], p.items
	p.fromRooms, p.bytes = 0, 0
	clear(p.each)
	return p.spare
}

// some reports whether a message waits. Any goroutine may call it.
func (p *posts) some() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.items) > 0
}

// close returns the waiting messages, and rejects later messages, because no tick would take them.
func (p *posts) close() (dropped []rpcqueue.Item) {
	p.mu.Lock()
	defer p.mu.Unlock()
	dropped = p.items
	p.items, p.fromRooms, p.closed = nil, 0, true
	return dropped
}

// close drops the waiting messages, because no tick follows. Any goroutine may call it.
func (b *Mailbox) close() {
	for _, it := range b.posts.close() {
		if e := roomMessageOf(&it); e != nil {
			e.gone()
			continue
		}
		b.metrics.Drops.Add(1, "post", "closed")
	}
}

// deliver moves messages of other goroutines into the queues of their stages.
func (b *Mailbox) deliver() {
	for _, it := range b.source.posts() {
		b.Sleep.markActive()
		out := b.messages.queue.Push(it)
		if e := roomMessageOf(&it); e != nil && !out.Queued() {
			e.refused(&it, out)
		}
	}
}
