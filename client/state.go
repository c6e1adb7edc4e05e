package client

import (
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/transport"
)

// Phase is where a client is in its life.
type Phase uint8

// The phases, in their order, but that Reconnecting leads back to Loading or Playing, and Moving to
// Loading.
const (
	Connecting Phase = iota
	Loading          // in the room; the first state has not arrived as a whole
	Playing
	Reconnecting // the connection has broken, and the client comes back: see Reconnect
	Moving       // on the way to another room: see Move
	Closed
)

// String returns the phase's name.
func (p Phase) String() string {
	switch p {
	case Connecting:
		return "connecting"
	case Loading:
		return "loading"
	case Playing:
		return "playing"
	case Reconnecting:
		return "reconnecting"
	case Moving:
		return "moving"
	case Closed:
		return "closed"
	}
	return "unknown"
}

// State is a client's phase, and once it is closed, why.
type State struct {
	Phase Phase

	// Loaded is how many of the Objects of the first state have arrived while the
	// client is loading: all that it may see as it joins. The server spreads them over
	// as many snapshots as its budget takes. Both are 0 before the first snapshot, and
	// when one snapshot brings everything.
	Loaded, Objects int

	// Closing is when the server closes at the latest, on the clock of [Client.Now]; 0 while
	// it does not mean to. It waits for those who play until then, and not for anybody who
	// has left: time to finish a round, or to look for another server.
	Closing time.Duration

	// Attempt counts, from 1, the attempts of a client that is reconnecting, and Left is for how
	// long its server still keeps its place: 0 once that is over, or when it keeps none. OnState
	// is called for each attempt; Left of State goes on in between.
	Attempt int
	Left    time.Duration

	Code netloop.Code
	Text string
}

// Progress is how much of the first state has arrived, from 0 to 1.
func (s State) Progress() float64 {
	switch {
	case s.Phase == Playing:
		return 1
	case s.Objects == 0:
		return 0
	}
	return float64(s.Loaded) / float64(s.Objects)
}

// OnState adds what is called when the client's state changes, its progress while
// it loads included.
func (c *Client) OnState(fn func(State)) { c.onState = append(c.onState, fn) }

// State returns the client's state.
func (c *Client) State() State {
	s := c.state
	if s.Phase == Reconnecting {
		s.Left = c.left()
	}
	return s
}

func (c *Client) setState(s State) {
	if s == c.state {
		return
	}
	c.state = s
	for _, fn := range c.onState {
		c.call("OnState", func() { fn(s) })
	}
}

// OnOverload adds what is called, in EarlyUpdate, when the server's level of
// overload changes: to tell the player why everything is coarser for a while, for
// instance.
func (c *Client) OnOverload(fn func(netloop.Overload)) { c.onLoad = append(c.onLoad, fn) }

// Overload returns the server's level of overload, as it was last told.
func (c *Client) Overload() netloop.Overload { return c.overload }

// setOverload takes a level. One of a newer server's own counts as the highest.
func (c *Client) setOverload(level netloop.Overload) {
	level = min(level, netloop.OverloadRefusing)
	if level == c.overload {
		return
	}
	c.overload = level
	for _, fn := range c.onLoad {
		c.call("OnOverload", func() { fn(level) })
	}
}

// Snapshot describes a snapshot that arrived whole.
type Snapshot struct {
	Tick uint64
	// when its last packet arrived, stamped as it was read, on the clock of [Client.Now]
	At    time.Duration
	Bytes int // of its packets
}

// OnSnapshot adds what is called, in EarlyUpdate, for each snapshot that arrived
// whole.
func (c *Client) OnSnapshot(fn func(Snapshot)) { c.onSnap = append(c.onSnap, fn) }

