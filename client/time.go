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
	offset   time.Duration // server's clock − client's clock, used until sync is ready
	known    bool

	game      time.Duration // game time of the newest frame
	tick      uint64        // tick of the newest frame
	steps     stepClock
	lead      lead
	requested time.Duration
	requests  uint64
	syncJumps uint64 // number of jumps of sync at the newest frame
}

// continuity tells which part of a client's time state is kept over a new connection or a move.
type continuity int

const (
	newServer continuity = iota // none
	newRoom                     // offset and drift of the server's clock
	sameRoom                    // all
)

// welcome applies the time in a welcome; took is the duration of its handshake. It returns an error
// if the server's rates are invalid.
func (s *serverTime) welcome(now, took time.Duration, w *netloopv1.Welcome, kept continuity) error {
	line := loop.Timeline{
		Rate:  loop.Rate{Num: w.GetTickRate().GetNum(), Den: w.GetTickRate().GetDen()},
		Fixed: loop.Rate{Num: w.GetFixedRate().GetNum(), Den: w.GetFixedRate().GetDen()},
	}
	if err := line.Check(); err != nil {
		return err
	}
	server := time.Duration(w.GetServerNs())
	ahead := s.server(now) - server
	if kept == newServer || ahead < -clock.SyncJump || ahead > took+clock.SyncJump {
		// The server has another clock, or this end's clock stopped, for instance while its machine
		// slept.
		s.sync, s.lead.on = clock.Sync{}, false
	}
	if kept != sameRoom {
		*s = serverTime{sync: s.sync, steps: stepClock{skipped: s.steps.skipped}, lead: lead{jumps: s.lead.jumps, setBacks: s.lead.setBacks, backTo: s.lead.backTo}}
	}
	s.timeline, s.offset = line, server-now
	s.requests = 0 // The path may have changed, so its round trips are measured again.
	s.lead.restart()
	if e := w.GetEpoch(); e.GetTick() != 0 { // Else the room has not ticked yet: its epoch follows.
		s.epochMoved(loop.Epoch{Tick: e.GetTick(), At: time.Duration(e.GetServerNs())})
	}
	return nil
}

// epochMoved applies an epoch (see [loop.Epoch]) that the server has published. If it moves the
// server's time back by more than maxHold, the steps are set back.
func (s *serverTime) epochMoved(e loop.Epoch) {
	by := e.At - s.timeline.Deadline(s.epoch, e.Tick)
	if s.known && s.lead.on && by != 0 && s.lead.epochMoved(by) {
		s.steps.setBack(s.timeline, by)
		s.lead.setBack(s.steps.done, s.sync.RTT(), s.timeline)
	}
	s.epoch, s.known = e, true
}

// epochMoved applies an epoch to the time and to the delay of the view.
func (c *Client) epochMoved(e loop.Epoch) {
	if c.time.known {
		was := c.time.timeline.Deadline(c.time.epoch, e.Tick)
		c.views.meter.shift(e.Tick, e.At-was)
	}
	c.time.epochMoved(e)
}

// setScale sets the time scale that the server has published, which applies from a tick on. It
// returns an error for an invalid speed.
func (c *Client) setScale(t transport.TimeScale) error {
	if err := loop.CheckScale(t.Num, t.Den); err != nil {
		return err
	}
	s := loop.Scale{Num: t.Num, Den: t.Den, From: c.time.timeline.GameTime(t.Tick), To: t.At, Frac: t.Fraction}
	c.loop.SetScale(s)
	c.prediction.rescale(s)
	return nil
}

// joinScale sets the time scale of the handshake, if there is one.
func (c *Client) joinScale(t *netloopv1.TimeScale) error {
	switch {
	case t == nil:
		c.loop.SetScale(loop.Unscaled)
		return nil
	case t.GetScaledNs() > math.MaxInt64:
		return fmt.Errorf("scaled time of %d ns is out of range", t.GetScaledNs())
	}
	return c.setScale(transport.TimeScale{Num: t.GetNum(), Den: t.GetDen(), Tick: t.GetTick(), At: time.Duration(t.GetScaledNs()), Fraction: t.GetFraction()})
}

// server returns the server's monotonic time at a time of the client's clock.
func (s *serverTime) server(now time.Duration) time.Duration {
	if s.sync.Ready() {
		return s.sync.Server(now)
	}
	return now + s.offset
}

// The client requests the server's time every firstInterval until it has sent firstRequests
// requests, which fill the filter of clock.Sync. Then it requests the time every laterInterval, so
// that the clocks cannot drift apart. The intervals are not a multiple of a tick, so that requests
// are spread over the whole tick.
const (
	firstInterval = 53 * time.Millisecond
	laterInterval = 293 * time.Millisecond
	firstRequests = 40
)

// request requests the server's time when the interval has passed.
func (s *serverTime) request(now time.Duration, session *transport.Session) {
	interval := laterInterval
	if s.requests < firstRequests {
		interval = firstInterval
	}
	if s.requests > 0 && now-s.requested < interval {
		return
	}
	s.requested = now
	s.requests++
	session.RequestTime()
}

// gameTime returns the server's game time at now, by the newest epoch; it is never negative.
func (s *serverTime) gameTime(now time.Duration) time.Duration {
	return max(0, s.timeline.GameTime(s.epoch.Tick)+s.server(now)-s.epoch.At)
}

