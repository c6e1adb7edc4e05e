package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/netloop/netloop/bench/measure"
	"github.com/netloop/netloop/client"
)

// profiles measures each arrangement once more while both programs profile themselves, and prints
// breakdowns of a client's microseconds: of the server's, and of its own program's.
func (b *bench) profiles(ctx context.Context, out io.Writer) error {
	defer func() { b.profiling = false }()
	for _, a := range b.opts.only {
		fmt.Fprintf(b.about, "%s %v, profile\n", time.Now().Format(time.TimeOnly), a)
		b.profiling = true
		s, err := b.take(ctx, b.netloopTurn(a, b.self, client.QUIC))
		if err != nil {
			return fmt.Errorf("%v, profile: %w", a, err)
		}
		fmt.Fprintf(out, "\n%v: where a client's %.1f µs a tick go on the server, with %.2f allocations\n", a, s.perClient(b.opts.rate, a.clients), s.allocations)
		if err := b.breakdown(ctx, out, b.profileOf(served), s.perClient(b.opts.rate, a.clients)); err != nil {
			return err
		}
		micros := s.player * 1e6 / float64(a.clients*b.opts.rate)
		fmt.Fprintf(out, "%v: where its own %.1f µs go\n", a, micros)
		if err := b.breakdown(ctx, out, b.profileOf(playing), micros); err != nil {
			return err
		}
	}
	return nil
}

// breakdown prints the shares of a profile, the largest first.
func (b *bench) breakdown(ctx context.Context, out io.Writer, file string, micros float64) error {
	text, err := exec.CommandContext(ctx, "go", "tool", "pprof", "-traces", b.self, file).Output()
	if err != nil {
		return fmt.Errorf("go tool pprof: %w", err)
	}
	shares := split(text)
	tab := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, what := range slices.SortedFunc(maps.Keys(shares), func(x, y string) int { return cmp.Compare(shares[y], shares[x]) }) {
		fmt.Fprintf(tab, "%s\t%.1f µs\t%.0f %%\n", what, shares[what]*micros, 100*shares[what])
	}
	return tab.Flush()
}

// served and playing name the profiles of the server and of its clients.
const served, playing = "served.pprof", "playing.pprof"

// profileOf returns the file of a profile.
func (b *bench) profileOf(program string) string { return filepath.Join(b.dir, program) }

// profileVar is the environment variable with the file for a clients' profile.
const profileVar = "NETLOOP_BENCH_PROFILE"

// playersEnv returns the additional environment of clients.
func (b *bench) playersEnv() []string {
	if !b.profiling {
		return nil
	}
	return []string{profileVar + "=" + b.profileOf(playing)}
}

// profileBySignal lets SIGHUP start and stop this program's profile, if the environment has a file
// for it.
func profileBySignal() {
	file := os.Getenv(profileVar)
	if file == "" {
		return
	}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGHUP)
	go func() {
		<-signals
		var b bytes.Buffer
		_ = pprof.StartCPUProfile(&b) // No other one runs.
		<-signals
		pprof.StopCPUProfile()
		if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
		}
	}()
}

// profileBoth profiles the server and its clients for a window.
func (b *bench) profileBoth(ctx context.Context, admin string, player *measure.Process) error {
	player.Signal(syscall.SIGHUP)
	text, err := get(ctx, admin, fmt.Sprintf("/debug/pprof/profile?seconds=%g", b.opts.window.Seconds()))
	if err != nil {
		return err
	}
	player.Signal(syscall.SIGHUP)
	return os.WriteFile(b.profileOf(served), text, 0o600)
}

// allocations returns the number of allocations of a server in a window, without those of the
// question itself.
func (b *bench) allocations(ctx context.Context, admin string) (float64, error) {
	var counts [3]float64
	for i := range counts {
		text, err := get(ctx, admin, "/debug/pprof/allocs?debug=1")
		if err != nil {
			return 0, err
		}
		_, tail, _ := bytes.Cut(text, []byte("\n# Mallocs = "))
		if _, err := fmt.Sscan(string(tail), &counts[i]); err != nil {
			return 0, fmt.Errorf("the server's number of allocations: %w", err)
		}
		if i == 1 {
			if err := measure.Sleep(ctx, b.opts.window); err != nil {
				return 0, err
			}
		}
	}
	return counts[2] - counts[1] - (counts[1] - counts[0]), nil
}

