package loadtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/netloop/netloop/internal/clock"
)

// Search is the outcome of the command find.
type Search struct {
	SchemaVersion int `json:"schema_version"`
	// Knee is the largest number of clients at which each threshold was met; 0 is none. Broken is
	// the smallest at which one was not; 0 if the limit of the search was reached first.
	Knee   int `json:"knee"`
	Broken int `json:"broken"`
	// Saturated is the side that was at its limit in the runs with Broken: server, generator, both
	// or neither.
	Saturated   string   `json:"saturated"`
	Thresholds  []string `json:"thresholds"`
	Interrupted bool     `json:"interrupted"`
	Steps       []Step   `json:"steps"` // in the order of their runs

	// The last runs on both sides of the knee, for the page; nil without.
	met, notMet *Result
}

// Step is one run of a [Search].
type Step struct {
	Clients   int      `json:"clients"`
	Met       bool     `json:"met"`
	Reasons   []string `json:"reasons"` // why it did not
	Rate      *float64 `json:"snapshot_rate_hz"`
	Age       *float64 `json:"snapshot_age_p99_ms"`
	Tick      *float64 `json:"server_tick_p99_ms"`
	Server    *float64 `json:"server_cpu_cores"`
	Generator *float64 `json:"generator_cpu_cores"`
	Saturated string   `json:"saturated"`
}

// The defaults of a search. Those of the server need --admin.
var (
	clientBounds = []string{"snapshot.rate.p50>=99%", "snapshot.age.p99<3ticks+rtt"}
	serverBounds = []string{"server.tick.p99<50%", "server.flush.p99<1tick"}
)

const (
	findFrom      = 10
	findPrecision = 0.05            // of the knee
	findTries     = 3               // of a step
	findPause     = 3 * time.Second // or the length of a run, if that is shorter
	// findCalm is the longest pause until the server's overload has ended.
	findCalm = time.Minute
	// busy is the share of its cores from which on a process counts as saturated.
	busy = 0.9
)

// search raises the number of clients from first on by halves until try fails, and narrows the
// limit by bisection to findPrecision. Then it tries the smallest number that failed once more,
// because the machine may have been slow for minutes: if that passes, the search continues above
// it. It returns the largest number that passed, and the smallest above it that did not; 0 is none.
func search(first, most int, try func(clients int) (bool, error)) (knee, broken int, err error) {
	var failed []int // each smaller than the one before
	for {
		n, again := min(max(first, knee+(knee+1)/2), most), false
		if broken = 0; len(failed) > 0 {
			broken = failed[len(failed)-1]
			n, again = (knee+broken)/2, float64(broken-knee) <= max(1, findPrecision*float64(knee))
		}
		if again {
			n = broken
		}
		met, err := try(n)
		switch {
		case err != nil || again && !met:
			return knee, broken, err
		case !met:
			failed = append(failed, n)
			continue
		case again:
			failed = failed[:len(failed)-1]
		}
		if knee = n; n == most {
			return knee, 0, nil
		}
	}
}

// errInterrupted ends a search early.
var errInterrupted = errors.New("interrupted")

// parseFind checks the flags of find, and sets its default thresholds.
func (o *options) parseFind() error {
	if o.from < 1 || o.from > o.clients {
		return badFlag("from", o.from, "use 1 to --clients")
	}
	for _, out := range o.outputs {
		if out.format != "text" && out.format != "json" && out.format != "html" {
			return badFlag("out", out.format, "find writes text, json and html")
		}
	}
	if len(o.thresholds) == 0 {
		o.thresholds = append(o.thresholds, clientBounds...)
		if o.admin != "" {
			o.thresholds = append(o.thresholds, serverBounds...)
		}
	}
	return o.parseThresholds()
}

// find searches the knee with a run per step. A step fails only if it fails findTries times: other
// work of the machine disturbs a run, and never improves one. After a failed run it pauses, because
// an overloaded server refuses clients for a while.
func find(ctx context.Context, o *options, run func(context.Context, options) (*report, error), note func(string), pause func(context.Context)) (*Search, error) {
	s := &Search{SchemaVersion: SchemaVersion, Saturated: "neither", Thresholds: o.thresholds, Steps: []Step{}}
	try := func(n int) (bool, error) {
		with, err := o.with(n)
		if err != nil {
			return false, err
		}
		var refused error
		var failed *Result
		saturated := "neither"
		for again := range findTries {
			if again > 0 {
				pause(ctx)
			}
			rep, err := run(ctx, with)
			switch {
			case ctx.Err() != nil && rep == nil:
				return false, errInterrupted
			case err != nil && len(s.Steps) == 0:
				return false, err // There is no server, or it admits none.
			case err != nil:
				refused = err
				note(err.Error())
				continue
			}
			step := stepOf(&rep.Result, n)
			s.Steps, refused = append(s.Steps, step), nil
			note(step.String())
			if rep.interrupted {
				return false, errInterrupted
			}
			if step.Met {
				s.met = &rep.Result
				return true, nil
			}
			saturated, failed = bothSides(saturated, step.Saturated), &rep.Result
		}
		if failed != nil {
			s.Saturated, s.notMet = saturated, failed
		}
		pause(ctx)
		return false, refused // A server that refuses each client to the end may have died.
	}
	var err error
	s.Knee, s.Broken, err = search(o.from, o.clients, try)
	if errors.Is(err, errInterrupted) {
		s.Interrupted, err = true, nil
	}
	return s, err
}

