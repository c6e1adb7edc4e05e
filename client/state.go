package client

import (
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/transport"
)

// Phase is the current phase of a client's life.
type Phase uint8

// The phases, in their order. Reconnecting leads back to Loading or Playing, and Moving to Loading.
const (
	Connecting Phase = iota
	Loading          // in the room; the first state has not arrived completely
	Playing
	Reconnecting // the connection was lost, and the client reconnects: see Reconnect
	Moving       // on the way to another room: see Move
	Closed
)

var phaseNames = [...]string{"connecting", "loading", "playing", "reconnecting", "moving", "closed"}

// String returns the phase's name.
func (p Phase) String() string {
	if int(p) < len(phaseNames) {
		return phaseNames[p]
	}
	return "unknown"
}

// State is a client's phase and, when it is closed, the reason.
type State struct {
	Phase Phase

	// Loaded is the number of objects of the first state that have arrived while the client is
	// loading; Objects is the number of objects that it may see when it joins. The server spreads
	// them over as many snapshots as its budget requires. Both are 0 before the first snapshot, and
	// when one snapshot holds all objects.
	Loaded, Objects int

	// Closing is the time at which the server closes at the latest, on the clock of [Client.Now]; 0
	// if it does not plan to. Until then the server waits for connected players, so that they can
	// finish a round or find another server.
	Closing time.Duration

	// Attempt counts, from 1, the attempts of a reconnecting client. Left is the time for which the
	// server still keeps its seat: 0 after that time, or if the server keeps no seat. OnState is
	// called for each attempt; State updates Left in between.
	Attempt int
	Left    time.Duration

	Code netloop.Code
	Text string
}

// Progress returns the part of the first state that has arrived, from 0 to 1.
func (s State) Progress() float64 {
	switch {
	case s.Phase == Playing:
		return 1
	case s.Objects == 0:
		return 0
	}
	return float64(s.Loaded) / float64(s.Objects)
}

// OnState adds a function to call when the client's state changes, including its progress while it
// loads.
func (c *Client) OnState(fn func(State)) { c.conn.onState = append(c.conn.onState, fn) }

// State returns the client's state.
func (c *Client) State() State {
	s := c.conn.state
	if s.Phase == Reconnecting {
		s.Left = c.conn.left()
	}
	return s
}

// OnOverload adds a function to call, in EarlyUpdate, when the server's level of overload changes:
// for instance to tell the player why updates are less frequent.
func (c *Client) OnOverload(fn func(netloop.Overload)) { c.onOverload = append(c.onOverload, fn) }

// Overload returns the server's level of overload, as last received.
func (c *Client) Overload() netloop.Overload { return c.overload }

// setOverload sets the level. A level that only a newer server has counts as the highest level.
func (c *Client) setOverload(level netloop.Overload) {
	level = min(level, netloop.OverloadRefusing)
	if level == c.overload {
		return
	}
	c.overload = level
	for _, fn := range c.onOverload {
		c.call("OnOverload", func() { fn(level) })
	}
}

// Snapshot describes a snapshot that has arrived completely.
type Snapshot struct {
	Tick uint64
	// time at which its last packet was read, on the clock of [Client.Now]
	At    time.Duration
	Bytes int // bytes of its packets
}

// OnSnapshot adds a function to call, in EarlyUpdate, for each snapshot that has arrived
// completely.
func (c *Client) OnSnapshot(fn func(Snapshot)) {
	c.receiver.onSnapshot = append(c.receiver.onSnapshot, fn)
}

