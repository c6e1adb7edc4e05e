package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/netloop/netloop/bench/measure"
	"github.com/netloop/netloop/client"
)

// bench is one run of the program.
type bench struct {
	opts                   options
	about                  io.Writer // progress
	self                   string    // this program
	dir                    string    // for files between programs
	serverCore, playerCore int
	profiling              bool          // in the measured turn
	gogc                   string        // of the servers; empty is this program's
	patience               time.Duration // until all clients are in
}

func newBench(o options, about io.Writer) (*bench, error) {
	b := &bench{opts: o, about: about, patience: startLimit}
	var err error
	if b.serverCore, b.playerCore, err = measure.TwoCores(); err != nil {
		return nil, err
	}
	if b.self, err = os.Executable(); err != nil {
		return nil, err
	}
	if b.dir, err = os.MkdirTemp("", "netloop-bench-"); err != nil {
		return nil, err
	}
	return b, os.WriteFile(b.tokens(), []byte("write "+adminToken+"\n"), 0o600)
}

// tokens returns the file with the token for the servers' pages.
func (b *bench) tokens() string { return filepath.Join(b.dir, "tokens") }

func (b *bench) close() { _ = os.RemoveAll(b.dir) }

// entrant is one of the servers that are compared in an arrangement.
type entrant struct {
	name string
	turn func(*line) turn
	best *sample
}

// line is one arrangement and its entrants.
type line struct {
	arrangement
	entrants []*entrant
}

// netloopTurn returns the setup of a measurement of a netloop server: of this build, or of another
// one at the path program.
func (b *bench) netloopTurn(a arrangement, program string, over client.Transport) turn {
	t := turn{
		program: program, serve: a.world, play: "play-" + a.world, clients: a.clients,
		serverArgs: append([]string{
			"--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--admin-token-file", b.tokens(), "--tick-rate", strconv.Itoa(b.opts.rate),
			"--max-clients", strconv.Itoa(maxClients), "--log-level", "warn",
		}, b.opts.extra...),
		playerArgs: []string{"--ui", "quiet", "--verify", strconv.Itoa(b.opts.verify), "--per-socket", strconv.Itoa(b.opts.sharing)},
	}
	t.playerArgs = append(t.playerArgs, b.exactly(a)...)
	if over != client.QUIC { // Another build may lack the flag.
		t.playerArgs = append(t.playerArgs, "--transport", over.String())
	}
	if over == client.WebSocket {
		t.serverArgs = append(t.serverArgs, "--web", "127.0.0.1:0")
	}
	return t
}

// bareTurn returns the setup of a measurement of bare quic-go. It exchanges as many datagrams as
// netloop's server and clients did in their measurement.
func (b *bench) bareTurn(l *line) turn {
	ours := l.entrants[0].best
	down := []string{"--tick-rate", strconv.Itoa(b.opts.rate), "--count", fmt.Sprint(ours.out), "--size", strconv.Itoa(int(ours.outBytes))}
	up := []string{"--tick-rate", strconv.Itoa(b.opts.rate), "--count", fmt.Sprint(ours.in), "--size", strconv.Itoa(int(ours.inBytes)), "--per-socket", strconv.Itoa(b.opts.sharing)}
	return turn{program: b.self, serve: "bare", play: "play-bare", clients: l.clients, serverArgs: down, playerArgs: append(up, b.exactly(l.arrangement)...)}
}

// maxThinking is the most bots of the arena that run with --exact-frames: they take time for their
// decisions, and more of them, woken one by one, would not fit on a core.
const maxThinking = 100

// exactly returns the flag for clients that send at their own times, if the arrangement has such
// clients. Older builds lack the flag, so other arrangements omit it.
func (b *bench) exactly(a arrangement) []string {
	if !b.opts.exact || a.world == "arena" && a.clients > maxThinking {
		return nil
	}
	return []string{"--exact-frames"}
}

