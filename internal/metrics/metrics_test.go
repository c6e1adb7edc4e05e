package metrics

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/netvar"
	"github.com/netloop/netloop/internal/netvar/interest"
	"github.com/netloop/netloop/internal/transport"
)

const budget = time.Second / 60

// fake is a clock that a test sets.
type fake struct {
	mu sync.Mutex
	t  time.Duration
}

func (f *fake) now() time.Duration { f.mu.Lock(); defer f.mu.Unlock(); return f.t }
func (f *fake) set(t time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.t = t
}

// one is the metrics of a server with one room.
type one struct {
	*Metrics
	*Account
}

func newMetrics(t testing.TB) (one, *fake) {
	t.Helper()
	clock := &fake{}
	m, err := New(nil, clock.now)
	if err != nil {
		t.Fatal(err)
	}
	return one{m, m.Open("")}, clock
}

func record(n uint64) *loop.Record {
	at := time.Duration(n) * budget
	rec := &loop.Record{Tick: n, Deadline: at, Start: at + 300*time.Microsecond, Duration: 2 * time.Millisecond, FixedSteps: 1}
	for i, s := range loop.Stages() {
		rec.Stages[i] = 100 * time.Microsecond
		rec.Systems = append(rec.Systems, loop.SystemCost{Name: "arena.move", Stage: s, Cost: 50 * time.Microsecond, Runs: 1})
	}
	return rec
}

// play runs ticks from..to with the clock in step.
func play(m one, clock *fake, from, to uint64) {
	for n := from; n <= to; n++ {
		rec := record(n)
		clock.set(rec.Start + rec.Duration)
		m.ObserveTick(rec, budget)
	}
}

func scrape(t testing.TB, m one) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler(slog.New(slog.DiscardHandler)).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

func expect(t *testing.T, text string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains("\n"+text, "\n"+line+"\n") {
			t.Errorf("no line %q", line)
		}
	}
}

// fakeRoom has some plain numbers of each kind.
type fakeRoom struct{ state netvar.Stats }

func (r *fakeRoom) State() *netvar.Stats  { return &r.state }
func (r *fakeRoom) Clients() int          { return 100 }
func (r *fakeRoom) DelayBuffer() int      { return 0 }
func (r *fakeRoom) Dropped() int          { return 7 }
func (r *fakeRoom) Transports(f Part)     { f.Set(93, "quic") }
func (r *fakeRoom) Depths(f Part)         { f.Set(3, "rpc_Update") }
func (r *fakeRoom) Drops(f Part)          { f.Set(4, "rpc", "client_gone") }
func (r *fakeRoom) MessagesWaited(f Part) { f.Set(14) }
func (r *fakeRoom) Mispredictions(f Part) { f.Set(15) }
func (r *fakeRoom) Inputs(f Part)         { f.Set(15, "applied") }
func (r *fakeRoom) Views(f Part)          { f.Set(16, "as_sent") }
func (r *fakeRoom) Limits(f Part)         { f.Set(3, "client", "drop", "true") }
func (r *fakeRoom) Bytes(f Part)          { f.Set(900, "player") }
func (r *fakeRoom) FieldBytes(f Part)     { f.Set(800, "player", "Pos") }
func (r *fakeRoom) Messages(f Part) {
	f.Set(7, "arena.Steer", "FixedUpdate", "ran")
	f.Set(10, "arena.Steer", "FixedUpdate", "ran")
	f.Set(5, "arena.Chat", "Update", "late")
}

// fakeServer has the numbers that a scrape reads.
type fakeServer struct {
	traffic transport.Stats
	read    int // scrapes
}

