package loadtest

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"
)

// status is the state of a run at a point of its series, for the terminal view.
type status struct {
	Point
	title       string
	phase       phase
	done, whole time.Duration // of the phase; whole is 0 if its length is not known
	wanted      int           // clients
	stage       string        // of the schedule
	tick        *float64      // period of the first bot's room
	times       []timesRow
	own         Process // of the load client, in the last second
	late        *float64
	joined      int64
	errors      tally       // failed calls and joins, lost connections: of the whole run
	judged      []Judgement // of the measured window until now; nil before it
}

// timesRow has the distributions of one time, of the last second and of the measured window until
// now.
type timesRow struct {
	name           string
	second, window Spread
}

// status completes a point. Percentiles of the window leave out its first and incomplete second.
func (s *sampler) status(p *Point, where *progress) *status {
	r, now := s.run, s.run.now()
	own := ownUsage()
	st := &status{
		Point: *p, title: r.opts.title(r.bot.Schema().Name()), wanted: r.opts.clients, tick: millis(r.tick),
		own: process(s.own, own, now-s.ownAt), late: percentile(s.sum.lateness, 99), joined: r.admitted.Load(),
	}
	s.own, s.ownAt = own, now
	st.done, st.whole = where.progress(now)
	st.phase = where.phase
	at := max(0, now-time.Duration(r.window.from.Load()))
	if st.phase < measuring {
		at = 0
	}
	st.stage = r.opts.stage(min(at, r.opts.duration))
	s.reasons.merge(s.sum.reasons)
	r.mu.Lock()
	st.errors = maps.Clone(r.dialErrors)
	r.mu.Unlock()
	st.errors.merge(s.reasons)
	if n := r.drops.Load(); n > 0 {
		st.errors["connection broken: the client reconnects"] = uint64(n)
	}
	so := s.soFar(at)
	second := Server{}
	if s.last != nil {
		second = serverResult(s.last)
	}
	st.times = []timesRow{
		{"snapshot interval", spread(s.sum.interval), so.Snapshots.Interval}, {"snapshot age", spread(s.sum.age), so.Snapshots.Age},
		{"call latency", spread(s.sum.rtt), spread(s.window.rtt)}, {"server tick", second.Tick, so.Server.Tick},
		{"server lateness", second.Lateness, so.Server.Lateness}, {"own lateness", spread(s.sum.lateness), so.Generator.Lateness},
	}
	if st.phase >= measuring {
		st.judged = []Judgement{}
		for i := range r.opts.bounds {
			st.judged = append(st.judged, r.opts.bounds[i].judge(so))
		}
	}
	return st
}

// soFar returns the known figures of the measured window, which began before a time. Others,
// such as the server's processor time, are known at the end.
func (s *sampler) soFar(length time.Duration) *Result {
	r, w := s.run, s.window
	so := &Result{
		Snapshots: Snapshots{Rate: clientRate(s.sum.received, length), Interval: spread(w.interval), Age: spread(w.age)},
		RPC:       RPC{RTT: latency(w.rtt)}, Generator: Generator{Lateness: spread(w.lateness)},
		Clients: Clients{Wanted: r.opts.clients, Connected: int(r.entered.Load()), Disconnected: int(r.gone.Load() - r.disturbed.Load()), Drops: int(r.drops.Load())},
	}
	so.Run.Tick, so.Network.RTT = millis(r.tick), median(s.sum.trips)
	r.mu.Lock()
	so.Joins = r.joins.result(nil, nil)
	r.mu.Unlock()
	if length == 0 {
		return so
	}
	if d := serverTicks(r.before.ticks, s.ticks, func(string) {}); d != nil {
		so.Server = serverResult(d)
	}
	return so
}

// survey records the state of each client for [sampler.soFar]: its snapshots in the measured window
// until now, and its round trip.
func (w *worker) survey(to *live) {
	from := time.Duration(w.run.window.from.Load())
	until := min(w.run.now(), time.Duration(w.run.window.to.Load()))
	for _, p := range w.players {
		if p.gone || p.meter.slow {
			continue
		}
		if n, ok := p.throughout(until-max(p.started, from), until-from); ok {
			to.received = append(to.received, n)
		}
		if !p.meter.blind {
			to.trips = append(to.trips, p.stats.RTT)
		}
	}
}

// title describes a run.
func (o *options) title(game string) string {
	return fmt.Sprintf("%s · %s", game, o.addr)
}

// stage describes the schedule of the number of clients, after a time of the measured window.
func (o *options) stage(at time.Duration) string {
	var parts []string
	add := func(format string, a ...any) { parts = append(parts, fmt.Sprintf(format, a...)) }
	planned := 0
	for n := range o.clients {
		if late := o.joinShare(n); late <= 0 || time.Duration(late*float64(o.duration)) <= at {
			planned++
		}
	}
	seconds := func(d time.Duration) string { return d.Round(time.Second).String() }
	switch o.schedule {
	case stepwise:
		length := o.duration / loadSteps
		step := min(int(at/length)+1, loadSteps)
		add("step %d of %d: %d of %d clients", step, loadSteps, planned, o.clients)
		if step < loadSteps {
			parts[0] += ", the next in " + seconds(time.Duration(step)*length-at)
		}
	case linear:
		add("line: %d of %d clients", planned, o.clients)
	default:
		add("const: %d clients", o.clients)
	}
	if o.churn != "" {
		add("churn %s", o.churn)
	}
	switch {
	case o.stormAt < 0:
	case at < o.stormAt:
		add("storm in %s", seconds(o.stormAt-at))
	default:
		add("storm %s ago", seconds(at-o.stormAt))
	}
	if o.slow != "" {
		add("slow readers %s", o.slow)
	}
	return strings.Join(parts, " · ")
}

// show passes a point to the terminal view, or prints a line of progress if one is due.
func (s *sampler) show(ctx context.Context, p *Point, where *progress) {
	r, now := s.run, s.run.now()
	switch every := lineEvery; {
	case ctx.Err() != nil: // The run has ended.
	case r.screen.showsStatus():
		r.screen.status(s.status(p, where))
	case r.opts.soak && now-s.shown >= soakEvery:
		r.screen.progress(where.line(p) + s.processes())
		s.shown = now
	case !r.opts.soak && now-s.shown >= every:
		r.screen.progress(where.line(p))
		s.shown = now
	}
}
