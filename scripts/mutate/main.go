// Command mutate is what `make mutate` runs: it changes one line of the runtime at a time,
// runs the tests, and lists the changes that no test noticed. A change that nobody notices is
// a line that nothing guards: it wants a test, or it is not needed.
//
// The flow:
//
//	find     reads the sources and lists every change that it knows how to make (find.go)
//	choose   takes some of them by a hash of file, line and change, so that an edit elsewhere
//	         does not choose others
//	try      compiles the package with the changed file laid over the real one, and runs its
//	         short tests, then those of the packages that use it (try.go); no source is touched
//	report   prints what went unnoticed and the share that was noticed
//
// Changes that make no difference that a test could see stand in known.txt, each with its
// reason. They are not counted. An entry that fits no line any more is an error.
package main

import (
	"context"
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
// above it and the transport.
var packages = []string{
	"internal/loop", "internal/rpcqueue", "internal/netvar", "internal/transport", ".",
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
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	share, err := run(ctx, flag.Args(), *n, *seed, *workers, *match, *list)
	stop()
	if err == nil && share < least {
		err = fmt.Errorf("%.1f %% of the changes were noticed: at least %.0f %% should be", 100*share, 100*least)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

// run tries the changes and returns the share that was noticed.
func run(ctx context.Context, dirs []string, n int, seed uint64, workers int, match string, list bool) (share float64, err error) {
	if len(dirs) == 0 {
		dirs = packages
	}
	all, err := find(dirs)
	if err != nil {
		return 0, err
	}
	reasons, err := readKnown("scripts/mutate/known.txt", all)
	if err != nil {
		return 0, err
	}
	all = slices.DeleteFunc(all, func(c change) bool {
		return reasons[c.String()] != "" || !strings.Contains(c.String(), match)
	})
	order(all, seed)
	if n == 0 {
		n = len(all)
	}
	if list {
		for _, c := range all[:min(n, len(all))] {
			fmt.Println(c)
		}
		return 1, nil
	}
	fmt.Printf("%d changes are possible, %d known ones left out; trying %d\n", len(all), len(reasons), min(n, len(all)))
	t, err := newTrials()
	if err != nil {
		return 0, err
	}
	defer t.close()
	if err := t.unchanged(ctx, dirs); err != nil {
		return 0, err
	}
	return tryAll(ctx, t, all, n, workers)
}

// tryAll tries changes until n of them have compiled, and prints the report.
func tryAll(ctx context.Context, t *trials, all []change, n, workers int) (share float64, err error) {
	var (
		mu      sync.Mutex
		next    int
		tried   int
		missed  []change
		wg      sync.WaitGroup
		started = time.Now()
	)
	take := func() (c change, ok bool) {
		mu.Lock()
		defer mu.Unlock()
		if next == len(all) || tried >= n || ctx.Err() != nil {
			return change{}, false
		}
		next++
		return all[next-1], true
	}
	for range workers {
		wg.Go(func() {
			for c, ok := take(); ok; c, ok = take() {
				got, _ := t.try(ctx, c)
				if got == invalid || ctx.Err() != nil {
					continue
				}
				mu.Lock()
				if tried++; got == unnoticed {
					missed = append(missed, c)
					fmt.Printf("unnoticed: %v\n", c)
				}
				if tried%25 == 0 {
					fmt.Printf("%d tried, %d unnoticed, %v\n", tried, len(missed), time.Since(started).Round(time.Second))
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	if tried == 0 {
		return 0, fmt.Errorf("no change could be tried")
	}
	share = 1 - float64(len(missed))/float64(tried)
	fmt.Printf("%d changes tried in %v: %d noticed, %d not (%.1f %%)\n",
		tried, time.Since(started).Round(time.Second), tried-len(missed), len(missed), 100*share)
	return share, nil
}
