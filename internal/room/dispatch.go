package room

import (
	"errors"
	"log/slog"

	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/panicguard"
	"github.com/netloop/netloop/internal/rpcqueue"
	"github.com/netloop/netloop/internal/schema"
	"github.com/netloop/netloop/internal/transport"
)

// The path of a message, from the poll that finds it decoded to the end of its handler:
//
//	receive    puts it into the queue of its stage, which may refuse it
//	drainRPCs  at that stage lets the queue run its waiting messages
//	Handle     below the queue: its sender, the checks of its declaration, the game's function
//	failed     the function returns an error; panicked, it panics
//	refuse     answers with an error, if the message was a call

// receive queues a message for its stage. The queue counts a message that it rejects, and the
// caller of a call is told the reason. Messages of a client that was kicked, or refused by OnJoin,
// are dropped.
func (r *Room) receive(c *Client, a *transport.Arrival) {
	if c.kicked != nil {
		r.metrics.Drops.Add(1, "rpc", "kicked")
		return
	}
	it := rpcqueue.Item{
		From: c.id, Stage: loop.Stage(a.Message.Stage), Call: a.Message.Call, Msg: a.Decoded, NoRoom: a.Kind == transport.NoRoom,
		Held: uint32(a.Held), Holds: a.Session,
	}
	name := rpcqueue.UnknownName
	m, ok := a.Method.(*schema.Method)
	if it.NoRoom { // Its method was not looked up before.
		m, ok = r.schema.Method(a.Message.Method)
	}
	if ok {
		it.Method, name = &m.Queue, m.Queue.Name
	}
	out := r.rpcs.Push(it)
	if out.Queued() {
		a.Held = 0 // It is held until its handler has ended.
		return
	}
	if it.Call != 0 && c.mayRefuse() {
		c.refuseCall(a.Message.Method, it.Call, transport.Refuse(outcomeCode(out), "%s: %s", name, out))
	}
}

// charge counts a client's meaningless data as messages without a method, so that the limits of
// messages apply.
func (r *Room) charge(c *Client, messages uint64) {
	if c.kicked != nil {
		r.metrics.Drops.Add(messages, "rpc", "kicked")
		return
	}
	for range messages { // The inbox limits their number.
		r.rpcs.Push(rpcqueue.Item{From: c.id})
	}
}

// outcomeCode returns the code with which a call that was not queued is answered.
func outcomeCode(o rpcqueue.Outcome) transport.Code {
	switch o {
	case rpcqueue.Full:
		return transport.CodeBusy
	case rpcqueue.UnknownStage, rpcqueue.StageNotAllowed:
		return transport.CodeStageNotAllowed
	case rpcqueue.UnknownMethod, rpcqueue.NoHandler:
		return transport.CodeUnknownMethod
	case rpcqueue.ClientLimited, rpcqueue.MethodLimited, rpcqueue.TickLimited:
		return transport.CodeFlood
	}
	return transport.CodeRefused
}

// drainRPCs is the system rpc.drain: it runs the messages of a stage.
func (r *Room) drainRPCs(s loop.Stage) {
	r.watchdog.Stage(s)
	r.rpcs.Drain(s, r)
}

// Handler handles a message. From is nil for a message that the server itself has posted.
type Handler func(from *Client, it *rpcqueue.Item) error

// Handle registers the handler of a method.
func (r *Room) Handle(m *schema.Method, fn Handler) error {
	if err := m.Belongs(r.schema); err != nil {
		return err
	}
	return r.handle(m, func(_ *Room, it *rpcqueue.Item) error {
		if r.life.givenUp.Load() {
			return errSenderLeft
		}
		if it.From == 0 {
			return fn(nil, it)
		}
		from, ok := r.clients.get(it.From)
		if !ok {
			return errSenderLeft
		}
		r.from = from
		defer r.forget()
		if err := r.permits(m, from, it); err != nil {
			if it.Call != 0 {
				from.refuse(it, err)
			}
			return err
		}
		if r.life.givenUp.Load() { // While a check ran.
			return errSenderLeft
		}
		return fn(from, it)
	})
}

// handle registers a handler, and records for welcomes that the method has one.
func (r *Room) handle(m *schema.Method, fn rpcqueue.Handler[*Room]) error {
	if err := r.rpcs.Handle(&m.Queue, fn); err != nil {
		return err
	}
	id, old := m.Queue.ID-1, *r.handles.Load()
	now := make([]byte, max(len(old), int(id/8)+1))
	copy(now, old)
	now[id/8] |= 1 << (id % 8)
	r.handles.Store(&now)
	return nil
}

// permits runs the checks of a client's message.
func (r *Room) permits(m *schema.Method, from *Client, it *rpcqueue.Item) error {
	if from.join.Spectator && !m.Spectators {
		return errWatches
	}
	for i := range m.Checks {
		if err := m.Checks[i].Ask(r.cfg.Tick, from.Game, it.Msg); err != nil {
			return err
		}
	}
	return nil
}

// errWatches rejects a spectator's message of a method for players.
var errWatches = &rpcqueue.Rejection{Why: rpcqueue.Forbidden, Err: transport.Refuse(transport.CodeRefused, "you only watch")}

// errSenderLeft rejects a message of a client that has left in the same drain.
var errSenderLeft = &rpcqueue.Rejection{Why: rpcqueue.ClientGone, Err: transport.Refuse(transport.CodeLeft, "its client has left")}

// handlerFailed logs a handler's error. A refusal is an ordinary answer of the game.
func (r *Room) handlerFailed(it *rpcqueue.Item, err error) {
	if _, refused := transport.Declined(err); refused {
		r.log.Log(r.ctx, slog.LevelDebug, "a handler refused", "method", it.Method.Name, "from", it.From, "error", err)
		return
	}
	r.guard.Failed(handlerOf(it.Method), err, "from", it.From)
}

// handlerPanicked accounts for a handler's panic, and answers a call with an internal error,
// unless it was answered before.
func (r *Room) handlerPanicked(it *rpcqueue.Item, v any, stack []byte) {
	r.guard.Panicked(handlerOf(it.Method), v, stack, "from", it.From)
	o := r.deferred
	r.deferred = nil
	switch c, ok := r.clients.get(it.From); {
	case !ok || it.Call == 0, o != nil && o.sent:
	case o != nil:
		o.sent = true
		fallthrough
	default:
		c.refuse(it, errPanicked)
	}
}

var errPanicked = errors.New("netloop: the handler panicked")

func handlerOf(m *rpcqueue.Method) *panicguard.Place {
	return &panicguard.Place{Kind: panicguard.Handler, Name: m.Name}
}

// maxRefusals limits the calls of one client in a tick that are answered without a handler. Each
// answer costs a microsecond or two; further calls are not answered and time out.
const maxRefusals = 64

// mayRefuse reports whether one more call of the client may be answered without a handler.
func (c *Client) mayRefuse() bool {
	if tick := c.room.now.Tick; c.refusedIn != tick {
		c.refusedIn, c.refused = tick, 0
	}
	if c.refused++; c.refused <= maxRefusals {
		return true
	}
	c.room.unanswered++
	return false
}

// refuse answers a call with an error. The client reads its text only if the game declined the
// call.
func (c *Client) refuse(it *rpcqueue.Item, err error) { c.refuseCall(it.Method.ID, it.Call, err) }

func (c *Client) refuseCall(method uint32, call uint64, err error) {
	declined, _ := transport.Declined(err)
	c.session.Send(transport.Message{
		Method: method, Call: call, Reply: true, Reliable: true, Code: uint32(declined.Code), Text: declined.Text,
	})
}
