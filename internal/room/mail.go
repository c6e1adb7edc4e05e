package room

import (
	"errors"

	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/rpcqueue"
	"github.com/netloop/netloop/internal/schema"
	"github.com/netloop/netloop/internal/transport"
)

// A letter is a message of one room to another, or to the program around the server. Its way:
//
//	Mail ──▶ Deliver ──▶ posts of the other room ──▶ takePosts ──▶ drainRPCs ──▶ its handler
//	  │         │                   │                    │                          │
//	too many  gone, full      the room ends        not queued                      Held
//	  └─────────┴───────────────────┴────────────────────┴──▶ lost                  │
//	                                                            └──▶ settled ◀──────┘
//
// Each comes to one of both ends, once: its handler has run, or it is lost and counted. Whoever
// has sent it learns which, if it asks, as the result of work in one of its next ticks.

// Sender is a room that has sent a message.
type Sender struct {
	Room string // its name
	Kind string
}

// Mail is what a room sends in a tick.
type Mail struct {
	To     string // for the digest of a recording
	Method *schema.Method
	Stage  loop.Stage // 0 is the default of the method
	Msg    any        // it is copied
	// Deliver hands the message over, or says by one of the errors of Post why not. A replay does
	// not call it.
	Deliver func(rpcqueue.Item) error
	// Then is told in EarlyUpdate of a later tick what has become of it. Nil: nobody asks.
	Then func(error)
}

// letter is the envelope of a message that is under way. A queue of messages gives back to it what
// it holds, which is when its handler has returned.
type letter struct {
	from    Sender
	size    int // encoded
	sender  *Room
	number  uint64 // of the work that its sender waits for
	receipt func(any, error)
}

var _ rpcqueue.Holds = (*letter)(nil)

// letterOf returns what a message came in, nil if no room has sent it.
func letterOf(it *rpcqueue.Item) *letter {
	l, _ := it.Holds.(*letter)
	return l
}

// Limits of messages between rooms. What a room sends in a tick costs it the encoding; the rest is
// paid by whoever takes it, so neither a room nor all of them together may fill another one.
const (
	maxMails     = 1024    // of a room in a tick
	maxMailBytes = 1 << 20 // the same, encoded
	maxLetters   = 4096    // that wait for a tick of a room: one from each of as many tables
	lettersEach  = 256     // of one sender
	maxWaiting   = 4 << 20 // bytes of all that wait, encoded
)

// mailed is what a room has sent in a tick.
type mailed struct {
	tick     uint64
	messages int
	bytes    int
}

// fits counts a message in, if it may still be sent in this tick.
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

// Why a letter is lost.
var (
	errNoRoom = transport.Refuse(transport.CodeRoomUnknown, "the room is not there, or has ended before it took the message")
	errNoRest = transport.Refuse(transport.CodeBusy, "too many messages wait there")
	errMails  = transport.Refuse(transport.CodeBusy, "the room has sent too many messages in this tick")
)

// Mail sends a message to where Deliver says. It panics with a message that cannot be sent, and
// reports false, and sends nothing, if somebody asks what becomes of too many.
func (r *Room) Mail(m Mail) bool {
	payload := r.Encode(m.Method, m.Msg)
	if m.Then != nil && r.async.pending >= maxAsync {
		r.metrics.Drops.Add(1, "async", "full")
		return false
	}
	r.leaving.mail(m.To, m.Method.Queue.ID, m.Stage, payload)
	fits := r.mailed.fits(r.in.Tick, len(payload))
	l := &letter{from: Sender{r.spec.Name, r.spec.Kind}, size: len(payload), sender: r}
	if m.Then != nil {
		l.receipt = func(_ any, err error) { m.Then(err) }
		l.number = r.async.expect(Work{New: newReceipt, Then: l.receipt})
	}
	if r.async.recorded != nil {
		return true // What has become of it is recorded.
	}
	if r.life.givenUp.Load() {
		r.metrics.Drops.Add(1, "room_message", "sender_gone")
		return true // Nobody hears of it: its sender has ended.
	}
	if !fits {
		r.metrics.Drops.Add(1, "room_message", "too_many")
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

// deliver hands a message over, or loses it.
func (l *letter) deliver(to func(rpcqueue.Item) error, it rpcqueue.Item) {
	switch err := to(it); {
	case err == nil:
	case errors.Is(err, ErrFull):
		l.sender.metrics.Drops.Add(1, "room_message", "queue_full")
		l.settled(errNoRest)
	case errors.Is(err, ErrEnded):
		l.gone()
	default: // The program says it.
		l.sender.metrics.Drops.Add(1, "room_message", "no_handler")
		l.settled(err)
	}
}

// newReceipt makes what a receipt comes to, besides its error.
func newReceipt() any { return new(struct{}) }

// Held implements rpcqueue.Holds: the handler has returned, or panicked.
func (l *letter) Held(int) { l.settled(nil) }

// gone loses a letter to a room that is not there, or has run its last tick. Any goroutine may call
// it.
func (l *letter) gone() {
	l.sender.metrics.Drops.Add(1, "room_message", "room_gone")
	l.settled(errNoRoom)
}

// settled tells the sender what has become of its message, if it has asked. Any goroutine may call
// it.
func (l *letter) settled(err error) {
	if l.receipt != nil {
		l.sender.async.finish(result{l.number, newReceipt(), err, l.receipt, nil})
		l.sender.rouse()
	}
}

// refused settles a message that the queue of its stage has not taken, and has counted.
func (l *letter) refused(it *rpcqueue.Item, out rpcqueue.Outcome) {
	l.settled(transport.Refuse(outcomeCode(out), "%s: %s", it.Method.Name, out))
}

// dropLetters loses what waits for handlers in a room that has run its last tick.
func (r *Room) dropLetters() {
	r.rpcs.Each(func(it *rpcqueue.Item) {
		if l := letterOf(it); l != nil {
			l.gone()
		}
	})
}

// RoomHandler runs for a message that another room has sent; from is nil for one that the program
// has posted.
type RoomHandler func(from *Sender, it *rpcqueue.Item) error

// HandleRoom registers the handler of a method that clients do not send.
func (r *Room) HandleRoom(m *schema.Method, fn RoomHandler) error {
	if err := m.Belongs(r.schema); err != nil {
		return err
	}
	return r.handle(m, func(_ *Room, it *rpcqueue.Item) error {
		switch {
		case it.From != 0:
			return errForRooms
		case r.life.givenUp.Load():
			return errSenderLeft
		}
		return fn(SenderOf(it), it)
	})
}

// SenderOf returns the room that has sent a message, nil if none has.
func SenderOf(it *rpcqueue.Item) *Sender {
	if l := letterOf(it); l != nil {
		return &l.from
	}
	return nil
}

// errForRooms ends a message of a client that only rooms may send.
var errForRooms = &rpcqueue.Rejection{Why: rpcqueue.Forbidden, Err: transport.Refuse(transport.CodeRefused, "it is for messages of rooms alone")}
