package clock

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop/internal/loop"
)

// waiting is one way to wait for a tick.
type waiting struct {
	name string
	// make returns the wait and its release, or nil if the system has no such wait.
	make func(s *System) (func(context.Context, time.Duration) error, func())
}

// waits are the candidates of docs/adr/0011: the wait of System, and its alternatives.
var waits = append([]waiting{
	{"System", func(s *System) (func(context.Context, time.Duration) error, func()) { return s.WaitUntil, func() {} }},
	{"timer of the runtime", func(s *System) (func(context.Context, time.Duration) error, func()) {
		return func(ctx context.Context, at time.Duration) error {
			Sleep(ctx, at-s.Now())
			return ctx.Err()
		}, func() {}
	}},
}, systemWaits...)

// waitClock is System with another wait.
type waitClock struct {
	*System
	wait func(context.Context, time.Duration) error
}

func (c waitClock) WaitUntil(ctx context.Context, at time.Duration) error { return c.wait(ctx, at) }

// lateness is a sorted list of the lateness of ticks.
type lateness []time.Duration

func (l lateness) at(q float64) time.Duration {
	if len(l) == 0 {
		return 0
	}
	return l[min(len(l)-1, int(q*float64(len(l))))]
}

func (l lateness) String() string {
	return fmt.Sprintf("p50 %4d  p90 %5d  p99 %5d  worst %6d", l.at(0.5).Microseconds(), l.at(0.9).Microseconds(), l.at(0.99).Microseconds(), l.at(1).Microseconds())
}

// runLate lets loop.Run pace empty ticks at 60 Hz with a wait and returns their lateness, and the
// CPU time of the process per tick.
func runLate(t *testing.T, w waiting, ticks int) (lateness, time.Duration) {
	t.Helper()
	s := NewSystem()
	defer s.Close()
	wait, stop := w.make(s)
	if wait == nil {
		return nil, 0
	}
	defer stop()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	late := make(lateness, 0, ticks)
	p := &loop.Pacer{Timeline: loop.Timeline{Rate: loop.Hz(60), Fixed: loop.Hz(60)}}
	cpu := processTime()
	err := loop.Run(ctx, waitClock{s, wait}, p, func(in loop.Input) error {
		late = append(late, in.Start-in.Deadline)
		if len(late) == ticks {
			cancel()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	cpu = processTime() - cpu
	slices.Sort(late)
	return late, cpu / time.Duration(ticks)
}

// cyclictest measures, as long as work runs, the wake-up lateness of a sleeping thread of normal
// priority in a C program: the machine's limit at that time.
func cyclictest(t *testing.T, work func()) lateness {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "cyclictest", "-q", "-t1", "--policy=other", "-i", "16667", "-D", "1h", "-h", "100000")
	// It prints its histogram then.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	work()
	if err := cmd.Cancel(); err != nil {
		t.Fatal(err)
	}
	var late lateness
	for lines := bufio.NewScanner(out); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) != 2 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		us, err1 := strconv.Atoi(fields[0])
		n, err2 := strconv.Atoi(fields[1])
		if err1 == nil && err2 == nil {
			for range n {
				late = append(late, time.Duration(us)*time.Microsecond)
			}
		}
	}
	if err := cmd.Wait(); err != nil && len(late) == 0 {
		t.Fatalf("cyclictest: %v", err)
	}
	return late
}

// busyCores keeps every core busy with another process until stop is called.
func busyCores(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var all []*exec.Cmd
	for range runtime.NumCPU() {
		cmd := exec.CommandContext(ctx, "sh", "-c", "while :; do :; done")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		all = append(all, cmd)
	}
	return func() {
		cancel()
		for _, cmd := range all {
			_ = cmd.Wait() // It was killed.
		}
	}
}

// TestWakeUpBesideCyclictest compares the lateness of Run's ticks with the wake-up lateness of a C
// program at the same time on the same machine. `make lateness` shows the table.
func TestWakeUpBesideCyclictest(t *testing.T) {
	if os.Getenv("NETLOOP_VERIFY") == "" {
		t.Skip("NETLOOP_VERIFY=1 measures wake-up lateness, which takes two minutes")
	}
	if _, err := exec.LookPath("cyclictest"); err != nil {
		t.Skip("cyclictest is not installed: apt-get install rt-tests")
	}
	for _, load := range []string{"idle", "busy"} {
		stop := func() {}
		if load == "busy" {
			stop = busyCores(t)
		}
		all := make([]figures, len(waits))
		// In random order, so that other work of the machine is shared, and the candidates have no
		// fixed predecessor: the scheduler remembers which threads have spun.
		for round := range rounds {
			for _, i := range rand.New(rand.NewPCG(1, uint64(round))).Perm(len(waits)) {
				all[i].measure(t, waits[i])
			}
		}
		stop()
		for i, w := range waits {
			t.Logf("%s  %-36s %v", load, w.name, &all[i])
			if load == "idle" && w.name == "System" {
				judge(t, all[i].late, all[i].machine)
			}
		}
	}
}

const (
	rounds = 5
	ticks  = 2 * 60 // of each round
)

// figures are the results of the rounds of one wait.
type figures struct {
	late, machine lateness
	cpu           time.Duration
}

func (f *figures) measure(t *testing.T, w waiting) {
	t.Helper()
	machine := cyclictest(t, func() {
		late, cpu := runLate(t, w, ticks)
		f.late = append(f.late, late...)
		f.cpu += cpu / rounds
	})
	f.machine = append(f.machine, machine...)
	slices.Sort(f.late)
	slices.Sort(f.machine)
}

func (f *figures) String() string {
	return fmt.Sprintf("%v µs, %3d µs of CPU a tick; cyclictest %v", f.late, f.cpu.Microseconds(), f.machine)
}

// judge requires the promised lateness of System, 70 µs and 0.2 ms, or on a slower machine that of
// cyclictest.
func judge(t *testing.T, late, machine lateness) {
	t.Helper()
	for _, c := range []struct {
		q, times float64
		promise  time.Duration
	}{{0.5, 1.5, 70 * time.Microsecond}, {0.99, 4, 200 * time.Microsecond}} {
		got, theirs := late.at(c.q), machine.at(c.q)
		if allowed := max(c.promise, time.Duration(c.times*float64(theirs))); got > allowed {
			t.Errorf("p%g is %v, allowed are %v; cyclictest has %v", 100*c.q, got, allowed, theirs)
		}
	}
}
