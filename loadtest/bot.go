package loadtest

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
)

// Bot plays a game. One Bot plays all clients of a load test, so it keeps the state of a client in
// variables of Start. It may implement [Tokens] too.
type Bot interface {
	// Schema returns the game's schema, the same value that its server uses.
	Schema() *netloop.Schema
	// Join returns the join parameters of client n, counted from 0: see client.Config.Join. It is
	// called from several goroutines.
	Join(n int) any
	// Start prepares a client to play: it registers systems with c.On, handlers, watchers, and
	// calls with [Calls]. It runs once per client, before the client's first frame and on the
	// goroutine of its frames. That goroutine also runs the frames of other clients: neither Start
	// nor its callbacks may wait.
	Start(c *client.Client, m *Meter)
}

// Profiles is an optional interface of a [Bot] with several behaviours, such as play and idle, that
// --profile selects. The first is the default.
type Profiles interface{ Profiles() []string }

// Meter is a [Bot]'s access to the load test for one client: the client's number and random
// numbers, scheduled calls, and measurements. Only the goroutine of the client's frames may use it.
type Meter struct {
	n      int
	rand   *rand.Rand
	client *client.Client
	worker *worker
	offset time.Duration // of the client's clock from the run's
	blind  bool
	slow   bool // of --slow-readers: its figures do not count
	varies bool // by the plan it joins, leaves or rejoins within the window: see Run.Schedule
	ending bool // the run ends the client: its open calls fail, which is no error
	// anchor is the planned time of the join, on the run's clock: calls are scheduled from there,
	// so that a slow handshake does not move them.
	anchor  time.Duration
	profile string

	schedules []schedule
	pending   int // measured calls that wait for their answer
}

// N returns the number of the client, from 0.
func (m *Meter) N() int { return m.n }

// Blind reports whether the client only acknowledges the received state, and has no objects: see
// --verify. The bot should send about as much as otherwise.
func (m *Meter) Blind() bool { return m.blind }

// Profile returns the client's profile, of those that the bot's [Profiles] lists; empty without.
func (m *Meter) Profile() string { return m.profile }

// Rand returns the client's own random numbers, seeded by --seed and N, so that a bot without other
// random sources decides the same in every run.
func (m *Meter) Rand() *rand.Rand { return m.rand }

// schedule is an endless series of calls, one per period. Its times are on the run's clock.
type schedule struct {
	next   time.Duration
	period time.Duration
	ask    func(t *netloop.Tick, meant time.Duration, measured bool)
}

const (
	// maxCallRate is the maximum of one schedule, in calls per second: above it most frames would
	// make many calls, and more clients are the better load.
	maxCallRate = 1000
	// maxBurst bounds the calls of a schedule in one frame. Further due calls are skipped and
	// count as not sent: a generator that is that far behind is saturated, and must not flood the
	// server when it continues.
	maxBurst = 64
)

// Calls makes the client call k perSecond times a second, from a random phase on. It panics unless
// perSecond is above 0 and at most 1 000. q returns the request of each call, and runs in the stage
// Update of a frame. Use Calls in [Bot] Start; it may be used several times.
//
// The times are fixed beforehand, independent of the answers. A call's latency runs from its
// scheduled time until the frame in which its answer is delivered: it includes the wait for the
// client's next frame, as a key press does, and any delay of the client. Refused and unanswered
// calls have no latency.
func Calls[Q, R any](m *Meter, perSecond float64, k *netloop.Call[Q, R], q func(*netloop.Tick) Q) {
	m.schedule(perSecond, func(t *netloop.Tick, meant time.Duration, measured bool) {
		client.Call(m.client, k, q(t), func(_ *netloop.Tick, _ R, err error) { m.answered(meant, measured, err) })
	})
}

// Begin measures a call that the bot makes now because its game requires it: a turn, for instance.
// Call the returned function at the end of the call, with the call's error or nil. The latency runs
// from Begin, so a bot that waits for a slow server asks less often: if the game permits, use
// [Calls], which keep their schedule.
func (m *Meter) Begin() (ended func(error)) {
	return m.begin(m.now(), m.now)
}