func (s *fakeServer) SocketCalls(f *Family)      { f.Set(1, "in") }
func (s *fakeServer) SocketPackets(f *Family)    { f.Set(2, "in", "moved") }
func (s *fakeServer) SocketRetries(f *Family)    { f.Set(3) }
func (s *fakeServer) Records(f *Family)          { f.Set(27, "in", "opened") }
func (s *fakeServer) RecordPaths(f *Family)      { f.Set(28, "begun") }
func (s *fakeServer) RecordClients(f *Family)    { f.Set(29) }
func (s *fakeServer) Traffic() *transport.Stats  { return &s.traffic }
func (s *fakeServer) TimeScale(f *Family)        { f.SetFloat(0.5); s.read++ }
func (s *fakeServer) Overload(f *Family)         { f.Set(2) }
func (s *fakeServer) Quarantined(f *Family)      { f.Set(1) }
func (s *fakeServer) Simulated(f *Family)        { f.Set(13, "up", "lost") }
func (s *fakeServer) LogsDropped(f *Family)      { f.Set(12) }
func (s *fakeServer) AdminRefusals(f *Family)    { f.Set(21, "token") }
func (s *fakeServer) WebRequests(f *Family)      { f.Set(25, "answered") }
func (s *fakeServer) WebConnections(f *Family)   { f.Set(26, "full") }
func (s *fakeServer) CertificateLeft(f *Family)  { f.SetFloat(6.5, "files") }
func (s *fakeServer) ClusterConnected(f *Family) { f.Set(1) }
func (s *fakeServer) ClusterServers(f *Family)   { f.Set(3, "alive"); f.Set(1, "suspect") }
func (s *fakeServer) ClusterRooms(f *Family)     { f.Set(12) }

func (s *fakeServer) CertificateReloads(f *Family) {
	f.Set(4, "loaded")
	f.Set(5, "failed")
}
func (s *fakeServer) Tokens(f *Family)     { f.Set(3, "accepted"); f.Set(4, "spent") }
func (s *fakeServer) TokenIDs(f *Family)   { f.Set(5) }
func (s *fakeServer) KeyReloads(f *Family) { f.Set(6, "failed") }
func (s *fakeServer) Traces(f *Family) {
	f.Set(1, "written")
	f.Set(2, "skipped")
	f.Set(3, "failed")
}

// newServer makes a server with a room that has numbers of every source.
func newServer() (*fakeRoom, *fakeServer) {
	r, s := &fakeRoom{}, &fakeServer{}
	r.state = netvar.Stats{Records: 11, Bytes: 1200, FullFirst: 6, Clamped: 13, Waited: 9, OverBudget: 4, WaitedLarge: 2, Shed: 1, Stats: interest.Stats{Hidden: 8}}
	s.traffic.Chokes.Store(9)
	s.traffic.Handshakes[transport.WebTransport].Store(20)
	s.traffic.Joined[transport.WebSocket].Store(19)
	s.traffic.Refused.Store(5)
	s.traffic.Retries.Store(6)
	s.traffic.Unadmitted.Store(7)
	s.traffic.DatagramsOut.Store(2)
	s.traffic.DatagramBytesIn.Store(60)
	s.traffic.StreamBytesIn.Store(40)
	s.traffic.Disconnect(transport.CodeKicked)
	s.traffic.Drop(transport.DropStale, 17)
	return r, s
}

// feed counts in every way except scrapes.
func feed(m one, r Room) {
	m.Report(r)
	m.OverloadedTicks.Add(1)
	m.Hangs.Add(1)
	m.Panics.Add(1, "OnJoin")
	m.Misuses.Add(1, "unedited")
	m.Deferred.Add(1, "window_closed")
	m.Drops.Add(2, "post", "full")
	m.ObserveFlushLag(150 * time.Microsecond)
	m.ObserveSocketLag(time.Millisecond)
	m.ObserveSocketWait(time.Millisecond)
}

