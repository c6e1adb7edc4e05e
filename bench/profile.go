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
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/netloop/netloop/client"
)

// profiles measures each arrangement once more while the server profiles itself, and prints a
// breakdown of a client's microseconds.
func (b *bench) profiles(ctx context.Context, out io.Writer) error {
	for _, a := range b.opts.only {
		fmt.Fprintf(b.about, "%s %v, profile\n", time.Now().Format(time.TimeOnly), a)
		file := filepath.Join(b.dir, "profile")
		b.profileTo = file
		s, err := b.take(ctx, b.netloopTurn(a, b.self, client.QUIC))
		b.profileTo = ""
		if err != nil {
			return fmt.Errorf("%v, profile: %w", a, err)
		}
		text, err := exec.CommandContext(ctx, "go", "tool", "pprof", "-traces", b.self, file).Output()
		if err != nil {
			return fmt.Errorf("go tool pprof: %w", err)
		}
		shares := split(text)
		fmt.Fprintf(out, "\n%v: where a client's %.1f µs a tick go\n", a, s.perClient(b.opts.rate, a.clients))
		tab := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		for _, what := range slices.SortedFunc(maps.Keys(shares), func(x, y string) int { return cmp.Compare(shares[y], shares[x]) }) {
			fmt.Fprintf(tab, "%s\t%.1f µs\t%.0f %%\n", what, shares[what]*s.perClient(b.opts.rate, a.clients), 100*shares[what])
		}
		if err := tab.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// fetchProfile requests a server's profile of the window.
func (b *bench) fetchProfile(ctx context.Context, admin string) error {
	text, err := get(ctx, admin, fmt.Sprintf("/debug/pprof/profile?seconds=%g", b.opts.window.Seconds()))
	if err != nil {
		return err
	}
	return os.WriteFile(b.profileTo, text, 0o600)
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
	{"cryptography", "github.com/quic-go/quic-go/internal/handshake"},
	{"quic-go", "github.com/quic-go/"},
	{"sessions and sockets", "github.com/netloop/netloop/internal/transport"},
	{"replication", "github.com/netloop/netloop/internal/netvar"},
	{"replication", "github.com/netloop/netloop/internal/codec"},
	{"replication", "github.com/netloop/netloop/internal/wire"},
	{"replication", "github.com/netloop/netloop/internal/grid"},
	{"room, loop and game", "github.com/netloop/netloop"},
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
