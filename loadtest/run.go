package loadtest

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/clock"
	"github.com/netloop/netloop/internal/metrics/ticks"
	"github.com/netloop/netloop/internal/net/quicnet"
	"github.com/netloop/netloop/internal/netem"
	"github.com/netloop/netloop/internal/slowtick"
)

// phase is the phase of a run. Phases only advance.
type phase int32

const (
	ramping phase = iota
	warming
	measuring
	verifying
	goodbye
)

// String returns the name of the phase in the progress line.
func (p phase) String() string {
	return [...]string{"connecting", "warming up", "measuring", "verifying", "leaving"}[p]
}

// run is one load test.
type run struct {
	opts   options
	bot    Bot
	clock  *clock.System
	screen *screen
	admin  *adminPage // nil without --admin

	tick    time.Duration // the period of the room that the first bot joins
	window  window
	workers []*worker
	slots   []atomic.Pointer[player] // by client: the one that plays
	varies  []bool                   // by client: the plan changes it in the window
	ended   sync.WaitGroup           // workers
	dialers []*client.Dialer
	// perSocket is the number of clients of each dialer.
	perSocket int
	simulated *netem.Stats // nil without --simulate
	// Those of --slow-readers have a socket each, by client.
	slowReaders map[int]*slowReader
	slowDialers map[int]*client.Dialer
	slowDrops   atomic.Int64 // their connections that broke or ended

	deadAfter time.Duration // see deadAfter

	start time.Time     // of the run
	began time.Duration // the same on the run's clock

	at         atomic.Int32  // phase
	verifyFrom time.Duration // written before the phase that reads it
	entered    atomic.Int64  // clients that have joined for the first time
	admitted   atomic.Int64  // joins
	connected  atomic.Int64  // clients that have joined, without those that have left for another
	rejoining  atomic.Int64  // clients that have left, and join anew
	failed     atomic.Int64
	gone       atomic.Int64 // lost ones
	disturbed  atomic.Int64 // of them: those that had joined anew
	away       atomic.Int64 // that are reconnecting now
	drops      atomic.Int64
	resumes    atomic.Int64
	settled    atomic.Int64

	mu          sync.Mutex
	dialErrors  tally // under mu
	joins       joins // under mu
	interrupted bool
	last        Point // phase and clients before the goodbye
	onTime      bool  // the window began at its planned time
	dead        bool  // the server has stopped answering
	before      reading
	after       reading
}

// reading has the figures of both processes at one moment.
type reading struct {
	ticks   *ticks.Snapshot // nil if unknown
	slow    []slowtick.Record
	metrics samples
	own     usage
}

// joins has the admissions of a run.
type joins struct {
	latency     *hdrhistogram.Histogram
	first, last time.Duration // start of the first, end of the last
}

func (j *joins) add(began, ended time.Duration) {
	if j.latency == nil {
		j.latency, j.first = newHistogram(), began
	}
	record(j.latency, ended-began)
	j.first, j.last = min(j.first, began), max(j.last, ended)
}

// result returns the figures of the admissions, with the reasons of the others.
func (j *joins) result(refused, ended tally) Joins {
	r := Joins{Refused: refused, Ended: ended}
	if j.latency != nil {
		r.Admitted, r.Latency = uint64(j.latency.TotalCount()), spread(j.latency)
		if d := j.last - j.first; d > 0 {
			r.Rate = hundredths(float64(r.Admitted) / d.Seconds())
		}
	}
	return r
}

func newRun(o options, b Bot, s *screen) *run {
	r := &run{opts: o, bot: b, slots: make([]atomic.Pointer[player], o.clients), clock: clock.NewSystem(), screen: s, dialErrors: tally{}, slowReaders: map[int]*slowReader{}, slowDialers: map[int]*client.Dialer{}, start: time.Now(), deadAfter: deadAfter}
	r.began = r.now()
	if o.admin != "" {
		r.admin = newAdmin(o.admin, o.token)
	}
	if o.network != (netem.Spec{}) {
		r.simulated = new(netem.Stats)
	}
	return r
}

