package loadtest

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/netloop/netloop/internal/tui"
)

// orDash formats a value, or a dash for an unknown one.
func orDash[T any](x *T, format func(T) string) string {
	if x == nil {
		return "–"
	}
	return format(*x)
}

// figure formats a figure with two decimals, or a dash for an unknown one.
func figure(x *float64) string {
	return orDash(x, func(x float64) string { return fmt.Sprintf("%.2f", x) })
}

// writeSummary prints the report for a person.
func writeSummary(w io.Writer, o *options, r *report) {
	writeVerdict(w, r)
	fmt.Fprintf(w, "\n%d clients on %s, measured for %v, seed %d\n\n", r.Clients.Connected, o.addr, r.length.Round(10*time.Millisecond), o.seed)
	writeCounts(w, o, r)
	fmt.Fprintln(w)
	writeTimes(w, r)
	writeTrends(w, r.Growth)
	writeWorst(w, r.Worst)
}

// writeVerdict prints first whether the figures mean anything, then each threshold, then the other
// reasons against the run.
func writeVerdict(w io.Writer, r *report) {
	v := &r.Verdict
	if !v.Valid {
		fmt.Fprint(w, "INVALID  INVALID  INVALID  INVALID  INVALID  INVALID  INVALID\n\n")
	}
	if v.Pass {
		fmt.Fprintln(w, "OK: every client connected and stayed, every state that was compared equals the server's, and the generator kept up.")
	} else {
		fmt.Fprintf(w, "NOT OK (exit %d):\n", v.Exit)
	}
	for _, why := range v.Reasons {
		fmt.Fprintf(w, "  - %s\n", why)
	}
	for _, j := range v.Thresholds {
		if j.Met {
			fmt.Fprintf(w, "  ✓ %s: %s\n", j.Threshold, show(j.Value, unit(j.Unit)))
		}
	}
}

// writeWorst prints the slowest ticks.
func writeWorst(w io.Writer, all []WorstTick) {
	if len(all) == 0 {
		return
	}
	fmt.Fprint(w, "\nworst ticks\n")
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, t := range all {
		fmt.Fprintf(tab, "  %d\t%.2f ms\tof it %.2f %s at %s\t%s\n", t.Tick, t.Duration, t.Cost, t.System, t.Stage, t.Cause)
	}
	_ = tab.Flush() // Write errors are ignored, as with any print.
}

// writeCounts prints the counts, one subject per line.
func writeCounts(w io.Writer, o *options, r *report) {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(subject, format string, a ...any) {
		fmt.Fprintf(tab, "%s\t%s\n", subject, fmt.Sprintf(format, a...))
	}
	c, s := r.Clients, r.Snapshots
	line("clients", "%d wanted, %d connected, %d failed, %d disconnected, %d drops, %d resumed", c.Wanted, c.Connected, c.Failed, c.Disconnected, c.Drops, c.Resumes)
	if c.SlowReaders > 0 {
		line("slow readers", "%d, whose connections broke %d times", c.SlowReaders, c.SlowDrops)
	}
	line("snapshots", "%s received, per client %s Hz (p50), %s Hz (min), %s kB/s", tui.Count(s.Received), figure(s.Rate.P50), figure(s.Rate.Min), kilo(s.Bytes))
	line("calls", "%s sent, %s answered%s", tui.Count(r.RPC.Sent), tui.Count(r.RPC.Answered), because(r.rec.callErrors))
	if len(r.Counts) > 0 {
		line("game", "%s", happened(r.Counts))
	}
	writeFeel(line, &r.Feel)
	line("joins", "%s admitted, %s a second%s", tui.Count(r.Joins.Admitted), figure(r.Joins.Rate), because(r.Joins.Refused))
	n := &r.Network
	line("network", "%s down, %s up per client and second, %s and %s packets; %s packets lost, %s snapshots held back, %s chokes; RTT %s ms",
		show(n.BytesDown, inBytes), show(n.BytesUp, inBytes), figure(n.PacketsDown), figure(n.PacketsUp), tui.Count(n.Lost), tui.Count(n.HeldBack), show(n.Chokes, asCount), figure(n.RTT))
	line("server", "%s ticks/s, %s overruns, %s dropped ticks%s", figure(r.Server.TickRate), orDash(r.Server.Overruns, tui.Count), orDash(r.Server.DroppedTicks, tui.Count), unknown(r.Server, o.admin != ""))
	writeProcess(line, "", &r.Server.Process)
	writeProcess(line, "generator", &r.Generator.Process)
	if r.network != nil {
		line("simulated", "%s", r.Simulated.Network)
		line("", "%s", r.network)
	}
	line("converged", "%s (%d of %d clients%s)", yesNo(r.Converged), r.converged, c.Verifying, blind(c))
	line("saturated", "%s", yesNo(r.Saturated))
	_ = tab.Flush() // Write errors are ignored, as with any print.
}

