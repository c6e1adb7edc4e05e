package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/netloop/netloop/app"
	"github.com/netloop/netloop/examples/arena"
	"github.com/netloop/netloop/loadtest"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"loadclient": main, "server": func() { app.Main(arena.New()) }})
}

// bad is a network that bots play on, with a check of the result.
type bad struct {
	name    string
	network string
	server  bool // the server simulates it, not the bots
	shows   func(t *testing.T, r *loadtest.Result)
}

// has demands that the network did something to datagrams, in both directions or in one.
func has(fate string, directions ...string) func(*testing.T, *loadtest.Result) {
	return func(t *testing.T, r *loadtest.Result) {
		t.Helper()
		counts := map[string]uint64{"up": r.Simulated.Up[fate], "down": r.Simulated.Down[fate]}
		for _, d := range directions {
			if counts[d] == 0 {
				t.Errorf("no datagram %s is counted as %s", d, fate)
			}
			delete(counts, d)
		}
		for d, n := range counts {
			if n > 0 {
				t.Errorf("%d datagrams %s are counted as %s", n, d, fate)
			}
		}
	}
}

// fresh demands that the median age of the bots' view is at most so much, though their link was
// offered more than it carries.
func fresh(most time.Duration) func(*testing.T, *loadtest.Result) {
	return func(t *testing.T, r *loadtest.Result) {
		t.Helper()
		if age := r.Snapshots.Age.P50; age == nil || *age > most.Seconds()*1e3 {
			t.Errorf("the state is %s ms old, at most %v", figure(age), most)
		}
		if rate := r.Snapshots.Rate.P50; rate == nil || *rate > 55 {
			t.Errorf("%s snapshots a second have room", figure(rate))
		}
	}
}

func rebound(t *testing.T, r *loadtest.Result) {
	t.Helper()
	if n := r.Simulated.Rebinds; n < uint64(3*r.Clients.Connected) {
		t.Errorf("%d rebinds", n)
	}
}

var links = []bad{
	{name: "no loss", network: "rtt=20ms", shows: has("lost")},
	{name: "5 % loss", network: "rtt=20ms,loss=5%", shows: has("lost", "up", "down")},
	{name: "20 % loss", network: "rtt=20ms,loss=20%", shows: has("lost", "up", "down")},
	{name: "50 ± 30 ms each way", network: "rtt=40ms,jitter=60ms", shows: has("lost")},
	{name: "200 ms each way", network: "rtt=400ms", shows: has("lost")},
	{name: "5 % duplicates", network: "rtt=20ms,dup=5%", shows: has("duplicated", "up", "down")},
	{name: "1 % corrupted", network: "rtt=20ms,corrupt=1%", shows: has("corrupted", "up", "down")},
	// Both ends give up a connection that was silent for 5 s: the bots resume their clients.
	{name: "black hole of 5 s", network: "rtt=20ms,hole=5s@5s", shows: has("hole", "up", "down")},
	{name: "… upwards alone", network: "rtt=20ms,up.hole=5s@5s", shows: has("hole", "up")},
	{name: "… downwards alone", network: "rtt=20ms,down.hole=5s@5s", shows: has("hole", "down")},
	{name: "rebind every 2 s", network: "rtt=20ms,rebind=2s", shows: rebound},
	{name: "100 kbit/s, buffer 0.2 s", network: "rtt=60ms,rate=100kbit/s,buffer=0.2s", shows: fresh(400 * time.Millisecond)},
	{name: "100 kbit/s, buffer 1.5 s", network: "rtt=60ms,rate=100kbit/s,buffer=1.5s", shows: fresh(400 * time.Millisecond)},
	{name: "server: 150 + 20 ms, 5 %", network: "rtt=150ms,jitter=20ms,loss=5%", server: true},
}

// offered is the number of rocks for which the arena sends each of ten bots about 160 kbit/s: 19 kB
// of state a second at a round trip of 20 ms, and the headers of 60 datagrams.
const offered = "220"

// TestBotsPlayOnEveryBadLink plays ten bots against a server, each a program of its own, over each
// of the links: no bot is lost, all end with the server's state, and the counters show the effects
// of the link. It prints a table.
func TestBotsPlayOnEveryBadLink(t *testing.T) {
	if os.Getenv("NETLOOP_VERIFY") == "" {
		t.Skip("it takes four minutes: make links runs it, and make verify")
	}
	fmt.Printf("%-26s %6s %9s %9s %9s %7s %6s  %s\n", "link", "Hz p50", "age p50", "age p99", "call p50", "kB/s", "equal", "datagrams")
	for _, l := range links {
		t.Run(l.name, func(t *testing.T) {
			r := play(t, l, 10, 10*time.Second)
			row(l, r)
		})
	}
}

