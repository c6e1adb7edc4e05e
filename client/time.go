package client

import (
	"fmt"
	"math"
	"time"

	"github.com/netloop/netloop/internal/clock"
	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/transport"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// serverTime estimates the server's clock and tick, and derives the frames of the client's loop.
type serverTime struct {
	timeline loop.Timeline
	epoch    loop.Epoch
	sync     clock.Sync
	offset   time.Duration // server − client, until sync is ready
	known    bool

	game     time.Duration // of the newest frame
	tick     uint64        // that it had
	steps    stepClock
	lead     lead
	asked    time.Duration
	requests uint64
}

// place tells how much of a client's time state is kept over a new connection or a move.
type place int

const (
	newServer place = iota // none
	newRoom                // offset and drift of the server's clock: all else belongs to a room
	sameRoom               // all
)

// welcome applies the time in a welcome; took is the duration of its handshake. It returns an error
// if the server's rates are invalid.
func (s *serverTime) welcome(now, took time.Duration, w *netloopv1.Welcome, at place) error {
	line := loop.Timeline{
		Rate:  loop.Rate{Num: w.GetTickRate().GetNum(), Den: w.GetTickRate().GetDen()},
		Fixed: loop.Rate{Num: w.GetFixedRate().GetNum(), Den: w.GetFixedRate().GetDen()},
	}
	if err := line.Check(); err != nil {
		return err
	}
	said := time.Duration(w.GetServerNs())
	ahead := s.server(now) - said
	if at == newServer || ahead < -clock.SyncJump || ahead > took+clock.SyncJump {
		// Another clock, or this end's clock stopped, for instance while its machine slept.
		s.sync, s.lead.on = clock.Sync{}, false
	}
	if at != sameRoom {
		*s = serverTime{sync: s.sync, steps: stepClock{jumped: s.steps.jumped}, lead: lead{jumps: s.lead.jumps, backs: s.lead.backs, back: s.lead.back}}
	}
	s.timeline, s.offset = line, said-now
	s.requests = 0 // The path may be another: its round trips are measured again.
	s.lead.restart()
	if e := w.GetEpoch(); e.GetTick() != 0 { // Else the room has not ticked yet: its epoch follows.
		s.moved(loop.Epoch{Tick: e.GetTick(), At: time.Duration(e.GetServerNs())})
	}
	return nil
}

// moved applies an epoch that the server has published.
func (s *serverTime) moved(e loop.Epoch) {
	by := e.At - s.timeline.Deadline(s.epoch, e.Tick)
	if s.known && s.lead.on && by != 0 && s.lead.moved(by) {
		s.steps.setBack(s.timeline, by)
		s.lead.setBack(s.steps.done)
	}
	s.epoch, s.known = e, true
}

// rescale sets the line of scaled time that the server has published. An invalid speed breaks the
// protocol.
func (c *Client) rescale(t transport.TimeScale) {
	if err := loop.CheckScale(t.Num, t.Den); err != nil {
		c.session.Close(transport.CodeProtocol, err.Error())
		return
	}
	c.setScale(t)
}

func (c *Client) setScale(t transport.TimeScale) {
	s := loop.Scale{Num: t.Num, Den: t.Den, From: c.time.timeline.GameTime(t.Tick), To: t.At, Frac: t.Fraction}
	c.loop.SetScale(s)
	c.prediction.rescale(s)
}

// joinScale sets the time scale of the handshake, if there is one.
func (c *Client) joinScale(t *netloopv1.TimeScale) error {
	switch {
	case t == nil:
		c.loop.SetScale(loop.Unscaled)
		return nil
	case t.GetScaledNs() > math.MaxInt64:
		return fmt.Errorf("a scaled time of %d ns", t.GetScaledNs())
	}
	if err := loop.CheckScale(t.GetNum(), t.GetDen()); err != nil {
		return err
	}
	c.setScale(transport.TimeScale{Num: t.GetNum(), Den: t.GetDen(), Tick: t.GetTick(), At: time.Duration(t.GetScaledNs()), Fraction: t.GetFraction()})
	return nil
}

// server returns the server's monotonic time at a time of the client's clock.
func (s *serverTime) server(now time.Duration) time.Duration {
	if s.sync.Ready() {
		return s.sync.Server(now)
	}
	return now + s.offset
}

// Time is requested often until the filter is full, and then at a rate at which the clocks cannot
// drift apart. The intervals are no multiple of a tick, so that requests are spread over its whole
// length.
const (
	askFirst  = 53 * time.Millisecond
	askLater  = 293 * time.Millisecond
	firstAsks = 40
)

// request requests the server's time when the interval has passed.
func (s *serverTime) request(now time.Duration, session *transport.Session) {
	interval := askLater
	if s.requests < firstAsks {
		interval = askFirst
	}
	if s.requests > 0 && now-s.asked < interval {
		return
	}
	s.asked = now
	s.requests++
	session.RequestTime()
}

// gameTime returns the server's game time, which is constant before its epoch.
func (s *serverTime) gameTime(now time.Duration) time.Duration {
	return max(0, s.timeline.GameTime(s.epoch.Tick)+s.server(now)-s.epoch.At)
}

// input describes the frame at now. Time and steps never decrease: when the server's clock turns
// out to be behind, they are held until it has caught up.
func (s *serverTime) input(now time.Duration, wall time.Time, frame time.Duration) loop.Input {
	in := loop.Input{Delta: frame, Start: now, Deadline: now, Wall: wall}
	if !s.known {
		return in
	}
	game := s.gameTime(now)
	s.game = max(s.game, game)
	s.tick = s.timeline.TickAt(s.game)
	in.Tick, in.GameTime = s.tick, s.game
	to := s.game
	if s.lead.on {
		to = s.lead.follow(now, s.steps.at, game, s.timeline.Fixed.Period())
	}
	s.steps.advance(&in, s.timeline, to)
	return in
}

// leads starts the lead of the steps once the server's clock is synchronized, and reports whether
// they lead.
func (s *serverTime) leads(now time.Duration) bool {
	if !s.lead.on && s.known && s.sync.Ready() {
		interval := max(s.timeline.Rate.Period(), s.timeline.Fixed.Period())
		s.steps.at = max(s.steps.at, s.lead.begin(now, s.gameTime(now), s.sync.RTT(), interval, s.timeline.Fixed.Period()))
		s.lead.first, _ = s.timeline.StepAt(s.steps.at)
		s.steps.start(max(s.lead.first, 1) - 1) // This frame already makes an input.
	}
	return s.lead.on
}

// age returns how long ago the server's tick was due: 0 before the clock is known.
func (s *serverTime) age(now time.Duration, tick uint64) time.Duration {
	if !s.known {
		return 0
	}
	return s.server(now) - s.timeline.Deadline(s.epoch, tick)
}

// pace limits flushes to the tick rate, to half of it while the flushes fill the queue of a thin
// link, and to 10 Hz while the server is silent, so that a link that drops all packets is not
// filled. At 60 Hz flushes with inputs need some 45 kbit/s.
type pace struct {
	period time.Duration
	next   time.Duration
	spares time.Duration // until then every second flush is left out
	full   time.Duration // since when the round trip is long, or 0
	least  time.Duration // round trip of the path without a queue
}

const (
	silence      = 500 * time.Millisecond
	silentPeriod = 100 * time.Millisecond
	// queued is how much longer than the shortest a round trip takes when packets wait in a queue.
	queued = 100 * time.Millisecond
	// fullFor is how long that lasts before a client flushes half as often: a spike does not.
	fullFor = 2 * time.Second
	// spareFor is how long it does. If the round trip is as long spareCheck after that, the path
	// itself is longer.
	spareFor   = 10 * time.Second
	spareCheck = time.Second
)

// watch records the smoothed round trip, and the shortest one of the last seconds.
func (p *pace) watch(now, srtt, least time.Duration) {
	if p.least == 0 || least < p.least {
		p.least = least
	}
	switch {
	case srtt <= p.least+queued:
		p.full = 0
	case now < p.spares:
	case p.spares > 0 && now-p.spares < spareCheck:
		p.least = least
	case p.full == 0:
		p.full = max(now, 1)
	case now-p.full >= fullFor:
		p.spares = now + spareFor
	}
}

// due reports whether a flush is due. Frames are never exactly a tick apart, so a flush that is
// slightly early counts, and one late flush is made up for.
func (p *pace) due(now, heard, early time.Duration) bool {
	period := p.period
	switch {
	case now-heard > silence:
		period = silentPeriod
	case now < p.spares:
		period *= 2
	}
	if now+early < p.next {
		return false
	}
	p.next = max(p.next, now-period) + period
	return true
}