// input describes the frame at now. Time and steps never decrease: if the server's clock is found
// to be behind, they stop until it has caught up.
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
	if jumps := s.sync.Jumps(); jumps != s.syncJumps {
		s.syncJumps = jumps
		s.lead.clockMoved(s.sync.RTT(), s.timeline)
	}
	if s.lead.on {
		if s.lead.stale(now) { // A path that was bad then may be good now.
			s.lead.lower(s.sync.RTT(), s.timeline)
		}
		to = s.lead.advance(now, s.steps.at, game, s.timeline.Fixed.Period())
	}
	s.steps.advance(&in, s.timeline, to)
	return in
}

// startLead starts the lead of the steps once the server's clock is synchronized.
func (s *serverTime) startLead(now time.Duration) {
	if !s.lead.on && s.known && s.sync.Ready() {
		s.steps.at = max(s.steps.at, s.lead.begin(now, s.gameTime(now), s.sync.RTT(), s.timeline))
		s.lead.first, _ = s.timeline.StepAt(s.steps.at)
		s.steps.start(max(s.lead.first, 1) - 1) // This frame already makes an input.
	}
}

// age returns the time since the server's tick was due, or 0 before the clock is known.
func (s *serverTime) age(now time.Duration, tick uint64) time.Duration {
	if !s.known {
		return 0
	}
	return s.server(now) - s.timeline.Deadline(s.epoch, tick)
}

// flushPeriod returns the period of flushes: a tick. In a room with ticks below 10 Hz it is a fixed
// step if that is shorter, but at least 100 ms, because a packet repeats the inputs of a quarter of
// a second.
func flushPeriod(line loop.Timeline) time.Duration {
	return min(line.Rate.Period(), max(line.Fixed.Period(), maxInterval))
}

// pace limits flushes to the rate of flushPeriod, to half of it while the flushes fill the queue of
// a slow link, and to 10 Hz while the server is silent, so that they do not fill a link that drops
// all packets. At 60 Hz flushes with inputs need some 45 kbit/s.
type pace struct {
	period      time.Duration
	next        time.Duration
	halvedUntil time.Duration // every second flush is skipped until this time
	queueSince  time.Duration // time from which the round trip has been long, or 0
	minRTT      time.Duration // round trip of the path without a queue
}

const (
	silentAfter  = 500 * time.Millisecond
	silentPeriod = 100 * time.Millisecond
	// queueDelay is the time by which a round trip exceeds the shortest one if packets queue.
	queueDelay = 100 * time.Millisecond
	// halveAfter is the duration of such round trips after which a client flushes half as often.
	halveAfter = 2 * time.Second
	// halvedFor is the duration of the halved rate. If a round trip within checkAfter after that
	// is still as long, the path itself has become longer, and minRTT is set again.
	halvedFor  = 10 * time.Second
	checkAfter = time.Second
)

// watch decides whether the rate of flushes is halved, from the smoothed round trip and the
// shortest one of the last seconds.
func (p *pace) watch(now, srtt, least time.Duration) {
	if p.minRTT == 0 || least < p.minRTT {
		p.minRTT = least
	}
	switch {
	case srtt <= p.minRTT+queueDelay:
		p.queueSince = 0
	case now < p.halvedUntil:
	case p.halvedUntil > 0 && now-p.halvedUntil < checkAfter:
		p.minRTT = least
	case p.queueSince == 0:
		p.queueSince = max(now, 1)
	case now-p.queueSince >= halveAfter:
		p.halvedUntil = now + halvedFor
	}
}

// due reports whether a flush is due. Frames are never exactly a tick apart, so a flush may be
// slightly early, and the next flush after a late one comes earlier.
func (p *pace) due(now, arrival, early time.Duration) bool {
	period := p.period
	switch {
	case now-arrival > silentAfter:
		period = silentPeriod
	case now < p.halvedUntil:
		period *= 2
	}
	if now+early < p.next {
		return false
	}
	p.next = max(p.next, now-period) + period
	return true
}

// stepClock selects the fixed steps of a frame. It uses game time, and not ticks or frames, so that
// steps are evenly spaced at any rates of frames, ticks and steps.
type stepClock struct {
	started bool
	at      time.Duration // the game time to which it has advanced
	done    uint64        // number of steps that ran or were skipped
	skipped uint64        // number of skipped steps
}

// A frame runs at most as many fixed steps as maxStepTime contains, or minSteps if that is more.
// More steps would make a slow client slower, so further steps are skipped and counted.
const (
	maxStepTime = 125 * time.Millisecond
	minSteps    = 8
)

// start sets the last step of a clock that has not advanced yet.
func (c *stepClock) start(done uint64) {
	if !c.started {
		c.started, c.done = true, done
	}
}

// advance moves to a game time, and stores the steps that the frame runs up to that time in the
// loop's input in. Steps before the client's first frame are skipped.
func (c *stepClock) advance(in *loop.Input, line loop.Timeline, to time.Duration) {
	c.at = max(c.at, to)
	target, fraction := line.StepAt(c.at)
	c.start(target)
	behind := target - c.done
	skipped := behind - min(behind, uint64(max(maxStepTime/max(line.Fixed.Period(), 1), minSteps)))
	c.skipped += skipped
	in.FixedSteps, in.FirstFixedStep = int(behind-skipped), c.done+skipped+1
	in.FixedDelta, in.Fraction = line.Fixed.Period(), fraction
	c.done = target
}

// setBack sets the steps back by a time: later steps run again.
func (c *stepClock) setBack(line loop.Timeline, by time.Duration) {
	c.at = max(c.at-by, 0)
	c.done, _ = line.StepAt(c.at)
}
