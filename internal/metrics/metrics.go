package metrics

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/metrics/ticks"
)

// The limits on label sets. Names of systems and methods come from a game's code; the
// rest comes from enumerations of this module and has room to spare.
const (
	maxSystems = 512  // (system, stage): about 0.6 KB each
	maxRPCs    = 4096 // (method, stage, outcome)
	maxClasses = 1024
	maxFields  = 4096 // (class, field)
	maxOthers  = 128
)

// scrapesAtOnce and scrapeTimeout bound what scraping may cost: one Prometheus, its
// double, and a person looking.
const (
	scrapesAtOnce = 4
	scrapeTimeout = 5 * time.Second
)

// The buckets, in seconds. Ticks, lateness and flush lag are told apart from 0.1 to
// 100 ms, finest around the budgets of 128, 60, 30 and 20 Hz; parts of a tick from 10 µs.
var (
	tickBuckets = []float64{.0001, .0002, .0005, .001, .002, .004, .006, .008, .01, .012, .016, .02, .033, .05, .1}
	partBuckets = []float64{.00001, .00005, .0001, .0005, .001, .002, .005, .01, .02, .05}
)

// Metrics holds a server's series and implements prometheus.Collector.
type Metrics struct {
	registry *prometheus.Registry
	now      func() time.Duration // the clock of the tick records
	started  time.Duration

	// Fed by ObserveTick, guarded by mu: the room's goroutine writes, scrapes read.
	mu      sync.Mutex
	account ticks.Snapshot // Uptime is filled in when it is read
	rate    rateWindow

	tickDuration, tickLateness, flushLag prometheus.Histogram
	stageDuration, systemDuration        *prometheus.HistogramVec
	stages                               [loop.NumStages]prometheus.Observer
	systems                              map[systemStage]prometheus.Observer // the room's goroutine only

	ticksTotal, overruns, droppedTicks, tickRate     *prometheus.Desc
	timeScale                                        *prometheus.Desc
	timeScaleBits                                    atomic.Uint64 // of a float64
	seriesRefused                                    *prometheus.Desc
	refused                                          atomic.Uint64
	families                                         []*family
	panics, rpcs, clients, queueDepth, drops         *family
	rpcsWaited                                       *family
	missed, quarantined                              *family
	choked, snapshotBytes, snapshotRecords           *family
	clamped, fullStates, bytes, packets, disconnects *family
	deferred, limits, waited, held, misuses          *family
	visibility, badPositions                         *family
	spent, spentOnFields                             *family
	handshakes, refusals                             *family
	overload, overloadedTicks, hungTicks, traces     *family
	logsDropped                                      *family

	hooksMu sync.Mutex
	hooks   []func()
}

type systemStage struct {
	system string
	stage  loop.Stage
}

// New makes the series and a registry that holds them together with those of the Go
// runtime (garbage collector, scheduler) and the process. now is the monotonic clock that
// also stamps tick records. If also is not nil, the netloop_ series are registered there
// too; two servers in one process wrap it with different labels.
func New(also prometheus.Registerer, now func() time.Duration) (*Metrics, error) {
	m := &Metrics{
		registry: prometheus.NewRegistry(), now: now, started: now(),
		systems: make(map[systemStage]prometheus.Observer),
	}
	m.makeTickSeries()
	m.makeFamilies()
	err := errors.Join(
		m.registry.Register(m),
		m.registry.Register(collectors.NewGoCollector(
			collectors.WithGoCollectorRuntimeMetrics(collectors.MetricsGC, collectors.MetricsScheduler))),
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

func (m *Metrics) makeTickSeries() {
	histogram := func(name, help string, buckets []float64) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{Name: "netloop_" + name, Help: help, Buckets: buckets})
	}
	vec := func(name, help string, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "netloop_" + name, Help: help, Buckets: partBuckets}, labels)
	}
	desc := func(name, help string) *prometheus.Desc { return prometheus.NewDesc("netloop_"+name, help, nil, nil) }

	m.tickDuration = histogram("tick_duration_seconds", "Time that one tick took.", tickBuckets)
	m.tickLateness = histogram("tick_lateness_seconds", "Time from a tick's deadline to its start.", tickBuckets)
	m.flushLag = histogram("flush_lag_seconds", "Time from the flush of a tick to the last datagram of a client accepted by the transport.", tickBuckets)
	m.stageDuration = vec("stage_duration_seconds", "Time that one stage took in one tick.", "stage")
	m.systemDuration = vec("system_duration_seconds", "Time that one system took at one stage in one tick.", "system", "stage")
	for i, s := range loop.Stages() {
		m.stages[i] = m.stageDuration.WithLabelValues(s.String())
	}
	m.ticksTotal = desc("ticks_total", "Ticks that ran.")
	m.overruns = desc("tick_overruns_total", "Ticks that took longer than the tick period.")
	m.droppedTicks = desc("dropped_ticks_total", "Ticks that never ran because the server had fallen too far behind.")
	m.tickRate = desc("tick_rate_hertz", "Ticks per second, measured over the last five seconds.")
	m.timeScale = desc("time_scale", "How many times as fast as game time scaled time runs: 0 is a pause.")
	m.SetTimeScale(1)
	m.seriesRefused = desc("metrics_series_refused_total", "Values not counted because their metric has too many label sets.")
}

