package room

import (
	"errors"
	"slices"

	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/rpcqueue"
	"github.com/netloop/netloop/internal/schema"
	"github.com/netloop/netloop/internal/transport"
)

// A message to a room of another server travels as a letter:
//
//	Send ──▶ Deliver: ErrElsewhere ──▶ Forward ═══ call of the cluster ═══▶ Accept ──▶ posts
//	  Then ◀── answered ◀── Done ◀═════════════ answer ═══════════════════ Done ◀──── settled

// Letter is a message between rooms of two servers.
type Letter struct {
	From    Sender
	Program bool // the program of the server has sent it, and no room
	Method  string
	Stage   loop.Stage // 0: the default of the method
	Payload []byte     // the encoded message
	// Done is called once with the outcome: nil if the handler has returned. It may be called on
	// any goroutine, and does not wait.
	Done func(error)
}

// ErrNoAnswer is the outcome of a message for which the other server has not answered in time. The
// handler may have run.
var ErrNoAnswer = transport.Refuse(transport.CodeBusy, "the server of the room does not answer")

// letter returns the letter for a message of this room.
func (e *roomMessage) letter(m *schema.Method, stage loop.Stage, payload []byte) *Letter {
	return &Letter{From: e.from, Method: m.Queue.Name, Stage: stage, Payload: slices.Clone(payload), Done: e.answered}
}

// answered takes the outcome of a message from another server, and counts a lost message.
func (e *roomMessage) answered(err error) {
	var refused *transport.Refusal
	switch {
	case errors.Is(err, ErrNoAnswer):
		e.lost(noAnswer, err)
	case !errors.As(err, &refused):
		e.settled(err)
	case refused.Code == transport.CodeRoomUnknown:
		e.lost(roomGone, err)
	case refused.Code == transport.CodeBusy:
		e.lost(queueFull, err)
	case refused.Code == transport.CodeUnknownMethod:
		e.lost(noHandler, err)
	default:
		e.settled(err)
	}
}

// NewLetter encodes a message of the program for a room of another server.
func NewLetter(m *schema.Method, msg any, done func(error)) (*Letter, error) {
	payload, err := m.In.Append(nil, msg)
	if err != nil {
		return nil, err
	}
	return &Letter{Program: true, Method: m.Queue.Name, Payload: payload, Done: done}, nil
}

// Accept queues a message of another server for one of the next ticks, and settles it if that is
// impossible. Any goroutine may call it.
func (b *Mailbox) Accept(l *Letter) {
	m, ok := b.schema.MethodNamed(l.Method)
	if !ok || m.Queue.Call {
		l.Done(transport.Refuse(transport.CodeUnknownMethod, "there is no method %q", l.Method))
		return
	}
	msg, err := m.In.Decode(l.Payload)
	if err != nil {
		l.Done(transport.Refuse(transport.CodeUnknownMethod, "the message %q cannot be decoded", l.Method))
		return
	}
	e := &roomMessage{from: l.From, program: l.Program, size: len(l.Payload), done: l.Done}
	e.deliver(b.Receive, rpcqueue.Item{Method: &m.Queue, Stage: l.Stage, Msg: msg, Held: 1, Holds: e})
}