// TestBotsPlayOnABadLink is the same in short, over a link that is bad in every way at once.
func TestBotsPlayOnABadLink(t *testing.T) {
	play(t, bad{
		network: "rtt=20ms,jitter=10ms,loss=3%,dup=5%,reorder=5%,corrupt=1%,rate=2Mbit/s",
		shows:   has("duplicated", "up", "down"),
	}, 3, 300*time.Millisecond)
}

// row prints the bots' measurements on a link, and the link's counts.
func row(l bad, r *loadtest.Result) {
	s := r.Snapshots
	kilo := 0.0
	if s.Bytes != nil {
		kilo = *s.Bytes / 1000
	}
	fmt.Printf("%-26s %6s %9s %9s %9s %7.1f %6v  %s\n", l.name, figure(s.Rate.P50), figure(s.Age.P50), figure(s.Age.P99), figure(r.RPC.RTT.P50), kilo, r.Converged, fates(r.Simulated))
}

// fates lists the effects of a network that occurred.
func fates(n *loadtest.Simulated) string {
	if n == nil {
		return "(counted by the server)"
	}
	text := ""
	for _, fate := range []string{"passed", "lost", "queue", "hole", "unbound", "overflow", "duplicated", "reordered", "corrupted"} {
		if up, down := n.Up[fate], n.Down[fate]; up+down > 0 {
			text += fmt.Sprintf("%s %d+%d, ", fate, up, down)
		}
	}
	return text + fmt.Sprintf("%d rebinds", n.Rebinds)
}

func figure(x *float64) string {
	if x == nil {
		return "–"
	}
	return strconv.FormatFloat(*x, 'f', 1, 64)
}

// play lets bots play on a link, and demands that all get in, keep their clients, and end with the
// server's state.
func play(t *testing.T, l bad, bots int, length time.Duration) *loadtest.Result {
	t.Helper()
	var network, rocks []string
	if l.server {
		network = []string{"--simulate", l.network}
	}
	if length >= time.Second {
		rocks = []string{"--arena.rocks", offered}
	}
	addr := serve(t, append(network, rocks...)...)
	file := filepath.Join(t.TempDir(), "result.json")
	args := []string{
		"run", "--addr", addr, "--clients", strconv.Itoa(bots), "--ramp", (length / 10).String(), "--warmup", (length / 5).String(),
		"--duration", length.String(), "--ui", "quiet", "--out", "json=" + file,
	}
	if !l.server {
		args = append(args, "--simulate", l.network)
	}
	ctx, cancel := context.WithTimeout(t.Context(), length+time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "loadclient", args...).CombinedOutput()
	text, readErr := os.ReadFile(file)
	if readErr != nil {
		t.Fatalf("loadclient: %v: %s", err, out)
	}
	var r loadtest.Result
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	// Its exit status agrees, and also reports whether this machine kept up, which is not checked
	// here.
	want := loadtest.Clients{Wanted: bots, Connected: bots, Verifying: bots}
	if strings.Contains(l.network, "hole") { // Each dropped client has resumed.
		want.Drops, want.Resumes = r.Clients.Drops, r.Clients.Drops
	}
	if r.Clients != want || !r.Converged {
		t.Errorf("%+v, converged %v:\n%s", r.Clients, r.Converged, out)
	}
	if l.shows != nil {
		l.shows(t, &r)
	}
	return &r
}

// serve runs a server until the test ends, which must then close in order and exit with 0.
func serve(t *testing.T, args ...string) (addr string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "addr.json")
	args = append([]string{"run", "--listen", "127.0.0.1:0", "--admin=", "--addr-file", file}, args...)
	var log bytes.Buffer
	cmd := exec.Command("server", args...)
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the server: %v\n%s", err, log.Bytes())
		}
	})
	for limit := time.Now().Add(time.Minute); time.Now().Before(limit); time.Sleep(10 * time.Millisecond) {
		var at struct {
			Listen string `json:"listen"`
		}
		if text, err := os.ReadFile(file); err == nil && json.Unmarshal(text, &at) == nil {
			return at.Listen
		}
	}
	t.Fatal("the server is not ready within a minute")
	return ""
}
