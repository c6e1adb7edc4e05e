package loadtest_test

import (
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop/examples/arena"
	"github.com/netloop/netloop/internal/bridge"
	"github.com/netloop/netloop/internal/metrics/ticks"
	"github.com/netloop/netloop/internal/testing/proctest"
	"github.com/netloop/netloop/internal/transport"
	"github.com/netloop/netloop/loadtest"
)

// TestABlackHoleDelaysNoTick measures with real programs the effect of a client that loses its
// network for 8 s and then reconnects: on 99 others, before, during and after, in turns. The
// minimum over windows of 2 s counts, because the machine has other work.
func TestABlackHoleDelaysNoTick(t *testing.T) {
	if os.Getenv("NETLOOP_VERIFY") == "" {
		t.Skip("it depends on timing: make verify runs it")
	}
	const (
		turns, windows = 4, 4
		window         = 2 * time.Second
		hole           = windows * window
	)
	p := build(t)
	_, err := exec.LookPath("taskset")
	addr, admin, stop := p.serve(t, err == nil)
	defer stop()
	end := p.playOn(t, addr, 99)
	names := [...]string{"before", "during", "after"}
	var least [len(names)]float64 // of the 99th percentiles of ticks, in milliseconds
	for range turns {
		file := filepath.Join(t.TempDir(), "holed.json")
		// It connects within the first second, and its hole starts 1 s after the preceding
		// window.
		holed := exec.CommandContext(t.Context(), p.loadclient, "run", "--addr", addr, "--clients", "1", "--ramp", "0s", "--warmup", "0s",
			"--duration", (3*hole + 4*time.Second).String(), "--simulate", "hole="+hole.String()+"@"+(hole+2*time.Second).String(),
			"--out", "json="+file, "--ui", "quiet")
		if err := holed.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		for n, name := range names {
			for range windows {
				p99 := p99OfTicks(t, admin, window)
				t.Logf("tick p99 %.2f ms %s the hole", p99, name)
				if least[n] == 0 || p99 < least[n] {
					least[n] = p99
				}
			}
			if n == 0 {
				time.Sleep(time.Second)
			}
		}
		_ = holed.Wait() // The result has its findings.
		var r loadtest.Result
		if text, err := os.ReadFile(file); err != nil || json.Unmarshal(text, &r) != nil {
			t.Fatalf("%v in %q", err, text)
		}
		if r.Simulated.Down["hole"] == 0 || r.Clients.Drops != 1 || r.Clients.Resumes != 1 || !r.Converged {
			t.Errorf("the client in the hole: %+v, converged %v, %v", r.Clients, r.Converged, r.Simulated)
		}
	}
	others := end()
	late := others.Generator.Lateness.P99
	if others.Clients.Disconnected+others.Clients.Drops > 0 || late == nil {
		t.Fatalf("the others: %+v", others.Clients)
	}
	t.Logf("the least tick p99 %v the hole: %.2f ms", names, least)
	if *late >= 5 {
		t.Logf("not judged: the other clients were late by %.1f ms", *late)
		return
	}
	if more := max(least[1], least[2]) - least[0]; more > 0.5 {
		t.Errorf("the hole changes the 99th percentile of ticks by %.2f ms", more)
	}
}

// p99OfTicks returns the 99th percentile, in milliseconds, of the durations of the next ticks.
func p99OfTicks(t *testing.T, admin string, d time.Duration) float64 {
	t.Helper()
	from := readTicks(t, admin)
	time.Sleep(d)
	to := readTicks(t, admin)
	during, err := to.Sub(&from)
	if err != nil {
		t.Fatal(err)
	}
	return during.Tick.Percentile(99).Seconds() * 1e3
}

// readTicks reads the server's tick statistics.
func readTicks(t *testing.T, admin string) ticks.Snapshot {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+admin+"/ticks", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Close = true
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	s, err := ticks.Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// playOn runs so many clients until end is called, which returns their result. They are connected
// when playOn returns.
func (p programs) playOn(t *testing.T, addr string, clients int) (end func() loadtest.Result) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), p.loadclient, "run", "--addr", addr, "--clients", strconv.Itoa(clients),
		"--duration", "10m", "--out", "json", "--ui", "quiet")
	var out strings.Builder
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(4 * time.Second) // They connect over 2 s.
	return func() (r loadtest.Result) {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait() // The result has its findings.
		if err := json.Unmarshal([]byte(out.String()), &r); err != nil {
			t.Fatalf("%v in %q", err, out.String())
		}
		return r
	}
}

// TestAClientThatDoesNotReadDelaysNoSnapshotOfOthers measures with real programs the effect of 20
// clients that keep their connections and read no data on 80 others: the snapshots of the worst
// of the 80, with and without them, in turn, the maximum of each.
func TestAClientThatDoesNotReadDelaysNoSnapshotOfOthers(t *testing.T) {
	if os.Getenv("NETLOOP_VERIFY") == "" {
		t.Skip("it depends on timing: make verify runs it")
	}
	p := build(t)
	program := filepath.Join(p.dir, "unreading")
	if out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-o", program, "../internal/net/quicnet").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	addr, admin, stop := p.serve(t, false)
	defer stop()
	var most [2]float64 // snapshots per second of the client that gets the fewest: alone, beside
	for turn := range 6 {
		beside := turn % 2
		end := func() string { return "no client" }
		if beside == 1 {
			end = startSilentReaders(t, program, addr, 20)
		}
		r := p.play(t, addr, admin, 80, 13*time.Second) // Longer than the limit of a stuck stream.
		said := end()
		if r.Snapshots.Rate.Min == nil || r.Clients.Failed+r.Clients.Disconnected+r.Clients.Drops > 0 || r.Server.Tick.P99 == nil {
			t.Fatalf("beside %s: %+v", said, r)
		}
		t.Logf("each of 80 gets %.2f snapshots/s or more, tick p99 %.2f ms, beside %s", *r.Snapshots.Rate.Min, *r.Server.Tick.P99, said)
		most[beside] = max(most[beside], *r.Snapshots.Rate.Min)
	}
	if kept := most[1] / most[0]; kept < 0.99 {
		t.Errorf("the worst of the others keeps %.1f %% of its snapshots", 100*kept)
	}
}

// startSilentReaders starts clients that do not read, at the lowest priority.
func startSilentReaders(t *testing.T, program, addr string, clients int) (stop func() string) {
	t.Helper()
	hello, err := transport.AppendHello(nil, bridge.Netloop.Schema(arena.Schema).Hello())
	if err != nil {
		t.Fatal(err)
	}
	cmd := proctest.Command(t, program, "TestUnreadingProgram")
	cmd.Env = append(os.Environ(), "NETLOOP_UNREADING="+addr, "NETLOOP_UNREADING_HELLO="+hex.EncodeToString(hello), "NETLOOP_UNREADING_COUNT="+strconv.Itoa(clients),
		"NETLOOP_UNREADING_METHOD="+strconv.FormatUint(uint64(bridge.Netloop.Method(arena.Standings).Queue.ID), 10))
	return proctest.Start(t, cmd, "UNREADING ")
}