func TestAScrapeHasAllCountedValues(t *testing.T) {
	m, clock := newMetrics(t)
	room, server := newServer()
	m.Serve(server)
	feed(m, room)
	play(m, clock, 1, 600)
	slow := record(601)
	slow.Duration, slow.Dropped = 40*time.Millisecond, 3
	slow.Panics = []loop.Panic{{System: "arena.move"}}
	slow.MorePanics = 2
	slow.Systems[0].Missed = 4
	m.ObserveTick(slow, budget)

	text := scrape(t, m)
	expect(t, text,
		"netloop_ticks_total 601", "netloop_tick_overruns_total 1", "netloop_dropped_ticks_total 3",
		"netloop_tick_duration_seconds_count 601", `netloop_tick_duration_seconds_bucket{le="0.033"} 600`, "netloop_tick_lateness_seconds_bucket{le=\"0.0005\"} 601",
		`netloop_stage_duration_seconds_count{stage="FixedUpdate"} 601`,
		// Parts have buckets of their own.
		`netloop_stage_duration_seconds_bucket{stage="FixedUpdate",le="0.005"} 601`,
		`netloop_system_duration_seconds_count{stage="PostLateUpdate",system="arena.move"} 601`,
		`netloop_rpc_limits_total{action="drop",dry="true",limit="client"} 3`,
		`netloop_system_panics_total{system="arena.move"} 1`,
		`netloop_system_panics_total{system="OnJoin"} 1`,
		`netloop_system_panics_total{system="others"} 2`,
		`netloop_system_missed_total{system="arena.move"} 4`,
		"netloop_systems_quarantined 1",
		`netloop_snapshots_deferred_total{reason="window_closed"} 1`,
		"netloop_clients 100", `netloop_transport_clients{transport="quic"} 93`,
		"netloop_overload_level 2", "netloop_overloaded_ticks_total 1", "netloop_time_scale 0.5", "netloop_hung_ticks_total 1",
		`netloop_slow_tick_traces_total{outcome="written"} 1`, `netloop_slow_tick_traces_total{outcome="skipped"} 2`,
		`netloop_slow_tick_traces_total{outcome="failed"} 3`, `netloop_state_misuses_total{kind="unedited"} 1`,
		`netloop_rpcs_total{method="arena.Steer",outcome="ran",stage="FixedUpdate"} 10`,
		`netloop_rpcs_total{method="arena.Chat",outcome="late",stage="Update"} 5`,
		"netloop_rpcs_waited_total 14", `netloop_queue_depth{queue="rpc_Update"} 3`,
		`netloop_queue_drops_total{queue="datagram",reason="stale"} 17`,
		`netloop_queue_drops_total{queue="post",reason="full"} 2`,
		`netloop_queue_drops_total{queue="rpc",reason="client_gone"} 4`,
		"netloop_flush_lag_seconds_count 1", "netloop_socket_lag_seconds_count 1", "netloop_socket_wait_seconds_count 1", "netloop_choke_total 9",
		"netloop_snapshot_records_total 11", "netloop_snapshot_bytes_total 1200",
		`netloop_replication_bytes_total{class="player"} 900`, `netloop_replication_field_bytes_total{class="player",field="Pos"} 800`,
		`netloop_full_states_total{reason="first"} 6`, "netloop_clamped_values_total 13",
		`netloop_snapshot_records_waited_total{reason="packets"} 3`, `netloop_visibility_changes_total{change="hidden"} 8`,
		`netloop_transport_bytes_total{direction="in"} 100`, `netloop_transport_packets_total{direction="out"} 2`,
		`netloop_handshakes_total{transport="quic"} 0`, `netloop_handshakes_total{transport="webtransport"} 20`, `netloop_joins_total{transport="websocket"} 19`, "netloop_refusals_total 5", "netloop_address_validations_total 6", "netloop_strangers 7",
		`netloop_disconnects_total{code="kicked"} 1`,
		`netloop_cluster_connected 1`, `netloop_cluster_servers{kind="alive"} 3`, `netloop_cluster_rooms 12`,
		`netloop_certificate_left_seconds{kind="files"} 6.5`, `netloop_certificate_reloads_total{outcome="loaded"} 4`,
		`netloop_certificate_reloads_total{outcome="failed"} 5`,
		`netloop_admin_refusals_total{reason="token"} 21`,
		`netloop_socket_calls_total{direction="in"} 1`, `netloop_socket_packets_total{direction="in",outcome="moved"} 2`, "netloop_socket_retries_total 3",
		`netloop_records_total{direction="in",outcome="opened"} 27`, `netloop_record_paths_total{outcome="begun"} 28`, "netloop_record_clients 29",
		"netloop_logs_dropped_total 12", "netloop_metrics_series_refused_total 0",
	)
	for _, never := range []string{`netloop_disconnects_total{code="game"}`, `netloop_queue_drops_total{queue="inbox"`} {
		if strings.Contains(text, never) {
			t.Errorf("%s has never counted and has a series", never)
		}
	}
	for _, want := range []string{"go_gc_", "go_sched_latencies_seconds_bucket", "process_cpu_seconds_total", "promhttp_metric_handler_errors_total"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s", want)
		}
	}
	if server.read != 1 {
		t.Errorf("the server was read %d times in one scrape", server.read)
	}
	// Values are those of a scrape, of the families whose names begin so.
	const values = "map[clients:[{[] 100}] clients_dropped:[{[] 7}] clients_resumed_total:[] queue_drops_total:[{[datagram stale] 17} {[post full] 2} {[rpc client_gone] 4}] rpcs_waited_total:[{[] 14}] tick_overruns_total:[{[] 1}] transport_packets_total:[{[in] 0} {[out] 2}]]"
	if got := fmt.Sprint(m.Values("clients", "transport_packets", "tick_o", "tick_duration", "queue_drops", "rpcs_w")); got != values {
		t.Errorf("the values are %s, want %s", got, values)
	}
	var ticks []string
	for _, w := range m.Windows() {
		ticks = append(ticks, fmt.Sprint(w.Span, " ", w.Ticks, " ", w.Overruns, " ", w.Dropped, " ", w.Tick.Max))
	}
	if got, want := strings.Join(ticks, ", "), "10s 302 1 3 40ms, 1m0s 601 1 3 40ms, 5m0s 601 1 3 40ms"; got != want {
		t.Errorf("the windows are %s, want %s", got, want)
	}
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	m, clock := newMetrics(t)
	play(m, clock, 1, 10)
	rec := record(11)
	if n := testing.AllocsPerRun(1000, func() { m.ObserveTick(rec, budget) }); n != 0 {
		t.Errorf("ObserveTick: %v allocations", n)
	}
	room, _ := newServer()
	feed(m, room)
	if n := testing.AllocsPerRun(1000, func() { feed(m, room) }); n != 0 {
		t.Errorf("feeding: %v allocations", n)
	}
}

