package loadtest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"go.uber.org/goleak"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/examples/arena"
	"github.com/netloop/netloop/examples/arena/bot"
	"github.com/netloop/netloop/loadtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve runs an arena until the test ends, or until stop is called.
func serve(t *testing.T, cfg netloop.Config, g netloop.Game) (s *netloop.Server, stop func()) {
	t.Helper()
	cfg.Listen, cfg.Admin = "127.0.0.1:0", "127.0.0.1:0"
	s, err := netloop.New(cfg, g)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1) // one sender, one value
	go func() { ended <- s.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(stop)
	return s, stop
}

// load runs the load client and returns its exit status and output.
func load(t *testing.T, ctx context.Context, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = loadtest.Execute(ctx, append([]string{"loadclient"}, args...), &out, &err, bot.New())
	t.Logf("exit %d\n%s%s", code, &out, &err)
	return code, out.String(), err.String()
}

// watched is an arena that counts the bots' actions.
type watched struct {
	*arena.Game
	ticked chan struct{} // closed at its 30th tick with clients

	thrusting, turning atomic.Int64 // ships, summed over ticks
}

func newWatched() *watched { return &watched{Game: arena.New(), ticked: make(chan struct{})} }

func (g *watched) Open(r *netloop.Room) error {
	n := 0
	r.On(netloop.PostLateUpdate, "test.watch", func(t *netloop.Tick) {
		ships := 0
		for o := range arena.Ships.All(t) {
			s := o.State()
			ships++
			if s.Thrust {
				g.thrusting.Add(1)
			}
			if s.Turn != 0 {
				g.turning.Add(1)
			}
		}
		if ships > 0 {
			if n++; n == 30 {
				close(g.ticked)
			}
		}
	})
	return g.Game.Open(r)
}