func (b *bench) line(a arrangement) *line {
	l := &line{arrangement: a}
	l.entrants = append(l.entrants, &entrant{name: "netloop", turn: func(*line) turn { return b.netloopTurn(a, b.self, client.QUIC) }})
	for _, over := range b.opts.others {
		l.entrants = append(l.entrants, &entrant{name: over.String(), turn: func(*line) turn { return b.netloopTurn(a, b.self, over) }})
	}
	if b.opts.server != "" {
		l.entrants = append(l.entrants, &entrant{name: "other build", turn: func(*line) turn { return b.netloopTurn(a, b.opts.server, client.QUIC) }})
	}
	if b.opts.bare {
		l.entrants = append(l.entrants, &entrant{name: "bare quic-go", turn: b.bareTurn})
	}
	return l
}

// yardstick returns the reference of the comparison: bare quic-go, or else netloop over QUIC.
func (l *line) yardstick(bare bool) *entrant {
	if bare {
		return l.entrants[len(l.entrants)-1]
	}
	return l.entrants[0]
}

// errSaturated is the error of a run with clients that were too slow.
var errSaturated = errors.New("the figures that are marked mean nothing: use fewer clients, a faster machine, or leave it alone")

// compare measures every arrangement and prints a table.
func (b *bench) compare(ctx context.Context, out io.Writer) error {
	tab := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	row(tab, "", "server", "µs a client", "clients'", "datagrams", "bytes of one", "lateness, ms", "", "tick, ms", "over-", "memory", "to")
	to := "bare"
	if !b.opts.bare {
		to = "QUIC"
	}
	row(tab, "", "% of a core", "and tick", "% of a core", "out + in", "out + in", "p50", "p99", "p99", "runs", "kB a client", to)
	bad := false
	for _, a := range b.opts.only {
		l := b.line(a)
		for range b.opts.rounds {
			for _, e := range l.entrants {
				if err := b.round(ctx, l, e); err != nil {
					return fmt.Errorf("%v, %s: %w", a, e.name, err)
				}
			}
		}
		for _, e := range l.entrants {
			b.print(tab, l, e)
			bad = bad || e.best.saturated != ""
		}
	}
	if err := tab.Flush(); err != nil {
		return err
	}
	if bad {
		return errSaturated
	}
	return nil
}

// round measures one entrant once more, and keeps its cheaper window.
func (b *bench) round(ctx context.Context, l *line, e *entrant) error {
	fmt.Fprintf(b.about, "%s %v, %s\n", time.Now().Format(time.TimeOnly), l.arrangement, e.name)
	s, err := b.take(ctx, e.turn(l))
	if err != nil {
		return err
	}
	if e.best == nil || better(&s, e.best) {
		e.best = &s
	}
	return nil
}

// better reports whether s is preferred: a window without saturation to one with it, and else the
// cheaper one.
func better(s, than *sample) bool {
	if good := s.saturated == ""; good != (than.saturated == "") {
		return good
	}
	return s.server < than.server
}

func row(w io.Writer, cells ...string) { fmt.Fprintln(w, strings.Join(cells, "\t")+"\t") }

// print prints one entrant.
func (b *bench) print(w io.Writer, l *line, e *entrant) {
	s := e.best
	ms := func(d time.Duration) string { return fmt.Sprintf("%.2f", float64(d)/float64(time.Millisecond)) }
	ratio := ""
	if to := l.yardstick(b.opts.bare); to.best.saturated == "" {
		ratio = fmt.Sprintf("%.2f", s.server/to.best.server)
	}
	name := fmt.Sprintf("%v, %s", l.arrangement, e.name)
	if s.saturated != "" {
		name += " (NO FIGURE: " + s.saturated + ")"
	}
	row(w, name, fmt.Sprintf("%.1f", 100*s.server), fmt.Sprintf("%.1f", s.perClient(b.opts.rate, l.clients)),
		fmt.Sprintf("%.1f", 100*s.player), fmt.Sprintf("%.2f + %.2f", s.out, s.in), fmt.Sprintf("%.0f + %.0f", s.outBytes, s.inBytes),
		ms(s.ticks.Lateness.Percentile(50)), ms(s.ticks.Lateness.Percentile(99)), ms(s.ticks.Tick.Percentile(99)),
		strconv.FormatUint(s.ticks.Overruns, 10), fmt.Sprintf("%.0f", s.resident/1000), ratio)
}

// perClient returns the cost of a client in a tick, in µs.
func (s *sample) perClient(rate, clients int) float64 {
	return s.server * 1e6 / float64(rate*clients)
}
