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

// poll is the system transport.poll: it takes what has arrived since the last
// frame, in the order of arrival.
func (c *Client) poll(t *netloop.Tick) {
	c.runForeign(t) // First: a new watcher is told of what exists before it hears what changes.
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

// ended takes the end of the connection: a break, or the server's last word.
func (c *Client) ended(why netloop.Closed) {
	if c.breaks(why.Code) {
		c.lose(why)
		return
	}
	c.held.release(c.queue) // The server's last words, mostly.
	c.end(why)
}

// apply takes one state packet, and then tells the game what it changed.
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

// applyRecord takes a record of state that came over the stream. Without it all that follows
// would be wrong, and nothing of a stream can be asked for again.
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

// complete accounts for a snapshot whose packets come one by one.
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

// progress follows the first state. It may come before the server's word that the client is in.
func (c *Client) progress(applied *netvar.Applied) {
	now := c.present()
	switch loaded := applied.Total - applied.Left; {
	case now.Phase != Loading:
		return
	case applied.Left == 0:
		now = State{Phase: Playing, Closing: now.Closing}
	default: // What is under way counts as missing again, but progress never goes back.
		now.Loaded, now.Objects = max(loaded, now.Loaded), applied.Total
	}
	c.become(now)
}

// present is the state that the client is in, or goes back to from Reconnecting; become changes it.
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

// call calls the game, whose panic costs nobody else what has arrived.
func (c *Client) call(what string, fn func()) {
	defer c.guard.Recover(&panicguard.Place{Name: what}, nil)
	fn()
}

// receive queues a message for its stage, or hands an answer to who asked.
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
	heard := max(c.session.LinkFacts().LastArrival, c.since) // The welcome came before the session.
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

// later runs fn at the poll of the next frame. It is for Step's goroutine, which
// adds no more than there are watchers and calls.
func (c *Client) later(fn func(*netloop.Tick)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.foreign = append(c.foreign, fn)
}

// request is later for other goroutines: without a Step for long it reports false.
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

// maxClosing bounds the time that a server announces, so that a sum with it stays one.
const maxClosing = uint64(1 << 60)
