package client

import (
	"math"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/transport"
)

// Step runs one frame, of any length: the seven stages once, and the fixed steps that became due on
// the server's clock, each with its own number and time. Often no step is due; at most as many run
// as 125 ms contain, or 8 if that is more. frame is the time since the last Step, which systems get
// as Delta. Step never waits for the network.
func (c *Client) Step(frame time.Duration) {
	if c.closed { // Calls that were made in callbacks at the end fail.
		c.inspect(c.runPosted)
		return
	}
	c.conn.checkSilence()
	c.conn.continueTrip()
	c.conn.reconnect()
	now := c.clock.Now()
	if c.conn.live() {
		c.time.request(now, c.conn.session)
	}
	if c.inputs.sample != nil {
		c.time.startLead(now)
	}
	in := c.time.input(c.clock.Now(), c.clock.Wall(), frame)
	c.loop.Reject(c.reject)
	c.messages.queue.Begin(in.Tick, in.GameTime)
	rec, err := c.loop.Step(in) // EarlyUpdate begins with poll, PostLateUpdate ends with flush.
	c.report(rec)
	if err != nil {
		c.end(netloop.Closed{Code: netloop.CodeInternal, Text: err.Error()})
	}
}

// poll is the system transport.poll: it processes the arrivals since the last frame, in their
// order.
func (c *Client) poll(t *netloop.Tick) {
	c.runPosted(t) // First: a new watcher gets the existing objects before their changes.
	c.reconnected(t)
	if c.conn.live() {
		c.arrivals = c.conn.session.Inbox().Swap(c.arrivals)
		for i := range c.arrivals {
			if c.conn.ended() != nil { // It gave up in this frame, or a handler has closed it.
				break
			}
			c.arrived(t, &c.arrivals[i])
		}
	}
	c.prediction.reconcile()
	if c.time.known {
		c.views.show(c.clock.Now(), t.Delta(), c.receiver.losses.every, c.conn.rejoin == nil)
	}
	c.messages.held.expire(c.time.tick, c.messages.push)
	c.messages.calls.expire(t, c.clock.Now())
	c.receiver.requestDigest(c.clock.Now())
}

// arrived handles one arrival.
func (c *Client) arrived(t *netloop.Tick, a *transport.Arrival) {
	switch a.Kind {
	case transport.State:
		c.receiver.apply(t, a)
	case transport.Record:
		c.receiver.applyRecord(t, a)
	case transport.MessageArrived:
		c.conn.count(a)
		c.messages.receive(t, a, c.time.tick)
	case transport.Accepted:
		c.conn.accepted(a.Value)
	case transport.Received:
		c.conn.confirmed(a.Value)
	case transport.TimeSample:
		c.time.sync.Sample(a.T[0], a.T[1], a.T[2], a.T[3])
	case transport.EpochMoved:
		c.epochMoved(loop.Epoch(a.Epoch))
	case transport.OverloadChanged:
		c.receiver.losses.setPeriod(a.Overload.SendEvery)
		c.setOverload(netloop.Overload(a.Overload.Level))
	case transport.WillClose:
		s := c.conn.present()
		s.Closing = a.At + time.Duration(min(a.Value, maxClosing))
		c.conn.become(s)
	case transport.TimeScaleChanged:
		if err := c.setScale(a.TimeScale); err != nil {
			c.conn.session.Close(transport.CodeProtocol, err.Error())
		}
	case transport.InputsTold:
		c.inputs.reported(a.Status)
	case transport.MoveTold:
		if to, other := a.Decoded.(transport.Destination); other {
			c.conn.travel(transport.MovedTo{Ticket: a.Message.Text, To: to})
		} else {
			c.conn.move(a.Message.Text)
		}
	case transport.Gone:
		c.disconnected(netloop.Closed{Code: a.Closed.Code, Text: a.Closed.Text})
	}
}

// maxClosing limits the time until its close that a server announces, in ns, so that sums with it
// do not overflow.
const maxClosing = uint64(1 << 60)

// disconnected handles the end of the connection: its loss, or a close by the server.
func (c *Client) disconnected(why netloop.Closed) {
	if c.conn.outlives(why) {
		return
	}
	if c.conn.reconnects(why.Code) {
		c.conn.broken(why)
		return
	}
	c.messages.held.expire(math.MaxUint64, c.messages.push) // Mostly the server's last messages.
	c.end(why)
}

// flush is the system transport.flush: whenever [pace] permits a flush, it sends inputs,
// acknowledgements, messages and the number of mispredictions.
func (c *Client) flush() {
	if !c.conn.live() {
		return
	}
	now, session := c.clock.Now(), c.conn.session
	arrival := max(session.LinkFacts().LastArrival, c.conn.since) // The welcome preceded it.
	if c.time.sync.Ready() {
		c.pace.watch(now, session.LinkFacts().SRTT, c.time.sync.RTT())
	}
	if c.pace.due(now, arrival, c.inputs.early(c.pace.period)) {
		c.inputs.flush()
		c.prediction.report(now)
		if !c.acking.due(now, &c.receiver.losses, c.time.timeline.Rate.Period()) {
			session.AckLater()
		}
		session.Flush(now)
	}
}