func (m *Meter) begin(at time.Duration, now func() time.Duration) func(error) {
	measured := m.measures(at)
	if measured {
		m.worker.rec.intended++
		m.worker.rec.sent++
		m.pending++
	}
	return func(err error) { m.took(now()-at, measured, err) }
}

// Ask makes one call when it is the bot's turn, and measures it as [Meter.Begin] does. A bot that
// asks again in then is a closed loop: it never has more than one call under way, and asks a slow
// server less often.
func Ask[Q, R any](m *Meter, k *netloop.Call[Q, R], q Q, then func(*netloop.Tick, R, error)) {
	ended := m.Begin()
	client.Call(m.client, k, q, func(t *netloop.Tick, r R, err error) {
		ended(err)
		then(t, r, err)
	})
}

// Count counts one event of the game, such as an ended match: the report gives the number of events
// in the measured window, by name. Use at most 32 names: further ones are counted together, as
// "other reasons".
func (m *Meter) Count(name string) { m.count(name, m.now()) }

func (m *Meter) count(name string, at time.Duration) {
	if m.measures(at) {
		m.worker.rec.counts.add(name)
	}
}

func (m *Meter) schedule(perSecond float64, ask func(*netloop.Tick, time.Duration, bool)) {
	if !(perSecond > 0 && perSecond <= maxCallRate) {
		panic(fmt.Sprintf("loadtest: Calls with %v per second: use more than 0 and at most %d", perSecond, maxCallRate))
	}
	if len(m.schedules) == 0 {
		m.client.On(netloop.Update, "loadtest.calls", m.dispatch)
	}
	period := time.Duration(float64(time.Second) / perSecond)
	phase := time.Duration(m.rand.Float64() * float64(period))
	m.schedules = append(m.schedules, schedule{next: following(m.anchor+phase, period, m.now()), period: period, ask: ask})
}

// following returns the first time in the series first, first+period, first+2·period, … that is
// not before at.
func following(first, period, at time.Duration) time.Duration {
	if first >= at {
		return first
	}
	if over := (at - first) % period; over > 0 {
		return at + period - over
	}
	return at
}

// measures reports whether an event of the client at this time counts in the result.
func (m *Meter) measures(at time.Duration) bool { return !m.slow && m.worker.run.window.holds(at) }

// now returns the time on the run's clock.
func (m *Meter) now() time.Duration { return m.client.Now() - m.offset }

// dispatch is the system loadtest.calls: it makes the calls that are due.
func (m *Meter) dispatch(t *netloop.Tick) { m.due(t, m.now()) }

func (m *Meter) due(t *netloop.Tick, now time.Duration) {
	for i := range m.schedules {
		s := &m.schedules[i]
		for made := 0; s.next <= now; s.next += s.period {
			measured := m.measures(s.next)
			if measured {
				m.intend(i, s.next)
			}
			if made == maxBurst {
				continue
			}
			made++
			if measured {
				m.worker.rec.sent++
				m.pending++
			}
			s.ask(t, s.next, measured)
		}
	}
}

// intend counts a scheduled call of the window.
func (m *Meter) intend(schedule int, at time.Duration) {
	rec := m.worker.rec
	if rec.intended++; !m.varies {
		rec.digest(m.n, schedule, at-time.Duration(m.worker.run.window.from.Load()))
	}
}

// answered records the end of a call.
func (m *Meter) answered(meant time.Duration, measured bool, err error) {
	m.took(m.now()-meant, measured, err)
}

func (m *Meter) took(latency time.Duration, measured bool, err error) {
	rec := m.worker.rec
	if measured {
		m.pending--
	}
	switch {
	case m.ending && err != nil:
		if measured { // It counts neither as sent nor as unanswered.
			rec.intended--
			rec.sent--
		}
		return
	case err != nil:
		m.worker.live.errors++
		m.worker.live.reasons.add(reason(err))
	}
	switch {
	case err != nil && measured:
		rec.callErrors.add(reason(err))
	case err != nil:
	default:
		record(m.worker.live.rtt, latency)
		if measured {
			rec.answered++
			record(rec.rtt, latency)
		}
	}
}
