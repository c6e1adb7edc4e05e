package metrics

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/metrics/ticks"
)

// scrapesAtOnce and scrapeTimeout bound the cost of scrapes. Four scrapes at once suffice for two
// Prometheus servers and a person.
const (
	scrapesAtOnce = 4
	scrapeTimeout = 5 * time.Second
)

// Metrics holds a server's series and implements prometheus.Collector.
type Metrics struct {
	registry *prometheus.Registry
	now      func() time.Duration // the clock of the tick records
	started  time.Duration

	// The goroutines of rooms write these fields through their accounts; scrapes read them. mu
	// guards them.
	mu       sync.Mutex
	account  ticks.Snapshot // Uptime is filled in when it is read
	rate     rateWindow
	windows  windows
	accounts map[*Account]struct{} // accounts of the existing rooms
	kinds    map[string]bool       // kinds of rooms with their own series
	systems  map[systemStage]prometheus.Observer

	families []*Family // one for each row of the table, and one for each metric of game
	game     []gameSeries
	gauges   int // number of values of all gauges of the game
	refused  atomic.Uint64
	server   Server // read by scrapes; nil before Serve

	// Any goroutine counts events in these families, with Add, when they happen.
	Deferred        *Family // snapshots that were due to a client and could not be sent, by reason
	Drops           *Family // entries that a queue dropped, by queue and reason
	Misuses         *Family // misuses of state by the game that a check found, by kind
	Hangs           *Family // hangs that a watchdog reported, by kind
	Inspect         *Family // nanoseconds that the inspector's questions took
	HandedOver      *Family // hand-overs of rooms to other servers, by result
	LeftBehind      *Family // functions that had not returned when the server ended, by hook
	OverloadedTicks *Family
	Resumes         *Family // of returning clients, by the state that they had kept
	Panics          *Family // isolated panics, by system or hook

	// ObserveTick and ObserveFlushLag count in these families.
	tickDuration, tickLateness, flushLag prometheus.Observer
	socketLag, socketWait                prometheus.Observer
	stages                               [loop.NumStages]prometheus.Observer
	missed, systemDuration               *Family
	// Rooms count in these families, by their kind.
	rooms, asleep              *Family
	opened, ended              *Family
	kindDuration, kindLateness *Family

	scraping sync.Mutex // one scrape at a time reads the sources
}

// runtimeMetrics selects the series of the Go runtime about the wait for a processor, the time of
// the garbage collector, and memory. Without the selection there would be 120 series.
var runtimeMetrics = regexp.MustCompile(`^(/sched/latencies:seconds|/cpu/classes/gc/total:cpu-seconds|/gc/heap/goal:bytes|/memory/classes/(heap/objects|heap/stacks|total):bytes)$`)

type systemStage struct {
	system string
	stage  loop.Stage
}

// New makes the series, and a registry for them and for the series of the Go runtime (garbage
// collector, scheduler) and of the process. now is the monotonic clock that also stamps tick
// records. If also is not nil, the netloop_ series are registered there too; two servers in one
// process wrap it with different labels. The metrics in game must be valid. GameCount, GameObserve
// and SetGame use their indexes in game.
func New(also prometheus.Registerer, now func() time.Duration, game ...*Game) (*Metrics, error) {
	m := &Metrics{
		registry: prometheus.NewRegistry(), now: now, started: now(),
		systems: make(map[systemStage]prometheus.Observer), accounts: map[*Account]struct{}{}, kinds: map[string]bool{},
	}
	for _, r := range table {
		f := newFamily(r, buckets(&r), &m.refused)
		m.families = append(m.families, f)
		if r.source.into != nil {
			r.source.into(m, f)
		}
	}
	for _, g := range game {
		m.addGame(g)
	}
	err := errors.Join(
		m.registry.Register(m),
		m.registry.Register(collectors.NewGoCollector(collectors.WithGoCollectorMemStatsMetricsDisabled(),
			collectors.WithGoCollectorRuntimeMetrics(collectors.GoRuntimeMetricsRule{Matcher: runtimeMetrics}))),
		m.registry.Register(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})),
	)
	if also != nil {
		err = errors.Join(err, also.Register(m))
	}
	if err != nil {
		return nil, fmt.Errorf("register: %w", err)
	}
	return m, nil
}

// Serve sets the server that scrapes read.
func (m *Metrics) Serve(s Server) {
	m.scraping.Lock()
	defer m.scraping.Unlock()
	m.server = s
}

// Describe is part of prometheus.Collector.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, f := range m.families {
		ch <- f.desc
	}
}

// Collect is part of prometheus.Collector: it reads the sources of all families, and then sends
// every series.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	m.scraping.Lock()
	for _, f := range m.families {
		if f.source.scrape != nil {
			f.source.scrape(m, f)
		}
	}
	m.scraping.Unlock()
	for _, f := range m.families {
		f.collect(ch)
	}
}

// Handler serves the registry. A series that cannot be collected fails the scrape with 500, is
// logged, and is counted in promhttp_metric_handler_errors_total: a partial answer would look like
// a healthy server.
func (m *Metrics) Handler(log *slog.Logger) http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		ErrorLog: errorLog{log}, ErrorHandling: promhttp.HTTPErrorOnError, Registry: m.registry,
		MaxRequestsInFlight: scrapesAtOnce, Timeout: scrapeTimeout,
	})
}

type errorLog struct{ log *slog.Logger }

func (e errorLog) Println(v ...any) {
	e.log.Error("the metrics could not be collected or sent", "err", fmt.Sprint(v...))
}