func (m *Metrics) makeFamilies() {
	add := func(kind prometheus.ValueType, limit int, name, help string, labels ...string) *family {
		f := newFamily(kind, &m.refused, limit, name, help, labels...)
		if len(labels) == 0 {
			f.add(0)
		}
		m.families = append(m.families, f)
		return f
	}
	const counter, gauge = prometheus.CounterValue, prometheus.GaugeValue
	m.panics = add(counter, maxSystems, "system_panics_total", "Panics of systems, hooks such as OnJoin, and handlers, that were isolated.", "system")
	m.missed = add(counter, maxSystems, "system_missed_total", "Calls that periodic systems owed and gave up.", "system")
	m.quarantined = add(gauge, 1, "systems_quarantined", "Systems that do not run because they panicked again and again.")
	m.clients = add(gauge, 1, "clients", "Clients in the room.")
	m.overload = add(gauge, 1, "overload_level", "What the server gives up because it cannot keep up: 0 nothing, 1 half of the snapshots, 2 objects of low priority, 3 new clients.")
	m.overloadedTicks = add(counter, 1, "overloaded_ticks_total", "Ticks that ran at an overload level above 0.")
	m.hungTicks = add(counter, 1, "hung_ticks_total", "Ticks, and hooks at the end, that the watchdog reported because they did not return.")
	m.traces = add(counter, maxOthers, "slow_tick_traces_total", "Ticks over budget by what became of their execution trace: written, skipped because there was one just before, failed.", "outcome")
	m.rpcs = add(counter, maxRPCs, "rpcs_total", "Messages that reached their queue, by what became of them.", "method", "stage", "outcome")
	m.rpcsWaited = add(counter, 1, "rpcs_waited_total", "Messages that waited for the next tick, once per tick, because the part of the tick that messages have was used up.")
	m.queueDepth = add(gauge, maxOthers, "queue_depth", "Entries waiting in a queue.", "queue")
	m.limits = add(counter, maxOthers, "rpc_limits_total", "What the limits of messages did to clients, or would have done.", "limit", "action", "dry")
	m.drops = add(counter, maxOthers, "queue_drops_total", "Entries that a queue did not take or did not keep.", "queue", "reason")
	m.choked = add(counter, 1, "choke_total", "Datagrams that waited 1 ms or more for a client's congestion window.")
	m.deferred = add(counter, maxOthers, "snapshots_deferred_total", "Snapshots that were due and could not leave in their tick.", "reason")
	m.snapshotBytes = add(counter, 1, "snapshot_bytes_total", "Bytes of snapshots handed to the transport.")
	m.snapshotRecords = add(counter, 1, "snapshot_records_total", "Object records in snapshots.")
	m.clamped = add(counter, 1, "clamped_values_total", "Values cut or clamped to fit their field, NaN included.")
	m.held = add(counter, maxOthers, "held_values_total", "Changed values that a capture held back: below their threshold, or within their interval.", "reason")
	m.visibility = add(counter, maxOthers, "visibility_changes_total", "Objects that appeared to a client or disappeared from it while they lived.", "change")
	m.badPositions = add(counter, 1, "grid_bad_positions_total", "Positions on grids that are too far out, infinite or not a number.")
	m.misuses = add(counter, maxOthers, "state_misuses_total", "What checks of state found: fields changed without Edit, values refused because they do not fit.", "kind")
	m.spent = add(counter, maxClasses, "replication_bytes_total", "Bytes of object records in snapshots, by class; despawns have one of their own.", "class")
	m.spentOnFields = add(counter, maxFields, "replication_field_bytes_total", "Bytes of fields in object records, without the heads of records, estimated from one record in 1024.", "class", "field")
	m.waited = add(counter, maxOthers, "snapshot_records_waited_total", "Object records that were owed to a client and left out of a snapshot: because its packets or its budget were used up, because it fits no packet and the stream had no room, or because the server sheds.", "reason")
	m.fullStates = add(counter, maxOthers, "full_states_total", "Object records sent in full instead of as a delta.", "reason")
	m.bytes = add(counter, maxOthers, "transport_bytes_total", "Bytes of datagrams and stream data.", "direction")
	m.packets = add(counter, maxOthers, "transport_packets_total", "Datagrams.", "direction")
	m.disconnects = add(counter, maxOthers, "disconnects_total", "Connections that ended, by disconnect code.", "code")
	m.handshakes = add(counter, 1, "handshakes_total", "Connections that finished the cryptographic handshake.")
	m.refusals = add(counter, 1, "refusals_total", "Connections that were declined, by the server or by the game.")
	m.logsDropped = add(counter, 1, "logs_dropped_total", "Log lines lost because the log output was too slow.")
}

