// Command mutate is what `make mutate` runs: it changes one line of the runtime at a time,
// runs the tests, and lists the changes that no test noticed. A change that nobody notices is
// a line that nothing guards: it wants a test, or it is not needed.
//
// The flow:
//
//	find     reads the sources and lists every change that it knows how to make (find.go)
//	choose   takes some of them by a hash of file, line and change, so that an edit elsewhere
//	         does not choose others
//	compile  lays sources over the real ones that hold all chosen changes of a package, of which
//	         the environment lets one act (switch.go, bundle.go); no source is touched
//	try      runs the tests of the package, then the short ones of those that use it (try.go)
//	report   prints what went unnoticed and the share that was noticed
//
// Changes that make no difference that a test could see stand in known.txt, each with its
// reason. They are not counted. An entry that fits no line any more is an error.
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
	"sync"
	"syscall"
	"time"
)

// packages are what is changed unless the command line names others: the core, the engine
// above it and the transport with its carriers. As in Go, "/..." stands for all folders below.
var packages = []string{
	"internal/loop", "internal/rpcqueue", "internal/transport/...", "internal/netvar",
	"internal/input", "internal/schema", "internal/room", ".",
}

// defaults of the flags, and how low the share may be.
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
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
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
		err = run(ctx, dirs, chosen, *workers)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

// choose returns n changes of these folders, without the known ones.
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
	fmt.Fprintf(os.Stderr, "%d changes are possible, %d more are known to make no difference; %d are chosen\n", len(all), len(known), n)
	return all[:n], nil
}

// run tries the chosen changes, package by package, and prints the report.
func run(ctx context.Context, dirs []string, chosen []change, workers int) error {
	t, err := newTrials()
	if err != nil {
		return err
	}
	defer t.close()
	r := &report{began: time.Now()}
	for _, dir := range dirs {
		changes := map[int]change{}
		for i, c := range chosen {
			if c.dir == dir {
				changes[i+1] = c
			}
		}
		if len(changes) == 0 {
			continue
		}
		if err := t.tryPackage(ctx, dir, changes, workers, r); err != nil {
			return err
		}
	}
	return r.end()
}

// tryPackage tries the changes of a package: most in one binary, the rest one by one.
func (t *trials) tryPackage(ctx context.Context, dir string, changes map[int]change, workers int, r *report) error {
	b, rest, err := t.compile(ctx, dir, changes)
	if err != nil {
		return err
	}
	if err := t.unchanged(ctx, b); err != nil {
		return err
	}
	each(sorted(b.changes), workers, func(number int) {
		if got := t.notices(ctx, b, number); ctx.Err() == nil {
			r.add(b.changes[number], got)
		}
	})
	each(sorted(rest), workers, func(number int) {
		alone, err := t.alone(ctx, b, rest[number])
		if err != nil || ctx.Err() != nil {
			return // It does not compile.
		}
		if got := t.notices(ctx, alone, number); ctx.Err() == nil {
			r.add(rest[number], got)
		}
		_ = os.RemoveAll(alone.folder)
	})
	_ = os.RemoveAll(b.folder)
	return ctx.Err()
}

// each calls do for all numbers, with so many calls at once.
func each(numbers []int, workers int, do func(int)) {
	var wg sync.WaitGroup
	queue := make(chan int)
	for range workers {
		wg.Go(func() {
			for n := range queue {
				do(n)
			}
		})
	}
	for _, n := range numbers {
		queue <- n
	}
	close(queue)
	wg.Wait()
}

// report counts what was noticed. Any goroutine may use it.
type report struct {
	began time.Time

	mu            sync.Mutex
	tried, missed int
}

func (r *report) add(c change, noticed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tried++; !noticed {
		r.missed++
		fmt.Println("unnoticed:", c)
	}
	if r.tried%25 == 0 {
		fmt.Fprintf(os.Stderr, "%d tried, %d unnoticed, %v\n", r.tried, r.missed, time.Since(r.began).Round(time.Second))
	}
}

// end prints the figures, and returns an error if they are too low.
func (r *report) end() error {
	if r.tried == 0 {
		return errors.New("no change could be tried")
	}
	share := 1 - float64(r.missed)/float64(r.tried)
	fmt.Printf("%d changes tried in %v: %d noticed, %d not (%.1f %%)\n",
		r.tried, time.Since(r.began).Round(time.Second), r.tried-r.missed, r.missed, 100*share)
	if share < least {
		return fmt.Errorf("at least %.0f %% should be noticed", 100*least)
	}
	return nil
}