func TestLabelSetsAreBounded(t *testing.T) {
	m, _ := newMetrics(t)
	rec := record(1)
	for i := range maxSystems + 50 {
		rec.Systems = []loop.SystemCost{{Name: strings.Repeat("x", i), Stage: loop.Update, Runs: 1}}
		m.ObserveTick(rec, budget)
	}
	for i := range maxOthers + 30 {
		m.Drops.Add(1, "q", strings.Repeat("x", i))
	}
	m.Drops.Add(1, "q", "\xff")
	for _, kind := range []kind{gauge, counter} { // Families without room.
		Part{&Family{row: row{kind: kind}, refused: m.Drops.refused}, m.Account}.Set(1)
	}
	if f := newFamily(row{name: "x", kind: counter}, nil, nil); len(f.sets) != 1 {
		t.Error("a counter does not exist before its first count")
	}
	// It existed before.
	rec.Systems = []loop.SystemCost{{Name: "x", Stage: loop.Update, Runs: 1}}
	m.ObserveTick(rec, budget)
	expect(t, scrape(t, m), "netloop_metrics_series_refused_total 83",
		`netloop_system_duration_seconds_count{stage="Update",system="x"} 2`)
}

func TestArbitraryNamesCannotBreakAScrape(t *testing.T) {
	m, _ := newMetrics(t)
	rec := record(1)
	rec.Systems = []loop.SystemCost{{Name: "\xff", Stage: loop.Update, Runs: 1}, {Name: "idle", Stage: loop.Update}}
	rec.Panics = []loop.Panic{{System: "\xfe"}}
	m.ObserveTick(rec, budget)
	for range 2 {
		m.Drops.Add(1, "\xff", "full")
	}
	text := scrape(t, m)
	expect(t, text, `netloop_system_panics_total{system="?"} 1`, `netloop_queue_drops_total{queue="?",reason="full"} 2`, `netloop_system_duration_seconds_count{stage="Update",system="?"} 1`)
	if strings.Contains(text, `system="idle"`) {
		t.Error("a system that did not run has a cost")
	}
	if strings.Contains(text, `system="others"`) {
		t.Error("panics are counted without a panic")
	}
}

