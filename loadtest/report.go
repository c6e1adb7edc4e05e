package loadtest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/netloop/netloop/internal/metrics/ticks"
	"github.com/netloop/netloop/internal/netem"
)

// report is the [Result], and the further figures that only the text for people shows.
type report struct {
	Result

	length      time.Duration // of the measured window
	played      time.Duration // sum of all clients; 0: length for each client with snapshots
	dead        bool          // the server stopped answering
	interrupted bool
	rec         *recorder
	tick        time.Duration
	network     *netem.Stats // nil without --simulate

	dialErrors, lost, notEqual tally
	converged                  int // clients
}

// report adds up the records of the workers, which have ended.
func (r *run) report(series Series) *report {
	rep := &report{
		rec: newRecorder(), length: r.window.length(), interrupted: r.interrupted, dead: r.dead, tick: r.tick,
		dialErrors: r.dialErrors, lost: tally{}, notEqual: tally{},
	}
	var received []uint64
	var trips []time.Duration
	verifying := 0
	for _, w := range r.workers {
		rep.rec.merge(w.rec)
		rep.lost.merge(w.lost)
		rep.notEqual.merge(w.notEqual)
		rep.played += w.played
		for _, p := range w.players {
			if p.meter.slow || p.again && p.gone {
				continue
			}
			at := p.present(&r.window)
			rep.played += at
			if n, ok := p.throughout(at, rep.length); ok {
				received = append(received, n)
			}
			if !p.meter.blind {
				verifying++
				trips = append(trips, p.stats.RTT)
			}
			if p.verify == equal {
				rep.converged++
			}
		}
	}
	rep.Clients = Clients{
		Wanted: r.opts.clients, Connected: int(r.entered.Load()), Failed: int(r.failed.Load()), Disconnected: int(r.gone.Load() - r.disturbed.Load()),
		Verifying: verifying, Drops: int(r.drops.Load()), Resumes: int(r.resumes.Load()),
		SlowReaders: len(r.slowReaders), SlowDrops: int(r.slowDrops.Load()),
	}
	rep.fill(received)
	rep.Run, rep.Series = r.describe(rep), series
	rep.Joins = r.joins.result(r.dialErrors, rep.lost)
	rep.serverFigures(&r.before, &r.after, r.screen.note)
	rep.Network.RTT = median(trips)
	rep.Generator.Process = process(r.before.own, r.after.own, rep.length)
	rep.Simulated, rep.network = simulated(r.opts.network, r.simulated), r.simulated
	rep.judge(r.opts.bounds)
	if r.opts.soak {
		rep.soaked()
	}
	return rep
}

// describe returns the settings and the circumstances of a run.
func (r *run) describe(rep *report) Run {
	since := func(at int64) float64 { return (time.Duration(at) - r.began).Round(time.Millisecond).Seconds() }
	tags := r.opts.tags
	if tags == nil {
		tags = map[string]string{}
	}
	d := Run{
		Command: r.opts.command, Flags: r.opts.values, Tags: tags, Seed: r.opts.seed, Begin: r.start.UTC().Truncate(time.Millisecond),
		Tick: millis(r.tick), Schedule: fmt.Sprintf("%016x", rep.rec.schedule), OnTime: r.onTime, Interrupted: r.interrupted, Machine: thisMachine(), Build: thisBuild(),
	}
	if rep.length > 0 {
		d.From, d.To = since(r.window.from.Load()), since(r.window.to.Load())
	}
	return d
}

// median returns the median of the known durations, in milliseconds.
func median(all []time.Duration) *float64 {
	all = slices.DeleteFunc(all, func(d time.Duration) bool { return d <= 0 })
	if len(all) == 0 {
		return nil
	}
	slices.Sort(all)
	return millis(all[(len(all)-1)/2])
}

// fill derives the result from the records and from the number of snapshots of each client.
func (r *report) fill(received []uint64) {
	rec := r.rec
	r.SchemaVersion = SchemaVersion
	r.RPC = RPC{Sent: rec.sent, Answered: rec.answered, RTT: latency(rec.rtt)}
	r.Snapshots = Snapshots{
		Received: rec.snapshots, Rate: clientRate(received, r.length),
		Interval: spread(rec.interval), Age: spread(rec.age),
	}
	if played := cmp.Or(r.played, time.Duration(len(received))*r.length); played > 0 {
		r.Snapshots.Bytes = hundredths(float64(rec.bytes) / played.Seconds())
	}
	r.Counts = rec.counts
	r.Network = Network{Lost: rec.feel.lost, HeldBack: rec.feel.held}
	r.Generator = Generator{Lateness: spread(rec.lateness)}
	r.Feel = rec.feel.result(r.Clients.Verifying, r.length)
	r.Converged = r.converged > 0 && r.converged == r.Clients.Verifying
	r.Saturated = saturated(rec, r.tick)
	r.Histograms = map[string]Histogram{}
	for name, h := range map[string]*hdrhistogram.Histogram{
		"snapshot.age": rec.age, "snapshot.interval": rec.interval, "call.latency": rec.rtt,
		"generator.lateness": rec.lateness, "feel.view_delay": rec.feel.delay,
	} {
		if h.TotalCount() > 0 {
			r.Histograms[name] = exact(h)
		}
	}
}