// Bots of all transports play in one room, and all of them receive the server's state.
func TestBotsOfEveryTransportPlayOneRoom(t *testing.T) {
	s, stop := serve(t, netloop.Config{}, arena.New())
	var all sync.WaitGroup
	for _, over := range []string{"quic", "webtransport"} {
		all.Go(func() {
			file := filepath.Join(t.TempDir(), "result.json")
			load(t, t.Context(), "run", "--addr", s.Addr().String(), "--clients", "3", "--ramp", "50ms", "--warmup", "200ms",
				"--duration", "500ms", "--transport", over, "--out", "json="+file)
			text, err := os.ReadFile(file)
			var r loadtest.Result
			if err == nil {
				err = json.Unmarshal(text, &r)
			}
			if want := (loadtest.Clients{Wanted: 3, Connected: 3, Verifying: 3}); err != nil || r.Clients != want || !r.Converged {
				t.Errorf("over %s: %+v, converged: %v, %v", over, r.Clients, r.Converged, err)
			}
		})
	}
	all.Wait()
	rsp, err := http.Get("http://" + s.AdminAddr().String() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(rsp.Body)
	_ = rsp.Body.Close()
	for _, over := range []string{"quic", "webtransport"} {
		if want := `netloop_joins_total{transport="` + over + `"} 3`; !strings.Contains(string(text), want) {
			t.Errorf("%v: the metrics lack %s", err, want)
		}
	}
	stop()
}

func TestBotsPlayARealServer(t *testing.T) {
	g := newWatched()
	s, stop := serve(t, netloop.Config{}, g)
	file := filepath.Join(t.TempDir(), "result.json")
	code, stdout, stderr := load(t, t.Context(), "run", "--addr", s.Addr().String(), "--admin", "http://"+s.AdminAddr().String(),
		"--clients", "5", "--ramp", "100ms", "--warmup", "1s", "--duration", "2s", "--out", "json="+file, "--out", "csv="+file+".csv", "--out", "hlog="+file+".hlog", "--tags", "of=test",
		"--threshold", "server.tick.p99<1s", "--threshold", "snapshot.age.p99<2s+rtt")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var r loadtest.Result
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	if err := loadtest.Fits(text); err != nil {
		t.Error(err)
	}
	if want := (loadtest.Clients{Wanted: 5, Connected: 5, Verifying: 5}); r.Clients != want {
		t.Errorf("clients %+v, want %+v", r.Clients, want)
	}
	if r.Joins.Admitted != 5 || r.Joins.Rate == nil || r.Run.Flags["clients"] != "5" || r.Run.Tags["of"] != "test" || r.Run.Seed != 1 || len(r.Run.Command) < 10 {
		t.Errorf("joins %+v, run %+v", r.Joins, r.Run)
	}
	if v := r.Verdict; v.Exit != code || len(v.Thresholds) != 2 || !v.Thresholds[0].Met || !v.Thresholds[1].Met {
		t.Errorf("the verdict: %+v", v)
	}
	measured, joins := 0, uint64(0)
	for _, p := range r.Series.Points {
		if joins += p.Joins; p.Errors > 0 || joins == 5 && p.Clients != 5 {
			t.Errorf("the point %+v", p)
		}
		if p.Phase == "measuring" && p.Clients == 5 && p.Snapshots != nil && p.AgeP99 != nil && p.Tick != nil {
			measured++
		}
	}
	if measured == 0 || joins != 5 {
		t.Errorf("%d points of the window, %d joins in %+v", measured, joins, r.Series)
	}
	// The counts are those of the percentiles.
	ages := int64(0)
	for _, c := range r.Histograms["snapshot.age"].Counts {
		ages += c[1]
	}
	ran := int64(0)
	for _, c := range r.Histograms["server.tick"].Counts {
		ran += c[1]
	}
	if ages < 60 || ran < 60 || len(r.Worst) == 0 || r.Worst[0].System == "" {
		t.Errorf("%d ages, %d ticks, the worst %+v", ages, ran, r.Worst)
	}
	if !r.Converged {
		t.Error("not converged")
	}
	stop()
	checkFiles(t, file, &r)
	if g.thrusting.Load() == 0 || g.turning.Load() == 0 {
		t.Errorf("the bots do not play: %d times thrust, %d times a turn", g.thrusting.Load(), g.turning.Load())
	}
	if r.Saturated {
		t.Skip("this machine is too busy to be measured")
	}
	if code != 0 {
		t.Errorf("exit %d", code)
	}
	// 5 clients × 2 calls a second × 2 s, each schedule at its own phase.
	if r.RPC.Sent < 15 || r.RPC.Sent > 25 || r.RPC.Answered != r.RPC.Sent {
		t.Errorf("rpc %+v", r.RPC)
	}
	// 5 clients × 60 Hz × 2 s = 600; a busy machine may lose many.
	if n := r.Snapshots.Received; n < 300 || n > 700 {
		t.Errorf("%d snapshots", n)
	}
	for name, x := range map[string]*float64{
		"rtt": r.RPC.RTT.P50, "rate": r.Snapshots.Rate.Min, "interval": r.Snapshots.Interval.P99, "age": r.Snapshots.Age.P50,
		"bytes": r.Snapshots.Bytes, "tick": r.Server.Tick.P99, "lateness": r.Server.Lateness.Max, "tick rate": r.Server.TickRate,
		"own lateness": r.Generator.Lateness.Max, "budget": r.Server.Budget, "flush lag": r.Server.FlushLag, "memory": r.Server.Process.Memory,
		"CPU": r.Server.Process.CPU, "own CPU": r.Generator.Process.CPU, "own memory": r.Generator.Process.Memory, "RTT": r.Network.RTT,
		"bytes down": r.Network.BytesDown, "packets up": r.Network.PacketsUp, "p99.9": r.Snapshots.Age.P999,
	} {
		if x == nil || *x <= 0 {
			t.Errorf("%s is missing", name)
		}
	}
	if !strings.Contains(stdout, "OK: every client connected") {
		t.Errorf("the summary does not report success:\n%s", stdout)
	}
	if !strings.Contains(stderr, "measuring") {
		t.Errorf("no progress on stderr:\n%s", stderr)
	}
}

// checkFiles compares the CSV and the log of histograms with the result.
func checkFiles(t *testing.T, file string, r *loadtest.Result) {
	t.Helper()
	text, err := os.ReadFile(file + ".csv")
	if lines := strings.Count(string(text), "\n"); err != nil || lines != len(r.Series.Points)+1 || !strings.HasPrefix(string(text), "at_s,phase,clients,") {
		t.Errorf("the CSV has %d lines for %d points, %v", lines, len(r.Series.Points), err)
	}
	log, err := os.ReadFile(file + ".hlog")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int64{}
	for read := hdrhistogram.NewHistogramLogReader(bytes.NewReader(log)); ; {
		h, err := read.NextIntervalHistogram()
		if err != nil {
			t.Fatal(err)
		}
		if h == nil {
			break
		}
		found[h.Tag()] = h.TotalCount()
	}
	for name, h := range r.Histograms {
		want := int64(0)
		for _, c := range h.Counts {
			want += c[1]
		}
		if found[name] != want {
			t.Errorf("the log has %d records of %s, and the result %d", found[name], name, want)
		}
	}
}

// Bots that only acknowledge continue to play: the server gets their inputs and calls, and sends
// them as many snapshots as the others, which alone compare their state.
func TestBotsMayPlayWithoutComparingState(t *testing.T) {
	g := newWatched()
	s, stop := serve(t, netloop.Config{}, g)
	code, r, stderr := result(t, t.Context(), s, "--clients", "4", "--verify", "1", "--warmup", "500ms", "--duration", "1s", "--per-socket", "3")
	if want := (loadtest.Clients{Wanted: 4, Connected: 4, Verifying: 1}); r.Clients != want || !r.Converged {
		t.Errorf("%+v, converged %v: %s", r.Clients, r.Converged, stderr)
	}
	stop()
	if n := g.turning.Load(); n == 0 {
		t.Error("no ship turns")
	}
	if r.Saturated || code != 0 {
		t.Skip("this machine is too busy to be measured")
	}
	// 4 clients × 2 calls a second, and × 60 snapshots; a busy machine may lose many.
	if r.RPC.Answered < 4 || r.Snapshots.Received < 120 || *r.Snapshots.Rate.Min < 20 || r.Snapshots.Age.P50 == nil || r.Feel.Inputs > 90 {
		t.Errorf("%+v, %+v, %d inputs of one client", r.RPC, r.Snapshots, r.Feel.Inputs)
	}
}

// Clients with frames at separate times join while others play, and play.
func TestFramesMayStartAtSeparateTimes(t *testing.T) {
	s, _ := serve(t, netloop.Config{}, newWatched())
	_, r, stderr := result(t, t.Context(), s, "--clients", "12", "--ramp", "300ms", "--duration", "500ms", "--exact-frames")
	if want := (loadtest.Clients{Wanted: 12, Connected: 12, Verifying: 12}); r.Clients != want || !r.Converged {
		t.Errorf("%+v, converged %v: %s", r.Clients, r.Converged, stderr)
	}
}

// result runs the load client with JSON on stdout.
func result(t *testing.T, ctx context.Context, s *netloop.Server, args ...string) (code int, r loadtest.Result, stderr string) {
	t.Helper()
	args = append([]string{"--addr", s.Addr().String(), "--ramp", "0s", "--warmup", "0s", "--out", "json", "--ui", "quiet"}, args...)
	code, stdout, stderr := load(t, ctx, args...)
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatalf("%v in %q", err, stdout)
	}
	return code, r, stderr
}