// writeProcess prints the resources of a process, and none if they are unknown.
func writeProcess(line func(subject, format string, a ...any), name string, p *Process) {
	if *p != (Process{}) {
		line(name, "%s of %s cores, %s, %s goroutines, %s garbage collections", figure(p.CPU), cores(p.Cores), show(p.Memory, inBytes), show(p.Goroutines, asCount), show(p.GCCycles, asCount))
	}
}

// happened lists the bots' counts, by name.
func happened(counts map[string]uint64) string {
	var all []string
	for _, name := range sortedKeys(counts) {
		all = append(all, tui.Count(counts[name])+" "+name)
	}
	return strings.Join(all, ", ")
}

// blind describes the clients that only acknowledged.
func blind(c Clients) string {
	if c.Verifying == c.Connected {
		return ""
	}
	return fmt.Sprintf(" that read their state, %d acknowledged it", c.Connected-c.Verifying)
}

// writeFeel prints the figures of Feel, and none for a game without inputs.
func writeFeel(line func(subject, format string, a ...any), f *Feel) {
	if f.Starved != nil {
		line("drawn", "%s %% of frames without a neighbour", percent(f.Starved))
	}
	if f.Inputs == 0 {
		return
	}
	missed := float64(f.InputsMissed) / float64(f.Inputs)
	line("inputs", "%s made, %s missed (%s %%), %s bytes in a datagram", tui.Count(f.Inputs), tui.Count(f.InputsMissed), percent(&missed), figure(f.InputBytes))
	line("own ship", "drawn %s frames after the input (p50), %s (p99)", frames(f.Reaction.P50), frames(f.Reaction.P99))
	line("predicted", "%s times a minute wrongly, %s of them for late inputs, off by %s (p50), %s (p99)",
		figure(f.Mispredicted), figure(f.MispredictedLate), figure(f.Correction.P50), figure(f.Correction.P99))
	if f.Hits > 0 {
		confirmed := float64(f.Confirmed) / float64(f.Hits)
		line("hits", "%s seen by the shooter, %s confirmed (%s %%)", tui.Count(f.Hits), tui.Count(f.Confirmed), percent(&confirmed))
	}
}

// percent prints a share.
func percent(x *float64) string {
	p := *x * 100
	return figure(&p)
}

func frames(x *float64) string {
	return orDash(x, func(x float64) string { return fmt.Sprintf("%.0f", x) })
}

// writeTimes prints the distributions, in milliseconds.
func writeTimes(w io.Writer, r *report) {
	tab := tabwriter.NewWriter(w, 0, 0, 3, ' ', tabwriter.AlignRight)
	row := func(cells ...string) { fmt.Fprintln(tab, strings.Join(cells, "\t")+"\t") }
	row("milliseconds", "p50", "p90", "p99", "p99.9", "max")
	rtt := r.RPC.RTT
	row("call latency", figure(rtt.P50), figure(rtt.P90), figure(rtt.P99), figure(rtt.P999), figure(rtt.Max))
	for _, x := range []struct {
		name string
		of   Spread
	}{
		{"snapshot interval", r.Snapshots.Interval}, {"snapshot age", r.Snapshots.Age}, {"view delay", r.Feel.Delay}, {"clock error", r.Feel.ClockError},
		{"server tick", r.Server.Tick}, {"server lateness", r.Server.Lateness}, {"join", r.Joins.Latency}, {"own lateness", r.Generator.Lateness},
	} {
		row(x.name, figure(x.of.P50), "", figure(x.of.P99), figure(x.of.P999), figure(x.of.Max))
	}
	if r.Server.Budget != nil {
		row("tick budget", "", "", "", "", figure(r.Server.Budget))
	}
	_ = tab.Flush() // As above.
}

func kilo(bytes *float64) string {
	return orDash(bytes, func(x float64) string { return fmt.Sprintf("%.1f", x/1000) })
}

func unknown(s Server, asked bool) string {
	if s.TickRate == nil && !asked {
		return " (--admin URL tells)"
	}
	return ""
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