// OnCollect adds a function that runs before every collection, on the scrape's goroutine
// and never twice at once. It feeds what lives elsewhere as atomics through the Set methods.
func (m *Metrics) OnCollect(fn func()) {
	m.hooksMu.Lock()
	defer m.hooksMu.Unlock()
	m.hooks = append(m.hooks, fn)
}

// Describe is part of prometheus.Collector.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	m.vectors(func(c prometheus.Collector) { c.Describe(ch) })
	for _, d := range []*prometheus.Desc{m.ticksTotal, m.overruns, m.droppedTicks, m.tickRate, m.timeScale, m.seriesRefused} {
		ch <- d
	}
	for _, f := range m.families {
		ch <- f.desc
	}
}

// Collect is part of prometheus.Collector: hooks first, then every series.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	m.hooksMu.Lock()
	for _, fn := range m.hooks {
		fn()
	}
	m.hooksMu.Unlock()

	m.vectors(func(c prometheus.Collector) { c.Collect(ch) })
	m.mu.Lock()
	ran, overruns, dropped := m.account.Ticks, m.account.Overruns, m.account.DroppedTicks
	rate := m.rate.hertz(m.now(), m.account.Budget)
	m.mu.Unlock()
	value := func(d *prometheus.Desc, kind prometheus.ValueType, v float64) {
		ch <- prometheus.MustNewConstMetric(d, kind, v)
	}
	value(m.ticksTotal, prometheus.CounterValue, float64(ran))
	value(m.overruns, prometheus.CounterValue, float64(overruns))
	value(m.droppedTicks, prometheus.CounterValue, float64(dropped))
	value(m.tickRate, prometheus.GaugeValue, rate)
	value(m.timeScale, prometheus.GaugeValue, math.Float64frombits(m.timeScaleBits.Load()))
	value(m.seriesRefused, prometheus.CounterValue, float64(m.refused.Load()))
	for _, f := range m.families {
		f.collect(ch)
	}
}

func (m *Metrics) vectors(do func(prometheus.Collector)) {
	for _, c := range []prometheus.Collector{
		m.tickDuration, m.tickLateness, m.flushLag, m.stageDuration, m.systemDuration,
	} {
		do(c)
	}
}

// Handler serves the registry. A series that cannot be collected fails the scrape with 500,
// is logged, and is counted in promhttp_metric_handler_errors_total: half an answer would
// look like a healthy server.
func (m *Metrics) Handler(log *slog.Logger) http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		ErrorLog: errorLog{log}, ErrorHandling: promhttp.HTTPErrorOnError, Registry: m.registry,
		MaxRequestsInFlight: scrapesAtOnce, Timeout: scrapeTimeout,
	})
}

type errorLog struct{ log *slog.Logger }

func (e errorLog) Println(v ...any) { e.log.Error("metrics: scrape", "err", fmt.Sprint(v...)) }