// TestBotsPlayOverASimulatedNetwork gives each bot a bad link and a socket of its own: all end with
// the server's state, and the result has the network's effects.
func TestBotsPlayOverASimulatedNetwork(t *testing.T) {
	s, _ := serve(t, netloop.Config{}, arena.New())
	_, r, _ := result(t, t.Context(), s, "--clients", "3", "--duration", "300ms", "--simulate", "rtt=20ms,dup=5%,rebind=200ms")
	if want := (loadtest.Clients{Wanted: 3, Connected: 3, Verifying: 3}); r.Clients != want || !r.Converged {
		t.Errorf("%+v, converged %v", r.Clients, r.Converged)
	}
	n := r.Simulated
	if n == nil || n.Network != "rtt=20ms,dup=5%,rebind=200ms" || n.Rebinds < 3 || n.Up["passed"] == 0 || n.Down["passed"] == 0 || n.Up["duplicated"]+n.Down["duplicated"] == 0 || n.Down["lost"] != 0 {
		t.Errorf("the network: %+v", n)
	}
	if p50 := r.RPC.RTT.P50; p50 != nil && *p50 < 20 {
		t.Errorf("a call takes %v ms over a round trip of 20", *p50)
	}
}

func TestAClosingServerLosesEveryClient(t *testing.T) {
	g := newWatched()
	s, stop := serve(t, netloop.Config{}, g)
	var stopped sync.WaitGroup
	stopped.Go(func() {
		<-g.ticked
		stop()
	})
	code, r, stderr := result(t, t.Context(), s, "--clients", "3", "--duration", "60s")
	stopped.Wait()
	if want := (loadtest.Clients{Wanted: 3, Connected: 3, Verifying: 3, Disconnected: 3}); code != 99 || r.Clients != want || r.Converged {
		t.Errorf("exit %d, %+v, converged %v", code, r.Clients, r.Converged)
	}
	if !strings.Contains(stderr, "3 of 3 clients lost the connection: 3× the server is closing") {
		t.Errorf("stderr lacks the reason: %s", stderr)
	}
}

// breakingArena is an arena that breaks each client's first connection.
type breakingArena struct{ *arena.Game }

