package loadtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/netloop/netloop/internal/metrics/ticks"
	"github.com/netloop/netloop/internal/netem"
)

// report is the [Result], and the further figures that only the text for people shows.
type report struct {
	Result

	length      time.Duration // of the measured window
	interrupted bool
	rec         *recorder
	tick        time.Duration
	network     *netem.Stats // nil without --simulate

	dialErrors, lost, notEqual tally
	converged                  int // clients
}

// report adds up the records of the workers, which have ended.
func (r *run) report() *report {
	rep := &report{
		rec: newRecorder(), length: r.window.length(), interrupted: r.interrupted, tick: r.tick,
		dialErrors: r.dialErrors, lost: tally{}, notEqual: tally{},
	}
	var received []uint64
	verifying := 0
	for _, w := range r.workers {
		rep.rec.merge(w.rec)
		rep.lost.merge(w.lost)
		rep.notEqual.merge(w.notEqual)
		for _, p := range w.players {
			received = append(received, p.received)
			if !p.meter.blind {
				verifying++
			}
			if p.verify == equal {
				rep.converged++
			}
		}
	}
	rep.Clients = Clients{
		Wanted: r.opts.clients, Connected: len(received), Failed: int(r.failed.Load()), Disconnected: int(r.gone.Load()),
		Verifying: verifying, Drops: int(r.drops.Load()), Resumes: int(r.resumes.Load()),
	}
	rep.fill(received)
	rep.Server = serverResult(r.before, r.after, r.screen.note)
	rep.Simulated, rep.network = simulated(r.opts.network, r.simulated), r.simulated
	return rep
}

// fill derives the result from the records and from the number of snapshots of each client.
func (r *report) fill(received []uint64) {
	rec := r.rec
	r.RPC = RPC{Sent: rec.sent, Answered: rec.answered, RTT: latency(rec.rtt)}
	r.Snapshots = Snapshots{
		Received: rec.snapshots, Rate: clientRate(received, r.length),
		Interval: spread(rec.interval), Age: spread(rec.age),
	}
	if n := len(received); n > 0 && r.length > 0 {
		r.Snapshots.Bytes = hundredths(float64(rec.bytes) / float64(n) / r.length.Seconds())
	}
	r.Counts = rec.counts
	r.Generator = Generator{Lateness: spread(rec.lateness)}
	r.Feel = rec.feel.result(r.Clients.Verifying, r.length)
	r.Converged = r.converged > 0 && r.converged == r.Clients.Verifying
	r.Saturated = saturated(rec, r.tick)
}

// serverResult returns the server's figures between two readings of /ticks.
func serverResult(before, after *ticks.Snapshot, note func(string)) Server {
	if before == nil || after == nil {
		return Server{}
	}
	d, err := after.Sub(before)
	if err != nil {
		note("--admin: " + err.Error())
		return Server{}
	}
	return Server{
		Tick: spreadOf(&d.Tick), Lateness: spreadOf(&d.Lateness),
		Overruns: &d.Overruns, DroppedTicks: &d.DroppedTicks, TickRate: hundredths(d.RateHz()),
	}
}

// shortfalls lists the reasons why the run is not a success, and is empty for a success.
func (r *report) shortfalls() []string {
	var all []string
	add := func(format string, a ...any) { all = append(all, fmt.Sprintf(format, a...)) }
	c := r.Clients
	if r.interrupted {
		add("interrupted: the figures are of what was measured until then")
	}
	if c.Connected < c.Wanted {
		add("%d of %d clients did not connect%s", c.Wanted-c.Connected, c.Wanted, because(r.dialErrors))
	}
	if c.Disconnected > 0 {
		add("%d of %d clients lost the connection%s", c.Disconnected, c.Connected, because(r.lost))
	}
	if !r.Converged && !r.interrupted {
		add("%d of %d clients could not find their state equal to the server's%s", r.Clients.Verifying-r.converged, r.Clients.Verifying, because(r.notEqual))
	}
	if r.Saturated {
		add("the generator was too slow, so the figures mean nothing: p99 of its own lateness %s ms (at most %s, one tick), %d of %d intended calls sent (at least 99 %%): use fewer --clients, or more cores",
			figure(percentile(r.rec.lateness, 99)), figure(millis(r.tick)), r.rec.sent, r.rec.intended)
	}
	return all
}

// because lists reasons, the most frequent first.
func because(t tally) string {
	reasons := slices.SortedFunc(maps.Keys(t), func(a, b string) int {
		if t[a] != t[b] {
			return int(t[b]) - int(t[a])
		}
		return strings.Compare(a, b)
	})
	const most = 3 // keeps a line readable
	text := ""
	for i, reason := range reasons[:min(len(reasons), most)] {
		sep := "; "
		if i == 0 {
			sep = ": "
		}
		text += fmt.Sprintf("%s%d× %s", sep, t[reason], reason)
	}
	if len(reasons) > most {
		text += "; and other reasons"
	}
	return text
}
