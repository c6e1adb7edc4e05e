package netloop

import (
	"errors"
	"time"

	"github.com/netloop/netloop/internal/guard"
	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/rpcqueue"
	"github.com/netloop/netloop/internal/schema"
	"github.com/netloop/netloop/internal/transport"
)

// poll is the system transport.poll: it takes everything that has arrived since
// the last tick, in the order of arrival, and nothing that arrives meanwhile.
func (r *Room) poll(t *Tick) {
	for _, c := range r.clients.list {
		c.observeLink()
	}
	r.arrivals = r.feed.arrivals(r.arrivals)
	for i := range r.arrivals {
		r.arrive(t, &r.arrivals[i])
	}
	clear(r.arrivals)
	r.takePosts()
	r.takeResults(t)
}

// arrive handles one arrival.
func (r *Room) arrive(t *Tick, a *transport.Arrival) {
	if a.Kind == transport.Joined {
		r.join(t, a.Decoded.(*Client), a.Session)
		return
	}
	c, ok := r.clients.get(ClientID(a.Session.ID()))
	if !ok {
		return // It has left; what it had sent before counts with its leave.
	}
	switch a.Kind {
	case transport.Acks:
		c.acknowledged(t, r.in.Start, a.Acks)
	case transport.RecordsApplied:
		c.acknowledgedRecords(t, a.Value)
	case transport.MessageArrived:
		r.receive(c, a)
	case transport.Discarded:
		r.charge(c, a.Value)
	case transport.DigestRequest:
		r.requestDigest(c, a.Value)
	case transport.FullStateRequest:
		r.requestFull(c)
	case transport.Gone:
		r.leave(t, c, LeaveReason{a.Closed.Code, a.Closed.Text})
	}
}

// Limits of what a client may ask about its state. A digest costs a pass over all
// objects, and what is in flight goes again with it; the full state costs such a
// pass too, and then the objects.
const (
	askEvery   = time.Second // game time between two requests of one kind
	maxDigests = 4           // snapshots with a digest per request
)

// requestDigest gives a client's next snapshots digests, unless it has just asked.
func (r *Room) requestDigest(c *Client, snapshots uint64) {
	if r.mayAsk("digest", &c.digestFrom) {
		c.peer.RequestDigest(int(min(snapshots, maxDigests)))
	}
}

// requestFull lets a client start anew, unless it has just done so.
func (r *Room) requestFull(c *Client) {
	if r.mayAsk("full_state", &c.fullFrom) {
		c.peer.RequestFull()
	}
}

// mayAsk reports whether the game time has come from which on a client may ask
// for something again, and then moves it.
func (r *Room) mayAsk(what string, from *time.Duration) bool {
	if r.now.GameTime < *from {
		r.server.metrics.AddDrop(what, "too_often", 1)
		return false
	}
	*from = r.now.GameTime + askEvery
	return true
}

// receive queues a message for its stage. What the queue does not accept it has
// counted; the caller of a call learns why. Who has been kicked, or refused by
// OnJoin, says nothing more.
func (r *Room) receive(c *Client, a *transport.Arrival) {
	if c.kicked != nil {
		r.server.metrics.AddDrop("rpc", "kicked", 1)
		return
	}
	it := rpcqueue.Item{From: uint64(c.id), Stage: Stage(a.Message.Stage), Call: a.Message.Call, Msg: a.Decoded}
	name := rpcqueue.UnknownName
	if m, ok := a.Method.(*schema.Method); ok {
		it.Method, name = &m.Queue, m.Queue.Name
	}
	if out := r.rpcs.Push(it); !out.Queued() && it.Call != 0 && c.mayRefuse() {
		c.refuseCall(a.Message.Method, it.Call, Refuse(outcomeCode(out), "%s: %s", name, out))
	}
}

// charge counts what a client sent that meant nothing as messages of no method, so that the
// limits of messages hold for it too.
func (r *Room) charge(c *Client, messages uint64) {
	if c.kicked != nil {
		r.server.metrics.AddDrop("rpc", "kicked", messages)
		return
	}
	for range messages { // At most what the inbox takes of a client.
		r.rpcs.Push(rpcqueue.Item{From: uint64(c.id)})
	}
}

// outcomeCode is the code with which a call that was not queued is answered.
func outcomeCode(o rpcqueue.Outcome) Code {
	switch o {
	case rpcqueue.Full:
		return CodeBusy
	case rpcqueue.UnknownStage, rpcqueue.StageNotAllowed:
		return CodeStageNotAllowed
	case rpcqueue.UnknownMethod, rpcqueue.NoHandler:
		return CodeUnknownMethod
	case rpcqueue.ClientLimited, rpcqueue.MethodLimited, rpcqueue.TickLimited:
		return CodeFlood
	}
	return CodeRefused
}

// takePosts queues what other goroutines posted.
func (r *Room) takePosts() {
	for _, it := range r.feed.posts() {
		r.rpcs.Push(it)
	}
}

// join brings a client in, or closes its connection when the game refuses it.
func (r *Room) join(t *Tick, c *Client, s *transport.Session) {
	c.session = s
	c.window = transport.NewWindow(r.spec.Rate.Period() * time.Duration(r.sendEvery()))
	c.peer = r.world.NewPeer(t.now.Tick)
	c.peer.Handle = c
	c.setBudget(0)
	c.link = r.feed.link(c)
	c.due = true // The first snapshot does not wait for its turn.
	for _, p := range r.perClient {
		p.make(c.id)
	}
	r.clients.add(c)
	r.rpcs.Enter(uint64(c.id), c.join.holder())
	c.joined = true
	s.PublishEpoch(transport.Epoch(r.in.Epoch))
	if r.Overload() != OverloadNone {
		s.PublishOverload(r.overload())
	}
	if *r.scale.Load() != loop.Unscaled {
		s.PublishTimeScale(r.timeScale())
	}
	t.from = c
	defer t.forget()
	for _, fn := range r.onJoin {
		if err := r.call("OnJoin", func() error { return fn(t, c) }); err != nil {
			code, text, said := public(err)
			if panicked := (*hookPanic)(nil); !said && !errors.As(err, &panicked) {
				r.guard.Failed(&guard.Place{Name: "OnJoin"}, err)
			}
			c.Kick(t, code, text)
			return
		}
	}
}

// leave takes a client out: exactly once for each that joined.
func (r *Room) leave(t *Tick, c *Client, why LeaveReason) {
	if c.kicked != nil {
		why = *c.kicked
	}
	r.lostInStall(c, why)
	if why.Code == CodeFlood { // By the limits, by the game, or because its inbox was full.
		r.penalise(c)
	}
	t.from = c
	defer t.forget()
	for _, fn := range r.onLeave {
		_ = r.call("OnLeave", func() error { fn(t, c, why); return nil }) // The log knows.
	}
	r.rpcs.Forget(uint64(c.id))
	r.disownAll(c)
	r.world.ClosePeer(c.peer)
	r.clients.remove(c)
	for _, p := range r.perClient {
		p.free(c.id)
	}
	c.joined, c.owes, c.groups = false, nil, nil
	r.seats.Add(-1)
}