func (g breakingArena) Open(r *netloop.Room) error {
	left := 3
	r.OnJoin(func(t *netloop.Tick, c *netloop.Client) error {
		if left--; left >= 0 {
			t.AfterFunc(300*time.Millisecond, func(t *netloop.Tick) { c.Kick(t, netloop.CodeTimeout, "moody") })
		}
		return nil
	})
	return g.Game.Open(r)
}

// A bot reconnects after a break, and the run succeeds: the break is counted, and there is no
// failure. Without --reconnect the bot is lost.
func TestBotsReconnect(t *testing.T) {
	for _, c := range []struct {
		flag, duration string
		code           int
		want           loadtest.Clients
	}{
		{"--reconnect=true", "3s", 0, loadtest.Clients{Wanted: 3, Connected: 3, Verifying: 3, Drops: 3}},
		{"--reconnect=false", "500ms", 99, loadtest.Clients{Wanted: 3, Connected: 3, Verifying: 3, Disconnected: 3}},
	} {
		s, _ := serve(t, netloop.Config{}, breakingArena{arena.New()})
		code, stdout, _ := load(t, t.Context(), "--addr", s.Addr().String(), "--clients", "3", "--ramp", "0s", "--warmup", "700ms",
			"--duration", c.duration, "--out", "json", c.flag)
		var r loadtest.Result
		if err := json.Unmarshal([]byte(stdout), &r); err != nil {
			t.Fatal(err)
		}
		// A machine that is too busy to be measured ends with another code.
		if code != c.code && !r.Saturated || r.Clients != c.want || r.Converged != (c.code == 0) {
			t.Errorf("%s: exit %d, %+v", c.flag, code, r.Clients)
		}
	}
}

func TestAFullServerIsReported(t *testing.T) {
	s, _ := serve(t, netloop.Config{Room: netloop.RoomSpec{MaxClients: 2}}, newWatched())
	code, r, stderr := result(t, t.Context(), s, "--clients", "5", "--duration", "100ms")
	if want := (loadtest.Clients{Wanted: 5, Connected: 2, Verifying: 2, Failed: 3}); code != 99 || r.Clients != want || !r.Converged {
		t.Errorf("exit %d, %+v, converged %v", code, r.Clients, r.Converged)
	}
	if !strings.Contains(stderr, "3 of 5 clients did not connect: 3× refused: full") {
		t.Errorf("stderr lacks the reason: %s", stderr)
	}
}

// A refusal comes from a running server: the error suggests the remedy for the refusal only.
func TestTheRemedyFitsTheRefusal(t *testing.T) {
	s, _ := serve(t, netloop.Config{}, refusing{arena.New()})
	at := "--addr=" + s.Addr().String()
	for name, c := range map[string]struct{ args, want string }{
		"a token is needed":     {"", "refused: a token is needed"},
		"the wrong certificate": {"--cert-hash=" + strings.Repeat("00", 32), "pass the hash that the server prints as --cert-hash"},
	} {
		code, _, stderr := load(t, t.Context(), append(strings.Fields(c.args), at, "--clients=1")...)
		if code != 1 || !strings.Contains(stderr, c.want) || strings.Contains(stderr, "start the server there") {
			t.Errorf("%s: exit %d: %s", name, code, stderr)
		}
	}
}

// refusing is an arena that requires a token.
type refusing struct{ *arena.Game }

func (refusing) Open(r *netloop.Room) error {
	r.OnAdmit(func(context.Context, *netloop.Join) error {
		return netloop.Refuse(netloop.CodeRefused, "a token is needed")
	})
	return nil
}

func TestAnInterruptEndsTheRunEarly(t *testing.T) {
	g := newWatched()
	s, _ := serve(t, netloop.Config{}, g)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	stop := context.AfterFunc(t.Context(), interrupt)
	defer stop()
	go func() {
		<-g.ticked
		interrupt()
	}()
	code, r, stderr := result(t, ctx, s, "--clients", "2", "--duration", "60s")
	if want := (loadtest.Clients{Wanted: 2, Connected: 2, Verifying: 2}); code != 105 || r.Clients != want || !r.Run.Interrupted {
		t.Errorf("exit %d, %+v", code, r.Clients)
	}
	if r.Snapshots.Received == 0 || !strings.Contains(stderr, "interrupted: the report follows") {
		t.Errorf("%d snapshots measured, output %q", r.Snapshots.Received, stderr)
	}
}