func (r *run) now() time.Duration { return r.clock.Now() }

// sleep waits until a time, exactly. A wait is so short, at most idle, that no context needs to end
// it.
func (r *run) sleep(until time.Duration) { _ = r.clock.WaitUntil(context.Background(), until) }

func (r *run) phase() phase  { return phase(r.at.Load()) }
func (r *run) enter(p phase) { r.at.Store(int32(p)) }

// play runs the load test and returns its report. An error means that no measurement was possible.
func (r *run) play(ctx context.Context) (*report, error) {
	defer func() { _ = r.clock.Close() }()
	if r.admin != nil { // A wrong --admin is reported before the measurement.
		if _, err := r.admin.read(ctx); err != nil {
			return nil, err
		}
	}
	defer r.hangUp()
	if err := r.openSockets(); err != nil {
		return nil, err
	}
	ramp, later := r.opts.plan()
	r.varies = make([]bool, r.opts.clients)
	for _, e := range later {
		r.varies[e.client] = true
	}
	first, err := r.dial(ctx, ramp[0])
	if err != nil {
		return nil, r.unreachable(err)
	}
	r.tick = first.client.TickRate().Period()
	r.startWorkers()
	defer context.AfterFunc(ctx, func() { r.screen.note("interrupted: the report follows; a second time ends the program at once") })()
	stopSampler := r.startSampler(ctx)
	origin := r.ramp(ctx, first, ramp)
	r.phases(ctx, origin, later)
	r.last = Point{Phase: r.phase().String(), Clients: r.playing()}
	r.enter(goodbye)
	r.ended.Wait()
	return r.report(stopSampler()), nil
}

// readAhead is the time before the window in which the server's figures are read, so that the
// window can begin at its planned time.
const readAhead = 100 * time.Millisecond

// phases runs the phases from the warm-up to the verification, until one ends early. The window
// begins at its planned time after origin, the beginning of the ramp, unless the last join was
// later than the ramp's end by half of the warm-up.
func (r *run) phases(ctx context.Context, origin time.Duration, later []event) {
	r.enter(warming)
	from := origin + r.opts.ramp + r.opts.warmup
	if now := r.now(); now > from-r.opts.warmup/2 {
		from = now + r.opts.warmup
	}
	if !r.waitUntil(ctx, from-readAhead) {
		return
	}
	r.before = r.read(ctx)
	planned := from == origin+r.opts.ramp+r.opts.warmup && r.now() <= from
	r.onTime, from = planned, max(from, r.now())
	r.window.open(from, from+r.opts.duration)
	if !r.waitUntil(ctx, from) {
		r.window.end(from)
		return
	}
	r.enter(measuring)
	stop := r.startEvents(ctx, from, later)
	complete := r.waitUntil(ctx, from+r.opts.duration)
	r.window.end(r.now())
	stop()
	r.after = r.read(context.WithoutCancel(ctx))
	if !complete {
		return
	}
	r.verifyFrom = r.now()
	r.enter(verifying)
	r.waitSettled(ctx)
}

// pollEvery is the interval at which a phase checks whether it must end early: see [run.waitUntil].
const pollEvery = 20 * time.Millisecond

// deadAfter is the time without a connected client after which a server counts as dead: longer than
// a restart behind a proxy takes, and than the outages of a bad network.
const deadAfter = 15 * time.Second

// waitUntil waits until a time. It reports false when the run was interrupted, every client is
// gone, or the server has been dead for long.
func (r *run) waitUntil(ctx context.Context, at time.Duration) bool {
	for played := r.now(); ; {
		now := r.now()
		switch {
		case ctx.Err() != nil:
			r.interrupted = true
			return false
		case r.gone.Load() >= r.connected.Load()+r.rejoining.Load():
			return false
		case r.playing() > 0:
			played = now
		case now-played > r.deadAfter:
			r.dead = true
			return false
		}
		if now >= at {
			return true
		}
		// The only possible error is that of ctx, which the loop checks.
		_ = r.clock.WaitUntil(ctx, now+min(at-now, pollEvery))
	}
}

