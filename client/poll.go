package client

import (
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/netvar"
	"github.com/netloop/netloop/internal/panicguard"
	"github.com/netloop/netloop/internal/rpcqueue"
	"github.com/netloop/netloop/internal/transport"
)

// poll is the system transport.poll: it processes the arrivals since the last frame, in their
// order.
func (c *Client) poll(t *netloop.Tick) {
	c.runForeign(t) // First: a new watcher gets the existing objects before their changes.
	c.land(t)
	if c.live() {
		c.arrivals = c.session.Inbox().Swap(c.arrivals)
		for i := range c.arrivals {
			c.arrived(t, &c.arrivals[i])
		}
	}
	c.reconcile()
	c.showFrame(t.Delta())
	c.held.expire(c.time.tick, c.queue)
	c.calls.expire(t, c.clock.Now())
	c.verify.step(c, c.clock.Now())
}

// arrived handles one arrival.
func (c *Client) arrived(t *netloop.Tick, a *transport.Arrival) {
	switch a.Kind {
	case transport.State:
		c.apply(t, a)
	case transport.Record:
		c.applyRecord(t, a)
	case transport.MessageArrived:
		c.came(a)
		c.receive(t, a)
	case transport.Accepted:
		c.accepted(a.Value)
	case transport.Received:
		c.confirmed(a.Value)
	case transport.TimeSample:
		c.time.sync.Sample(a.T[0], a.T[1], a.T[2], a.T[3])
	case transport.EpochMoved:
		c.epochMoved(loop.Epoch(a.Epoch))
	case transport.OverloadChanged:
		c.reception.period(a.Overload.SendEvery)
		c.setOverload(netloop.Overload(a.Overload.Level))
	case transport.WillClose:
		s := c.present()
		s.Closing = a.At + time.Duration(min(a.Value, maxClosing))
		c.become(s)
	case transport.TimeScaleChanged:
		c.rescale(a.TimeScale)
	case transport.InputsTold:
		c.inputsTold(a.Status)
	case transport.MoveTold:
		c.follow(a.Message.Text)
	case transport.Gone:
		c.ended(netloop.Closed{Code: a.Closed.Code, Text: a.Closed.Text})
	}
}

// ended handles the end of the connection: a break, or a close by the server.
func (c *Client) ended(why netloop.Closed) {
	if c.breaks(why.Code) {
		c.lose(why)
		return
	}
	c.held.release(c.queue) // Mostly the server's last messages.
	c.end(why)
}

// apply applies one state packet, and then calls the game's watchers.
func (c *Client) apply(t *netloop.Tick, a *transport.Arrival) {
	applied, err := c.replica.Apply(a.State)
	switch {
	case err != nil:
		c.reception.came++
		c.refuse(err)
		return
	case !applied.Ack:
		c.reception.packet(&applied)
		c.stats.Stale++
		return
	}
	c.reception.packet(&applied)
	c.session.AckState(applied.Packet)
	c.stats.Packets++
	c.tellAll(t, applied.Tick)
	c.learn(&applied)
	c.complete(a, &applied)
	state, _ := c.replica.Digest()
	c.verify.compared(c, state)
}

// applyRecord applies a record of state that arrived over the stream. A failed record closes the
// connection: later state would be wrong without it, and a stream cannot resend.
func (c *Client) applyRecord(t *netloop.Tick, a *transport.Arrival) {
	id, err := c.replica.ApplyLarge(a.State)
	if err != nil {
		c.stats.Malformed++
		c.session.Close(transport.CodeProtocol, err.Error())
		return
	}
	c.session.AckRecord(id)
	c.stats.Records++
	c.tellAll(t, c.replica.Tick())
}

// complete counts a snapshot: its packets arrive one by one.
func (c *Client) complete(a *transport.Arrival, applied *netvar.Applied) {
	if c.snapshot.Tick != applied.Tick {
		c.snapshot = Snapshot{Tick: applied.Tick}
	}
	c.snapshot.Bytes += len(a.State)
	c.snapshot.At = max(c.snapshot.At, a.At)
	if !applied.SnapshotComplete {
		return
	}
	c.stats.Snapshots++
	c.wholeSnapshot(&c.snapshot, applied.Reached)
	c.progress(applied)
	for _, fn := range c.onSnap {
		c.call("OnSnapshot", func() { fn(c.snapshot) })
	}
}

// progress updates the progress of the first state. It may arrive before the server's message that
// the client is admitted.
func (c *Client) progress(applied *netvar.Applied) {
	now := c.present()
	switch loaded := applied.Total - applied.Left; {
	case now.Phase != Loading:
		return
	case applied.Left == 0:
		now = State{Phase: Playing, Closing: now.Closing}
	default: // Objects in flight count as missing again, but progress never decreases.
		now.Loaded, now.Objects = max(loaded, now.Loaded), applied.Total
	}
	c.become(now)
}

// present returns the client's state, or while it is Reconnecting the state to which it will
// return; become changes it.
func (c *Client) present() State {
	if c.away != nil {
		return c.away.state
	}
	return c.state
}

func (c *Client) become(s State) {
	if c.away != nil {
		c.away.state = s
		return
	}
	c.setState(s)
}

// call calls a function of the game. A panic there loses no other arrivals.
func (c *Client) call(what string, fn func()) {
	defer c.guard.Recover(&panicguard.Func{Name: what}, nil)
	fn()
}

// receive queues a message for its stage, or delivers an answer to its call.
func (c *Client) receive(t *netloop.Tick, a *transport.Arrival) {
	m := &a.Message
	if m.Reply {
		c.calls.answer(t, m, a.Decoded)
		return
	}
	method, ok := c.schema.RPCs().ByID(m.Method)
	if !ok {
		c.stats.Unknown++
		return
	}
	it := rpcqueue.Item{Method: method, Stage: netloop.Stage(m.Stage), Msg: a.Decoded}
	if !c.held.hold(heldMessage{item: it, tick: m.Tick, came: c.time.tick, size: a.Size}, c.queue) {
		c.queue(it)
	}
}

// queue queues a message for its stage.
func (c *Client) queue(it rpcqueue.Item) {
	if out := c.rpcs.Push(it); !out.Queued() {
		c.stats.Rejected++
	}
}

// flush is the system transport.flush.
func (c *Client) flush() {
	if !c.live() {
		return
	}
	now := c.clock.Now()
	heard := max(c.session.LinkFacts().LastArrival, c.since) // The welcome preceded it.
	if c.time.sync.Ready() {
		c.pace.watch(now, c.session.LinkFacts().SRTT, c.time.sync.RTT())
	}
	if c.pace.due(now, heard, c.flushEarly()) {
		c.flushInputs()
		if !c.acking.due(now, &c.reception, c.pace.period) {
			c.session.AckLater()
		}
		c.session.Flush(now)
	}
}

// later runs fn at the poll of the next frame. Only Step's goroutine may call it: it adds no more
// functions than there are watchers and calls.
func (c *Client) later(fn func(*netloop.Tick)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.foreign = append(c.foreign, fn)
}

// request is later for other goroutines. It reports false if too many functions wait for a Step.
func (c *Client) request(fn func(*netloop.Tick)) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.foreign) >= maxCalls {
		return false
	}
	c.foreign = append(c.foreign, fn)
	return true
}

func (c *Client) runForeign(t *netloop.Tick) {
	c.mu.Lock()
	calls := c.foreign
	c.foreign = nil
	c.mu.Unlock()
	for _, fn := range calls {
		c.call("later", func() { fn(t) })
	}
}

// maxClosing limits the time that a server announces, so that sums with it do not overflow.
const maxClosing = uint64(1 << 60)