// joinTime is the time between two joins in the ramp of find. Its rate is a quarter of the rate at
// which a server admits clients: near its limit more of them overload it for seconds.
const joinTime = 20 * time.Millisecond

// with returns the options for so many clients, or an error that names an unusable flag.
func (o *options) with(clients int) (options, error) {
	c := *o
	c.clients, c.verify = clients, min(o.verify, clients)
	c.ramp = max(o.ramp, min(time.Duration(clients)*joinTime, maxPhase))
	return c, errors.Join(c.parseSchedule(), c.parseTransport(), c.parseProfile(c.bot))
}

func stepOf(r *Result, clients int) Step {
	return Step{
		Clients: clients, Met: r.Verdict.Pass, Reasons: r.Verdict.Reasons, Rate: r.Snapshots.Rate.P50, Age: r.Snapshots.Age.P99,
		Tick: r.Server.Tick.P99, Server: r.Server.Process.CPU, Generator: r.Generator.Process.CPU, Saturated: saturatedSide(r),
	}
}

// rest pauses after a failed run. With --admin it also waits until the server is no longer
// overloaded: it would send half of the snapshots in the next run, too.
func (o *options) rest(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, findCalm)
	defer cancel()
	for clock.Sleep(ctx, min(o.duration, findPause)) && o.admin != "" {
		figures, err := newAdmin(o.admin, o.token).metrics(ctx)
		if level := figures.get("netloop_overload_level"); err != nil || level == nil || *level == 0 {
			return
		}
	}
}

// saturatedSide returns the side of a run that was at its limit: the load client if its frames
// were late or its cores were busy, and the server if its cores were busy or its ticks took half
// of their budget.
func saturatedSide(r *Result) string {
	full := func(p *Process) bool { return p.CPU != nil && p.Cores != nil && *p.CPU >= busy**p.Cores }
	generator := r.Saturated || full(&r.Generator.Process)
	tick, budget := r.Server.Tick.P99, r.Server.Budget
	server := full(&r.Server.Process) || tick != nil && budget != nil && *tick >= *budget/2
	switch {
	case generator && server:
		return "both"
	case generator:
		return "generator"
	case server:
		return "server"
	}
	return "neither"
}

// bothSides joins the saturated sides of two runs.
func bothSides(a, b string) string {
	switch {
	case a == "neither" || a == b:
		return b
	case b == "neither":
		return a
	}
	return "both"
}

// String is the line of a step.
func (s Step) String() string {
	verdict := "met"
	if !s.Met {
		verdict = "not met: " + strings.Join(s.Reasons, "; ")
	}
	return fmt.Sprintf("%d clients: rate %s Hz, age p99 %s ms, tick p99 %s ms, server %s and generator %s cores: %s",
		s.Clients, figure(s.Rate), figure(s.Age), figure(s.Tick), figure(s.Server), figure(s.Generator), verdict)
}

// exit returns the exit status of a search: it fails if not even one client was served well, or if
// the load client was the limit.
func (s *Search) exit() int {
	switch {
	case s.Interrupted:
		return exitEarly
	case s.Knee == 0, s.Broken > 0 && s.Saturated == "generator":
		return exitShort
	}
	return exitOK
}

// write prints the search, as text, JSON or a page.
func (s *Search) write(format string, w io.Writer) error {
	switch format {
	case "json":
		text, err := json.MarshalIndent(s, "", "  ")
		if err == nil {
			_, err = w.Write(append(text, '\n'))
		}
		return err
	case "html":
		var runs []pageRun
		for _, r := range []*Result{s.met, s.notMet} {
			if r != nil {
				runs = append(runs, pageRun{Name: fmt.Sprintf("%d clients", r.Clients.Wanted), Result: *r})
			}
		}
		return writePage(w, runs, s)
	}
	var text strings.Builder
	switch {
	case s.Interrupted:
		fmt.Fprintf(&text, "INTERRUPTED: at least %d clients\n", s.Knee)
	case s.Broken == 0:
		fmt.Fprintf(&text, "%d clients meet each threshold, which is the limit of the search: raise --clients\n", s.Knee)
	case s.Saturated == "generator":
		fmt.Fprintf(&text, "INVALID: the load client is the limit, at %d clients: use more cores for it, or --verify\n", s.Broken)
	default:
		fmt.Fprintf(&text, "KNEE: %d clients; at %d a threshold breaks, saturated: %s\n", s.Knee, s.Broken, s.Saturated)
	}
	fmt.Fprintf(&text, "thresholds: %s\n\n", strings.Join(s.Thresholds, ", "))
	tab := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(tab, "clients\trate Hz\tage p99 ms\ttick p99 ms\tserver cores\tgenerator cores\tsaturated\tmet\t\n")
	for _, x := range s.Steps {
		fmt.Fprintf(tab, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", x.Clients, figure(x.Rate), figure(x.Age), figure(x.Tick), figure(x.Server), figure(x.Generator), x.Saturated, yesNo(x.Met))
	}
	_ = tab.Flush() // A strings.Builder returns no error.
	_, err := io.WriteString(w, text.String())
	return err
}