// Clients verify one after the other, because digests of all clients' views at once would be a load
// of their own. verifyLimit is the time for the last one, above client.Verify's own limit.
const (
	verifySpacing = 10 * time.Millisecond
	verifyLimit   = 15 * time.Second
)

// turn returns the time at which the n-th of the verifying clients may verify.
func (r *run) turn(n int) time.Duration { return r.verifyFrom + time.Duration(n)*verifySpacing }

// waitSettled waits until every client is lost, or is verified and has its measured calls answered,
// or until the time limit.
func (r *run) waitSettled(ctx context.Context) {
	limit := r.turn(r.opts.verify) + verifyLimit
	for r.settled.Load() < r.connected.Load() && r.now() < limit {
		if ctx.Err() != nil {
			r.interrupted = true
			return
		}
		_ = r.clock.WaitUntil(ctx, r.now()+pollEvery) // The only possible error is that of ctx.
	}
}

// startWorkers starts the goroutines that run the clients' frames: two per core, so that a core is
// busy while one of them waits for its next frame.
func (r *run) startWorkers() {
	n := min(r.opts.clients, 2*runtime.GOMAXPROCS(0))
	for range n {
		w := newWorker(r)
		r.workers = append(r.workers, w)
		r.ended.Go(w.loop)
	}
}

// framePeriod returns the time between two frames of a bot: by --frame-rate, or else the period of
// the ticks of its room, whose rate is tick.
func (r *run) framePeriod(tick netloop.Rate) time.Duration {
	if r.opts.frameRate > 0 {
		return time.Duration(float64(time.Second) / r.opts.frameRate)
	}
	return tick.Period()
}

// read reads the figures of both processes. After a failure the server's figures are missing, and
// the run continues.
func (r *run) read(ctx context.Context) reading {
	if r.admin == nil {
		return reading{own: ownUsage()}
	}
	var now reading
	s, err := r.admin.read(ctx)
	if err == nil {
		now.ticks = &s
		now.metrics, err = r.admin.metrics(ctx)
	}
	if err == nil {
		now.slow, err = r.admin.slow(ctx)
	}
	if err != nil {
		r.screen.note(err.Error())
	}
	now.own = ownUsage()
	return now
}

// playing returns the number of clients that play now.
func (r *run) playing() int64 { return r.connected.Load() - r.gone.Load() - r.away.Load() }

// hangUp ends every connection and waits for its goroutines. Errors of closing are ignored: the
// figures are complete.
func (r *run) hangUp() {
	r.enter(goodbye)
	r.ended.Wait()
	var closing sync.WaitGroup
	for _, d := range slices.AppendSeq(slices.Clone(r.dialers), maps.Values(r.slowDialers)) {
		closing.Go(func() { _ = d.Close() })
	}
	closing.Wait()
}

// unreachable returns the error of a run if its first client could not connect.
func (r *run) unreachable(err error) error {
	if errors.Is(err, context.Canceled) {
		return errors.New("interrupted before the first client was connected")
	}
	return fmt.Errorf("no client could connect to %s: %w%s", r.opts.addr, err, remedy(err, r.proves()))
}

// remedy returns a text that suggests a remedy for a failed connection, or "" if the error already
// states it. proves reports whether the bots have tokens.
func remedy(err error, proves bool) string {
	var (
		refused *netloop.Refusal
		dates   *quicnet.CertificateDates
		cert    *tls.CertificateVerificationError
	)
	switch {
	case errors.As(err, &refused) && refused.Code == netloop.CodeFull:
		return ": start the server with a larger --max-clients, or wait until others have left"
	case errors.As(err, &refused) && refused.Code == netloop.CodeUnauthenticated && !proves:
		return ": pass --token-key and --token-audience, so that the bots have tokens, or give the bot a method Token"
	case errors.As(err, &refused), errors.As(err, &dates):
		return "" // The error states the remedy.
	case errors.As(err, &cert), errors.Is(err, quicnet.ErrWrongCertificate):
		return ": pass the hash that the server prints as --cert-hash, or the authority of its certificate as --ca"
	}
	return ": start the server there, or say with --addr where it is"
}