// split adds up the samples of a profile, as `go tool pprof -traces` prints them, by purpose. The
// shares add up to 1.
func split(traces []byte) map[string]float64 {
	shares, sum := map[string]float64{}, 0.0
	var took time.Duration
	var stack []string
	book := func() {
		if took > 0 {
			shares[purpose(stack)] += float64(took)
			sum += float64(took)
		}
		took, stack = 0, stack[:0]
	}
	lines := bufio.NewScanner(bytes.NewReader(traces))
	for lines.Scan() {
		line := lines.Text()
		words := strings.Fields(line)
		switch {
		case strings.HasPrefix(line, "-----------+"):
			book()
		case len(words) == 0 || !strings.HasPrefix(line, " "):
		default:
			if d, err := time.ParseDuration(words[0]); err == nil && len(words) > 1 {
				took, words = d, words[1:]
			}
			stack = append(stack, words[0])
		}
	}
	book()
	for what := range shares {
		shares[what] /= sum
	}
	return shares
}

// wherever maps functions to purposes. A sample has the purpose of the first entry whose function
// is anywhere in its stack.
var wherever = []struct{ what, in string }{
	{"waiting and waking: timers", "internal/clock.(*alarm"},
	{"collecting garbage", "runtime.gcBgMarkWorker"},
	{"collecting garbage", "runtime.bgsweep"},
	{"collecting garbage", "runtime.gcAssistAlloc"},
	{"collecting garbage", "runtime.bgscavenge"},
	{"allocating", "runtime.mallocgc"},
	{"allocating", "runtime.newobject"},
	{"system calls: sending", "sendmsg"},
	{"system calls: sending", "sendmmsg"},
	{"system calls: sending", "WriteMsg"},
	{"system calls: receiving", "recvmmsg"},
	{"system calls: receiving", "recvmsg"},
	{"system calls: receiving", "ReadBatch"},
	{"waiting and waking: the kernel", "runtime.futex"},
	{"waiting and waking: the kernel", "linux.EpollWait"},
	{"waiting and waking: the kernel", "runtime.usleep"},
	{"waiting and waking: goroutines", "runtime.schedule"},
	{"waiting and waking: goroutines", "runtime.selectgo"},
	{"waiting and waking: goroutines", "runtime.chansend"},
	{"waiting and waking: goroutines", "runtime.chanrecv"},
	{"waiting and waking: goroutines", "runtime.mcall"},
	{"waiting and waking: goroutines", "runtime.gopark"},
	{"waiting and waking: goroutines", "runtime.goready"},
}

// owners maps packages to purposes, for the stacks without a function of wherever. A sample has
// the purpose of the innermost function whose name has one of these prefixes.
var owners = []struct{ what, prefix string }{
	{"cryptography", "crypto/"},
	{"cryptography", "golang.org/x/crypto"},
	{"sealed records", "github.com/pion/"},
	{"sealed records", "github.com/netloop/netloop/internal/net/sealed"},
	{"cryptography", "github.com/quic-go/quic-go/internal/handshake"},
	{"quic-go", "github.com/quic-go/"},
	{"sessions and sockets", "github.com/netloop/netloop/internal/transport"},
	{"sessions and sockets", "github.com/netloop/netloop/internal/net/"},
	{"replication", "github.com/netloop/netloop/internal/netvar"},
	{"replication", "github.com/netloop/netloop/internal/codec"},
	{"replication", "github.com/netloop/netloop/internal/wire"},
	{"replication", "github.com/netloop/netloop/internal/grid"},
	{"room, loop and game", "github.com/netloop/netloop"}, // A client has a loop, too.
	{"room, loop and game", "main."},
}

// purpose returns the purpose of a sample, by its stack from the innermost function outwards.
func purpose(stack []string) string {
	for _, w := range wherever {
		if slices.ContainsFunc(stack, func(f string) bool { return strings.Contains(f, w.in) }) {
			return w.what
		}
	}
	for _, f := range stack {
		for _, o := range owners {
			if strings.HasPrefix(f, o.prefix) {
				return o.what
			}
		}
	}
	return "other"
}
