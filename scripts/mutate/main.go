// Command mutate is the program of `make mutate`: it changes one line of the runtime at a time,
// runs the tests, and lists the changes that no test noticed. A change that no test notices is an
// untested line: it needs a test, or is not needed itself. It runs in the root of the repository.
//
// The flow:
//
//	find     reads the sources and lists every change that it knows how to make (find.go)
//	choose   takes some of them, as many from each package as from every other one, by a hash of
//	         file, line and change, so that an edit does not choose others elsewhere
//	put      copies the sources, with all chosen changes in the copies; the compiler uses the
//	         copies, and the environment selects the active change (switch.go, bundle.go)
//	try      runs the tests of the package, then the short ones of those that use it (try.go)
//	report   prints the unnoticed changes, and the share of the noticed ones (report.go)
//
// An interrupt ends the run with the report once the changes under way have been tried; a second
// interrupt ends those, too.
//
// Changes without an effect that a test could notice are listed in known.txt, each with its reason.
// They are not counted. An entry that matches no line any more is an error.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// packages are the default packages: all that a server, a client or a load test runs. As in Go,
// "/..." includes all folders below.
var packages = []string{".", "app", "client", "internal/...", "loadtest", "match", "netlooptest", "persist/...", "phase", "seats"}

// unchanged are folders that match packages although no server and no client runs them: references,
// generators, tests, and declarations without code.
var unchanged = []string{
	"internal/browser", "internal/build", "internal/testing/cubes", "internal/testing/cubes/cmd", "internal/e2e",
	"internal/testing/golden", "internal/bridge", "internal/testing/refdecoder", "internal/testing/seeds", "internal/simulation",
}

// The defaults of the flags, and the least share of noticed changes.
const (
	defaultChanges = 300
	least          = 0.95
)

func main() {
	n := flag.Int("n", defaultChanges, "how many changes to try; 0 is all of them")
	seed := flag.Uint64("seed", 1, "another seed chooses other changes")
	workers := flag.Int("workers", runtime.NumCPU(), "how many changes are tried at once")
	match := flag.String("match", "", "try only changes whose description contains this")
	list := flag.Bool("list", false, "list the chosen changes and try none")
	flag.Parse()
	dirs := flag.Args()
	if len(dirs) == 0 {
		dirs = packages
	}
	ctx, enough := signals()
	dirs, err := folders(dirs)
	var chosen []change
	if err == nil {
		chosen, err = choose(dirs, *n, *seed, *match)
	}
	switch {
	case err != nil:
	case *list:
		for _, c := range chosen {
			fmt.Println(c)
		}
	default:
		r := &report{out: os.Stdout, notes: os.Stderr, chosen: len(chosen), began: time.Now()}
		err = run(ctx, enough, chosen, *workers, r)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

// signals returns a context that ends with the second signal, and one that ends with the first.
func signals() (ctx, enough context.Context) {
	ctx, kill := context.WithCancel(context.Background())
	enough, stop := context.WithCancel(ctx)
	got := make(chan os.Signal, 2) // Further signals have no effect.
	signal.Notify(got, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-got
		stop()
		<-got
		kill()
	}()
	return ctx, enough
}

// choose returns n changes of these folders, without those listed in known.txt.
func choose(dirs []string, n int, seed uint64, match string) ([]change, error) {
	all, err := find(dirs)
	if err != nil {
		return nil, err
	}
	known, err := readKnown("scripts/mutate/known.txt", all)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(c change) bool {
		return known[c.String()] != "" || !strings.Contains(c.String(), match)
	})
	order(all, seed)
	if n == 0 || n > len(all) {
		n = len(all)
	}
	chosen := evenly(all, n)
	fmt.Fprintf(os.Stderr, "%d changes are possible, %d more are known to make no difference; %d are chosen\n", len(all), len(known), n)
	return chosen, nil
}

// run tries the chosen changes until enough ends, and prints the report.
func run(ctx, enough context.Context, chosen []change, workers int, r *report) error {
	t, err := newTrials(r)
	if err != nil {
		return err
	}
	defer t.close()
	err = t.try(ctx, enough, chosen, workers)
	return errors.Join(err, r.end(enough.Err() != nil))
}
