package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/netloop/netloop/bench/measure"
)

// options are the command line.
type options struct {
	quick   bool
	only    []string // parts
	peers   []string
	results string
	page    string
	dir     string
	again   bool
	render  bool
	limit   time.Duration
	seed    uint64
	prices
}

// prices are the monthly prices for the table of costs.
type prices struct{ core, gigabyte float64 }

// parse reads the command line. The error names the expected value; help is written to out.
func parse(args []string, out io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("peers", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Usage = func() {
		fmt.Fprintln(out, "peers [flags]: one world in netloop and in other game servers; as root on Linux, with two quiet cores")
		flags.SetOutput(out)
		flags.PrintDefaults()
	}
	flags.BoolVar(&o.quick, "quick", false, "a third of the matrix, in shorter windows: fifteen minutes instead of an hour")
	only := flags.String("only", strings.Join(parts, " "), "the parts that are measured")
	names := flags.String("peers", strings.Join(peerNames(), " "), "the peers that are measured")
	flags.StringVar(&o.results, "results", "bin/peers.json", "the file of the results: cells that it has are not measured again")
	flags.StringVar(&o.page, "page", "docs/PEERS.md", "the page that is written at the end, with its plots beside it; empty is none")
	flags.StringVar(&o.dir, "dir", "bin/peers-servers", "the folder for the peers that are installed")
	flags.BoolVar(&o.again, "again", false, "measure the cells that the results have, too")
	flags.BoolVar(&o.render, "render", false, "measure nothing: write the page from the results")
	flags.DurationVar(&o.limit, "limit", time.Hour, "the time after which no further cell is begun")
	flags.Uint64Var(&o.seed, "seed", 1, "of the lost packets")
	flags.Float64Var(&o.core, "core-price", 15, "USD for a core and month, in the table of costs")
	flags.Float64Var(&o.gigabyte, "gb-price", 0.02, "USD for a GB of outgoing traffic, likewise")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return o, err
		}
		return o, fmt.Errorf("%w: %w: -help lists the flags", errUsage, err)
	}
	o.only, o.peers = strings.Fields(*only), strings.Fields(*names)
	for _, list := range []struct {
		flag           string
		given, allowed []string
	}{{"only", o.only, parts}, {"peers", o.peers, peerNames()}} {
		for _, name := range list.given {
			if !slices.Contains(list.allowed, name) {
				return o, fmt.Errorf("%w: -%s: %q cannot be used: use %s", errUsage, list.flag, name, strings.Join(list.allowed, ", "))
			}
		}
	}
	if flags.NArg() > 0 || o.core < 0 || o.gigabyte < 0 || o.limit <= 0 {
		return o, fmt.Errorf("%w: use prices of 0 or more, a -limit above 0, and no word besides", errUsage)
	}
	return o, nil
}

func peerNames() (names []string) {
	for _, p := range peers {
		names = append(names, p.name)
	}
	return names
}

// run measures the cells that the results lack, and writes the page.
func run(ctx context.Context, args []string, out, about io.Writer) error {
	o, err := parse(args, out)
	if err != nil {
		return err
	}
	r, err := loadResults(o.results)
	if err != nil {
		return err
	}
	plan := fullPlan
	if o.quick {
		plan = quickPlan
	}
	var failed error
	if !o.render {
		if failed = measureAll(ctx, &o, &plan, r, about); ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	if o.page == "" {
		return failed
	}
	return errors.Join(failed, writePage(o.page, r, o.prices))
}

// measureAll measures the cells of a plan that the results lack. A cell that fails is reported at
// the end; the other cells are still measured.
func measureAll(ctx context.Context, o *options, p *plan, r *results, about io.Writer) error {
	b := &bench{plan: *p, about: about, seed: o.seed, programs: map[string]program{}}
	var err error
	if b.server, b.play, err = measure.TwoCores(); err != nil {
		return err
	}
	if b.dir, err = filepath.Abs(o.dir); err != nil {
		return err
	}
	if err := errors.Join(os.MkdirAll(b.dir, 0o755), os.MkdirAll(filepath.Dir(o.results), 0o755)); err != nil {
		return err
	}
	r.Machine = machine()
	if err := errors.Join(b.make(o.peers, r), r.save(o.results)); err != nil {
		return err
	}
	all := slices.DeleteFunc(p.cells(), func(c cell) bool {
		_, made := b.programs[c.peer.name]
		return !made || !slices.Contains(o.only, c.part) || !o.again && r.has(c, p.windowOf(c))
	})
	began := time.Now()
	var errs []error
	for i, c := range all {
		if time.Since(began) > o.limit {
			errs = append(errs, fmt.Errorf("%d cells are left after %v: run it again", len(all)-i, o.limit))
			break
		}
		outcome, err := b.takeWithin(ctx, c)
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", c.key(), err))
			outcome.Note = err.Error()
		}
		fmt.Fprintf(about, "%s %d/%d %s: server %.1f %%, clients %.1f %%, %.1f updates/s, age p99 %.1f ms, gap %.0f ms %s\n", time.Now().Format(time.TimeOnly),
			i+1, len(all), c.key(), 100*outcome.Server, 100*outcome.Clients, outcome.Rate, outcome.AgeP99, outcome.Gap, outcome.Note)
		r.Cells[c.key()] = outcome
		if err := r.save(o.results); err != nil {
			return err
		}
	}
	return errors.Join(errs...)
}

// cellLimit bounds the time of a cell beyond its window.
const cellLimit = 3 * time.Minute

func (b *bench) takeWithin(ctx context.Context, c cell) (outcome, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, cellLimit+b.plan.windowOf(c), errors.New("it takes too long"))
	defer cancel()
	return b.take(ctx, c)
}

// make makes the programs of the peers. One that cannot be made is skipped by its name.
func (b *bench) make(names []string, r *results) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for _, p := range peers {
		if !slices.Contains(names, p.name) {
			continue
		}
		delete(r.Skipped, p.name)
		made := program{[]string{self, "serve", p.name}, []string{self, "play", p.name}, moduleVersion(p.module)}
		if p.foreign != nil {
			if made.serve, made.play, made.version, err = p.foreign(b.dir); err != nil {
				fmt.Fprintf(b.about, "%s is skipped: %v\n", p.title, err)
				r.Skipped[p.name] = err.Error()
				continue
			}
		}
		b.programs[p.name], r.Versions[p.name] = made, made.version
	}
	return nil
}