// find plays with more and more bots, and soak has slopes. Both run against a server that has
// served many runs.
func TestFindAndSoakPlayARealServer(t *testing.T) {
	s, _ := serve(t, netloop.Config{Room: netloop.RoomSpec{MaxClients: 3, Rate: netloop.Hz(20)}}, newWatched())
	play := func(args ...string) (code int, stdout string) {
		code, stdout, stderr := load(t, t.Context(), args...)
		if strings.Contains(stderr, "overloaded") {
			t.Skip("this machine is too busy: the server is overloaded")
		}
		return code, stdout
	}
	at := []string{"--addr", s.Addr().String(), "--admin", s.AdminAddr().String(), "--ramp", "0s", "--warmup", "0s", "--duration", "200ms", "--ui", "quiet", "--out", "json"}
	code, stdout := play(append([]string{"find", "--from", "2", "--clients", "4", "--threshold", "clients.connected>=100%", "--threshold", "server.tick.p99<1s"}, at...)...)
	var found loadtest.Search
	if err := json.Unmarshal([]byte(stdout), &found); err != nil {
		t.Fatal(err)
	}
	if late := found.Knee < 3; !late && (found.Knee != 3 || found.Broken != 4 || len(found.Thresholds) != 2 || len(found.Steps) < 5) {
		t.Errorf("exit %d, %+v", code, found)
	}
	code, stdout = play(append([]string{"soak", "--clients", "2"}, at...)...)
	var r loadtest.Result
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Growth) == 0 || r.Growth[0].Grows || r.Verdict.Exit != code {
		t.Errorf("exit %d, %+v", code, r.Growth)
	}
}

func TestAServerOfAnotherGameIsReported(t *testing.T) {
	s, _ := serve(t, netloop.Config{}, otherGame{})
	code, stdout, stderr := load(t, t.Context(), "--addr", s.Addr().String(), "--ui", "quiet")
	if code != 1 || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "schema mismatch") {
		t.Errorf("exit %d, said %q and %q", code, stdout, stderr)
	}
}

type otherGame struct{}

var otherSchema = netloop.NewSchema("other", 1, 0)

func (otherGame) Schema() *netloop.Schema  { return otherSchema }
func (otherGame) Open(*netloop.Room) error { return nil }

func TestASilentAddressIsReported(t *testing.T) {
	silent, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	code, stdout, stderr := load(t, t.Context(), "--addr", silent.LocalAddr().String())
	if code != 1 || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "--addr") || !strings.Contains(stderr, silent.LocalAddr().String()) {
		t.Errorf("exit %d, said %q and %q", code, stdout, stderr)
	}
}

func TestASilentAdminListenerIsReportedAtOnce(t *testing.T) {
	s, _ := serve(t, netloop.Config{}, newWatched())
	code, stdout, stderr := load(t, t.Context(), "--addr", s.Addr().String(), "--admin", "http://"+s.Addr().String())
	if code != 1 || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "--admin") {
		t.Errorf("exit %d, said %q and %q", code, stdout, stderr)
	}
}

// q ends a load test on a terminal early: the terminal is as before, and the result is written.
func TestAKeyEndsARun(t *testing.T) {
	s, _ := serve(t, netloop.Config{}, arena.New())
	keyboard, typed := io.Pipe()
	var stdout bytes.Buffer
	stderr := &awaited{text: "measuring", come: make(chan struct{})}
	ended := make(chan int, 1)
	go func() {
		ended <- loadtest.ExecuteOnTerminal(t.Context(), []string{"loadclient", "--addr", s.Addr().String(), "--clients", "2", "--ramp", "0s", "--warmup", "0s", "--duration", "10m", "--out", "json"}, keyboard, &stdout, stderr, bot.New())
	}()
	<-stderr.come
	if _, err := io.WriteString(typed, "q"); err != nil {
		t.Fatal(err)
	}
	var r loadtest.Result
	if code := <-ended; code != 105 || json.Unmarshal(stdout.Bytes(), &r) != nil || !r.Run.Interrupted || r.Snapshots.Received == 0 {
		t.Errorf("exit %d, %d snapshots: %s", code, r.Snapshots.Received, stderr.String())
	}
	if text := stderr.String(); !strings.Contains(text[strings.LastIndex(text, "\x1b[?1049l"):], "the report follows") {
		t.Errorf("the message is lost: %q", text)
	}
	_ = typed.Close() // The program's reader waits for a key.
}

// awaited is an output; come is closed when it has a text.
type awaited struct {
	text string
	come chan struct{}

	mu  sync.Mutex
	b   bytes.Buffer
	has bool
}

func (a *awaited) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.b.Write(p)
	if !a.has && strings.Contains(a.b.String(), a.text) {
		a.has = true
		close(a.come)
	}
	return len(p), nil
}

func (a *awaited) String() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.b.String()
}