func TestAlsoRegistersWithTheCaller(t *testing.T) {
	reg := prometheus.NewRegistry()
	clock := &fake{}
	for _, name := range []string{"one", "two"} {
		if _, err := New(prometheus.WrapRegistererWith(prometheus.Labels{"server": name}, reg), clock.now); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := reg.Gather(); err != nil {
		t.Error(err)
	}
	if _, err := New(prometheus.WrapRegistererWith(prometheus.Labels{"server": "two"}, reg), clock.now); err == nil {
		t.Error("the same series twice must be an error")
	}
}

func TestMetricsMayBeCountedByManyGoroutines(t *testing.T) {
	m, clock := newMetrics(t)
	var wg sync.WaitGroup
	wg.Go(func() { play(m, clock, 1, 300) })
	for range 4 {
		wg.Go(func() {
			for range 100 {
				m.Panics.Add(1, "OnLeave")
				m.ObserveFlushLag(time.Millisecond)
			}
		})
	}
	wg.Go(func() {
		for range 5 {
			scrape(t, m)
			m.Ticks()
		}
	})
	wg.Wait()
	expect(t, scrape(t, m), `netloop_system_panics_total{system="OnLeave"} 400`, "netloop_ticks_total 300")
}

// Names are netloop_, base units, and no label that grows with the number of clients.
func TestSeriesNamesFollowTheConventions(t *testing.T) {
	m, clock := newMetrics(t)
	room, server := newServer()
	m.Serve(server)
	feed(m, room)
	play(m, clock, 1, 2)
	allowed := regexp.MustCompile(`^(stage|system|method|outcome|queue|reason|direction|code|limit|action|dry|kind|class|field|change|transport|le)$`)
	label := regexp.MustCompile(`(\w+)="`)
	for line := range strings.Lines(scrape(t, m)) {
		if !strings.HasPrefix(line, "netloop_") {
			continue
		}
		for _, l := range label.FindAllStringSubmatch(line, -1) {
			if !allowed.MatchString(l[1]) {
				t.Errorf("label %q in %s", l[1], line)
			}
		}
		if strings.Contains(line, "_ms") || strings.Contains(line, "_us") {
			t.Errorf("not a base unit: %s", line)
		}
	}
}

func TestPromtoolReportsNoProblem(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed (Debian package prometheus)")
	}
	m, clock := newMetrics(t)
	room, server := newServer()
	m.Serve(server)
	feed(m, room)
	play(m, clock, 1, 10)
	cmd := exec.Command(promtool, "check", "metrics")
	cmd.Stdin = strings.NewReader(scrape(t, m))
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("promtool check metrics: %v\n%s", err, out)
	}
}

type failing struct{}

func (failing) Describe(ch chan<- *prometheus.Desc) {
	ch <- prometheus.NewDesc("netloop_broken", "Broken.", nil, nil)
}

func (failing) Collect(ch chan<- prometheus.Metric) {
	ch <- prometheus.NewInvalidMetric(prometheus.NewDesc("netloop_broken", "Broken.", nil, nil), io.ErrUnexpectedEOF)
}

func TestABrokenSeriesFailsTheScrape(t *testing.T) {
	m, _ := newMetrics(t)
	m.registry.MustRegister(failing{})
	var out strings.Builder
	w := httptest.NewRecorder()
	m.Handler(slog.New(slog.NewTextHandler(&out, nil))).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusInternalServerError || !strings.Contains(out.String(), "netloop_broken") {
		t.Errorf("status %d, log %q", w.Code, out.String())
	}
}

// slow is a collector that takes an hour.
type slow struct{ failing }

func (slow) Collect(chan<- prometheus.Metric) { time.Sleep(time.Hour) }

func TestAScrapeEndsAfterFiveSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, _ := newMetrics(t)
		m.registry.MustRegister(slow{})
		w, began := httptest.NewRecorder(), time.Now()
		m.Handler(slog.New(slog.DiscardHandler)).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		if took := time.Since(began); w.Code != http.StatusServiceUnavailable || took != 5*time.Second {
			t.Errorf("status %d after %v", w.Code, took)
		}
		time.Sleep(time.Hour) // until the collector returns
	})
}