// Stats is how the connection has done so far.
type Stats struct {
	RTT        time.Duration // of the time synchronisation: the least of late
	ServerTick uint64        // estimated
	Applied    uint64        // tick of the newest state that was applied
	Age        time.Duration // estimated server time minus the deadline of the newest tick applied
	Synced     bool          // the estimates rest on enough samples
	Snapshots  uint64        // that arrived whole
	Packets    uint64        // of state, applied
	Records    uint64        // of state, larger than a packet, applied
	Stale      uint64        // of state, discarded because a later tick had been applied
	Lost       uint64        // packets of state that the server has sent and that did not arrive
	HeldBack   uint64        // due snapshots that were not sent, at least: the link had no room
	Malformed  uint64        // of state, packets and records that could not be decoded
	FullStates uint64        // asked for: packets were refused, or a digest did not match
	Unequal    uint64        // complete digests that did not match
	Jumped     uint64        // fixed steps left out because a frame was too long
	Silent     time.Duration // since anything was last heard from the server
	Drops      uint64        // connections that broke, see Reconnect
	Resumes    uint64        // and after which the client went on where it was
	Dropped    uint64        // sends before the connection, while it was broken and after its end
	Overflowed uint64        // arrivals that found the inbox full, because no Step came for long
	Rejected   uint64        // messages that could not run: not handled, at a wrong stage
	Unknown    uint64        // messages of methods that this build of the game does not have
	Unsent     uint64        // sends beyond a limit, or of what the server's build lacks
	Panics     uint64        // of handlers, watchers and other functions that are no systems
	Held       int           // messages that wait for the state that they were sent with
	Early      uint64        // messages that ran before their state came: too many, or too old
	Calls      int           // that wait for their answer
	Prediction PredictionStats
	LateCalls  uint64 // answers that came when nobody waited for them any more

	// What is shown of interpolated classes, see Interpolate.
	ViewDelay    time.Duration // from the server's time to the moment that is shown
	Drawn        uint64        // frames that were shown between snapshots
	Starved      uint64        // of those: no next snapshot was there yet, though things moved
	Extrapolated uint64        // of those: went on beyond the newest
	ViewJumps    uint64        // of the moment, because it was far behind
	Teleports    uint64        // changes of a field with the tag teleport

	Inputs       uint64 // made, one for each fixed step
	InputsMissed uint64 // fixed steps that the server ran without theirs, as it has told
	// Lead is how far the fixed steps are ahead of the server's present, so that inputs are in
	// time; InputMargin how early at least 95 of 100 inputs of the last second come with it.
	Lead, InputMargin time.Duration
	LeadJumps         uint64 // corrections of the lead that were too large to be gradual
	StepsSetBack      uint64 // times that steps were set back: the server left out many ticks
	InputPackets      uint64 // each is all that the server may lack, and a part of a datagram
	InputBytes        uint64 // of these packets
	// InputEarly is how long before its deadline the newest one came; below 0 it was late.
	InputEarly time.Duration
}

// Stats returns how the connection has done so far.
func (c *Client) Stats() Stats {
	s, now := c.stats, c.clock.Now()
	s.RTT, s.Synced = c.time.sync.RTT(), c.time.sync.Ready()
	s.ServerTick, s.Applied, s.Jumped = c.time.tick, c.replica.Tick(), c.time.steps.jumped
	s.Overflowed = c.traffic.Dropped(transport.DropInboxSession) + c.traffic.Dropped(transport.DropInboxTotal)
	s.Lost, s.HeldBack = c.reception.lost(), c.reception.held
	s.Prediction = c.prediction.stats
	if c.session != nil {
		s.Silent = max(0, now-max(c.session.LinkFacts().LastArrival, c.since))
	}
	s.Held, s.Early = len(c.held.queue), c.held.early
	s.Drawn, s.Starved, s.Extrapolated, s.ViewJumps = c.views.drawn, c.views.starved, c.views.extrapolated, c.views.jumps
	s.Teleports += c.replica.Stats().Teleports
	if c.views.drawn > 0 {
		s.ViewDelay = c.time.gameTime(now) - c.views.at
	}
	s.Calls, s.LateCalls = len(c.calls.waiting), c.calls.late
	s.Inputs, s.InputsMissed, s.InputEarly = c.inputs.made, c.inputs.told.Missed, c.inputs.told.Early
	s.Lead, s.InputMargin = c.time.lead.stats(c.time.steps.at, c.time.game)
	s.LeadJumps, s.StepsSetBack = c.time.lead.jumps, c.time.lead.backs
	s.InputPackets, s.InputBytes = c.inputs.sent, c.inputs.bytes
	if s.Applied > 0 {
		s.Age = c.time.age(now, s.Applied)
	}
	return s
}

// Now returns the time on the clock by which arrivals are stamped.
func (c *Client) Now() time.Duration { return c.clock.Now() }

// TickRate returns the server's tick rate, once connected.
func (c *Client) TickRate() netloop.Rate { return netloop.Rate(c.time.timeline.Rate) }