// Stats holds the figures of the connection so far.
type Stats struct {
	RTT        time.Duration // smallest recent round trip of the time synchronisation
	ServerTick uint64        // estimate of the server's tick
	Applied    uint64        // tick of the newest state that was applied
	Age        time.Duration // estimated server time minus the deadline of the newest tick applied
	Synced     bool          // the estimates have enough samples
	Snapshots  uint64        // snapshots that arrived completely
	BytesIn    uint64        // of messages and datagrams of all connections, without the headers of
	BytesOut   uint64        // QUIC, TLS and IP
	Packets    uint64        // state packets that were applied
	Records    uint64        // state records larger than a packet that were applied
	Stale      uint64        // state packets discarded because a later tick had been applied
	Lost       uint64        // state packets that the server has sent and that did not arrive
	HeldBack   uint64        // due snapshots not sent, as the link had no room: a lower bound
	Malformed  uint64        // packets and records of state that could not be applied
	FullStates uint64        // requests for the full state: bad packets, or an unequal digest
	Unequal    uint64        // complete digests that differed from the client's state
	Jumped     uint64        // fixed steps left out because a frame was too long
	Silent     time.Duration // time since the last packet from the server
	Drops      uint64        // number of lost connections, see Reconnect
	Resumes    uint64        // reconnections after which the client resumed its seat
	Dropped    uint64        // messages dropped: not connected, or unconfirmed as the seat was lost
	Overflowed uint64        // arrivals dropped because Step was not called for long
	Rejected   uint64        // messages that could not run: not handled, at a wrong stage
	Unknown    uint64        // messages of methods that this build of the game does not have
	Unsent     uint64        // messages and inputs beyond a limit, or unhandled by the server
	Panics     uint64        // of handlers, watchers and other functions that are not systems
	Held       int           // messages of WithState that wait for their state
	Early      uint64        // messages that ran before their state arrived: too many, or too old
	Calls      int           // calls that wait for their answer
	Prediction PredictionStats
	LateCalls  uint64 // answers that arrived after the call was given up

	// The playout of interpolated classes, see Interpolate.
	ViewDelay    time.Duration // from the server's time to the moment that is shown
	Drawn        uint64        // frames that were shown between snapshots
	Starved      uint64        // of Drawn: the next snapshot was missing, although objects moved
	Extrapolated uint64        // of Drawn: extrapolated beyond the newest snapshot
	ViewJumps    uint64        // jumps of the moment, because it was far behind
	Teleports    uint64        // changes of a field with the tag teleport

	Inputs       uint64 // inputs made, one for each fixed step
	InputsMissed uint64 // fixed steps that the server ran without their input, as it has reported
	// Lead is the time by which the fixed steps are ahead of the server, so that inputs arrive in
	// time. InputMargin is the time by which at least 95 of 100 inputs of the last second, or of
	// the last 32 ticks if these are longer, arrive early.
	Lead, InputMargin time.Duration
	LeadJumps         uint64 // corrections of the lead that were too large to be gradual
	StepsSetBack      uint64 // times that steps were set back: the server left out many ticks
	InputPackets      uint64 // each has all inputs that the server may lack
	InputBytes        uint64 // of these packets
	// InputEarly is the time from the arrival of the newest input to its deadline; below 0: it was
	// late.
	InputEarly time.Duration
}

// Stats returns the figures of the connection so far.
func (c *Client) Stats() Stats {
	s, now := c.stats, c.clock.Now()
	s.RTT, s.Synced = c.time.sync.RTT(), c.time.sync.Ready()
	s.ServerTick, s.Applied, s.Jumped = c.time.tick, c.replica.Tick(), c.time.steps.skipped
	s.Overflowed = c.conn.traffic.Dropped(transport.DropInboxSession) + c.conn.traffic.Dropped(transport.DropInboxTotal)
	traffic := &c.conn.traffic
	s.BytesIn = traffic.DatagramBytesIn.Load() + traffic.StreamBytesIn.Load()
	s.BytesOut = traffic.DatagramBytesOut.Load() + traffic.StreamBytesOut.Load()
	s.Lost, s.HeldBack = c.receiver.losses.lost(), c.receiver.losses.held
	if c.conn.session != nil {
		s.Silent = max(0, now-max(c.conn.session.LinkFacts().LastArrival, c.conn.since))
	}
	s.Held, s.Early = len(c.messages.held.queue), c.messages.held.early
	s.Drawn, s.Starved, s.Extrapolated, s.ViewJumps = c.views.drawn, c.views.starved, c.views.extrapolations, c.views.jumps
	s.Teleports += c.replica.Stats().Teleports
	if c.views.drawn > 0 {
		s.ViewDelay = c.time.gameTime(now) - c.views.at
	}
	s.Calls, s.LateCalls = len(c.messages.calls.waiting), c.messages.calls.late
	s.InputsMissed, s.InputEarly = c.inputs.status.Missed, c.inputs.status.Early
	s.Lead, s.InputMargin = c.time.lead.stats(c.time.steps.at, c.time.game)
	s.LeadJumps, s.StepsSetBack = c.time.lead.jumps, c.time.lead.setBacks
	if s.Applied > 0 {
		s.Age = c.time.age(now, s.Applied)
	}
	return s
}

// Now returns the time on the clock by which arrivals are stamped.
func (c *Client) Now() time.Duration { return c.clock.Now() }

// TickRate returns the server's tick rate after the client has connected.
func (c *Client) TickRate() netloop.Rate { return netloop.Rate(c.time.timeline.Rate) }