// serverFigures adds the figures that the server itself counts between two readings.
func (r *report) serverFigures(before, after *reading, note func(string)) {
	d := serverTicks(before.ticks, after.ticks, note)
	if d == nil {
		return
	}
	r.Server = serverResult(d)
	for name, h := range map[string]*ticks.Histogram{"server.tick": &d.Tick, "server.lateness": &d.Lateness} {
		var e Histogram
		if text, err := h.MarshalJSON(); err == nil && json.Unmarshal(text, &e) == nil && h.Count() > 0 {
			r.Histograms[name] = e
		}
	}
	r.Worst = worst(before.slow, after.slow)
	a, b := before.metrics, after.metrics
	r.Server.FlushLag = b.upperBound(a, flushLag, 0.99)
	r.Server.Process = process(serverUsage(a), serverUsage(b), r.length)
	n := &r.Network
	n.Chokes = b.grown(a, "netloop_choke_total")
	for series, to := range map[string]**float64{
		`netloop_transport_bytes_total{direction="out"}`: &n.BytesDown, `netloop_transport_bytes_total{direction="in"}`: &n.BytesUp,
		`netloop_transport_packets_total{direction="out"}`: &n.PacketsDown, `netloop_transport_packets_total{direction="in"}`: &n.PacketsUp,
	} {
		if x := b.grown(a, series); x != nil && r.played > 0 {
			*to = hundredths(*x / r.played.Seconds())
		}
	}
}

// serverTicks returns the server's ticks between two readings of /ticks, or nil.
func serverTicks(before, after *ticks.Snapshot, note func(string)) *ticks.Snapshot {
	if before == nil || after == nil {
		return nil
	}
	d, err := after.Sub(before)
	if err != nil {
		note("--admin: " + err.Error())
		return nil
	}
	return &d
}

// serverResult returns the figures of the server's ticks in the window.
func serverResult(d *ticks.Snapshot) Server {
	s := Server{
		Tick: spreadOf(&d.Tick), Lateness: spreadOf(&d.Lateness),
		Overruns: &d.Overruns, DroppedTicks: &d.DroppedTicks, TickRate: hundredths(d.RateHz()),
	}
	if d.Budget > 0 {
		s.Budget = millis(d.Budget)
	}
	return s
}

// shortfalls lists the reasons why the run is not a success, and is empty for a success.
func (r *report) shortfalls() []string {
	all := []string{}
	add := func(format string, a ...any) { all = append(all, fmt.Sprintf(format, a...)) }
	c := r.Clients
	if r.interrupted {
		add("interrupted: the figures are of what was measured until then")
	}
	if r.dead {
		add("the server stopped answering: no client was connected for %v", deadAfter)
	}
	if c.Connected < c.Wanted {
		add("%d of %d clients did not connect%s", c.Wanted-c.Connected, c.Wanted, because(r.dialErrors))
	}
	if c.Disconnected > 0 {
		add("%d of %d clients lost the connection%s", c.Disconnected, c.Connected, because(r.lost))
	}
	if !r.Converged && !r.interrupted && !r.dead {
		add("%d of %d clients could not find their state equal to the server's%s", r.Clients.Verifying-r.converged, r.Clients.Verifying, because(r.notEqual))
	}
	if r.Saturated {
		own := r.Generator.Process
		add("the generator was too slow, so the figures mean nothing: p99 of its own lateness %s ms (at most %s, one tick), %d of %d intended calls sent (at least 99 %%), %s of %s cores used: use fewer --clients, or more cores",
			figure(percentile(r.rec.lateness, 99)), figure(millis(r.tick)), r.rec.sent, r.rec.intended, figure(own.CPU), cores(own.Cores))
	}
	return all
}

// cores prints a number of cores.
func cores(x *float64) string { return show(x, asCount) }

// sortedKeys returns the keys of a map in their order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// because lists reasons, the most frequent first.
func because(t tally) string {
	reasons := slices.SortedFunc(maps.Keys(t), func(a, b string) int {
		return cmp.Or(cmp.Compare(t[b], t[a]), cmp.Compare(a, b))
	})
	const most = 3 // keeps a line readable
	text, sep := "", ": "
	for _, reason := range reasons[:min(len(reasons), most)] {
		text += fmt.Sprintf("%s%d× %s", sep, t[reason], reason)
		sep = "; "
	}
	if len(reasons) > most {
		text += "; and other reasons"
	}
	return text
}
