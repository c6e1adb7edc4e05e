package agones

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/netloop/netloop/internal/clock"
)

// DefaultPort is the port of the sidecar's REST API without AGONES_SDK_HTTP_PORT.
const DefaultPort = 9358

const (
	// pace is the interval in which the agent looks at the server.
	pace = 500 * time.Millisecond
	// hintTime is the least time between two writes of a counter or of the list: each one is a
	// write of the Kubernetes API.
	hintTime = 5 * time.Second
	// pollTime is the interval in which the agent reads the GameServer besides the watch, so that a
	// watch without messages does not hide a state for long.
	pollTime = 10 * time.Second
	// shutdownTime is the limit of the last request, with its repetitions.
	shutdownTime = 5 * time.Second
	// The pauses after failed requests.
	minPause, maxPause = 250 * time.Millisecond, 10 * time.Second
	// A health request is sent twice in the period that the fleet demands, within these bounds.
	minHealth, maxHealth = 500 * time.Millisecond, 5 * time.Second
	// firstHealth is the interval while the period is not known.
	firstHealth = time.Second
	// maxNames is the limit of the names of rooms in the list, which is that of Agones.
	maxNames = 1000
)

// The names of the hints, if the fleet declares them.
const (
	roomsKey   = "rooms"   // a counter, and a list with their names
	playersKey = "players" // a counter
)

// Load is the use of a server.
type Load struct {
	Used    bool // a client is connected, or a seat is reserved
	Rooms   int
	Players int // taken and reserved seats of players
}

// Config describes a server to its sidecar. The functions may be called from any goroutine, and
// must not wait.
type Config struct {
	Port int // of the sidecar on this machine
	// Health returns nil while ticks run.
	Health func() error
	// Ready returns nil once clients may join.
	Ready func() error
	// Load returns the present use, and Names the names of at most limit rooms.
	Load  func() Load
	Names func(limit int) []string
	// Labels and Annotations are set once, without the prefix of Agones. A label's value is made
	// valid for Kubernetes.
	Labels, Annotations map[string]string
	// Shutdown is called when Agones ends the server, at most once.
	Shutdown func(reason error)
	Log      *slog.Logger
}

// Agent connects one server with its sidecar.
type Agent struct {
	cfg    Config
	client *client
	start  time.Time

	mu        sync.Mutex
	lifecycle lifecycle
	server    *gameServer     // the newest known; nil before
	ending    bool            // Shutdown was called
	connected uint64          // number of watches that have had a message
	failing   map[string]bool // the requests that fail at present, by their kind
}

// New returns an agent.
func New(cfg Config) *Agent {
	return &Agent{cfg: cfg, client: newClient(cfg.Port, nil), start: time.Now(), failing: map[string]bool{}}
}

// now returns the time since New.
func (a *Agent) now() time.Duration { return time.Since(a.start) }

// Run serves the sidecar until ctx ends. Then it tells Agones that the server has ended, for at
// most 5 s. When Run returns, each goroutine that it started has ended.
func (a *Agent) Run(ctx context.Context) {
	defer a.client.close()
	var running sync.WaitGroup
	running.Go(func() { a.sendHealth(ctx) })
	running.Go(func() { a.watch(ctx) })
	running.Go(func() { a.report(ctx) })
	running.Wait()
	a.end(context.WithoutCancel(ctx))
}

// end sends the last request, and repeats it while there is time.
func (a *Agent) end(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, shutdownTime)
	defer cancel()
	pause := minPause
	for !a.log("shutdown", a.client.post(ctx, toShutdown)) && clock.Sleep(ctx, pause) {
		pause = longer(pause)
	}
}

// longer returns the pause after one more failure.
func longer(pause time.Duration) time.Duration { return min(2*pause, maxPause) }

// sendHealth sends health requests while ticks run. They depend on no other request.
func (a *Agent) sendHealth(ctx context.Context) {
	stopped := false
	for ctx.Err() == nil {
		begin := a.now()
		err := a.cfg.Health()
		if err == nil {
			a.log("health", a.client.post(ctx, "/health"))
		}
		if stopped != (err != nil) {
			if stopped = !stopped; stopped {
				a.cfg.Log.Error("Agones gets no health requests, because ticks do not run", "error", err)
			} else {
				a.cfg.Log.Info("Agones gets health requests again")
			}
		}
		clock.Sleep(ctx, a.healthInterval()-(a.now()-begin))
	}
}

// healthInterval returns the interval of health requests.
func (a *Agent) healthInterval() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.server == nil || a.server.period == 0 {
		return firstHealth
	}
	return min(max(a.server.period/2, minHealth), maxHealth)
}

// watch follows the state of the GameServer.
func (a *Agent) watch(ctx context.Context) {
	pause := minPause
	for ctx.Err() == nil {
		first := true
		err := a.client.watch(ctx, func(g *gameServer) {
			if first {
				first, pause = false, minPause
				a.log("watch", nil)
				a.mu.Lock()
				a.connected++
				a.mu.Unlock()
			}
			a.saw(g)
		})
		if ctx.Err() != nil {
			return
		}
		a.log("watch", err)
		clock.Sleep(ctx, pause)
		pause = longer(pause)
	}
}

// saw takes a GameServer from the sidecar.
func (a *Agent) saw(g *gameServer) {
	a.mu.Lock()
	// A state from before the answer to Ready may arrive after it.
	changed := a.lifecycle.saw(g.state, a.now()) && (a.server == nil || a.server.state != g.state)
	a.server = g
	end := (g.deleted || g.state == shutdown) && !a.ending
	a.ending = a.ending || end
	a.mu.Unlock()
	if changed {
		a.cfg.Log.Info("state in Agones", "state", string(g.state))
	}
	switch {
	case end && g.deleted:
		a.cfg.Shutdown(errors.New("this server is removed by Agones"))
	case end:
		a.cfg.Shutdown(errors.New("this server is ended by Agones: its state is Shutdown"))
	}
}

// log logs the first failure of a kind of requests, and the first success after it. It reports
// whether err is nil.
func (a *Agent) log(kind string, err error) bool {
	a.mu.Lock()
	was := a.failing[kind]
	a.failing[kind] = err != nil
	a.mu.Unlock()
	switch {
	case err != nil && !was:
		a.cfg.Log.Warn("the sidecar of Agones does not answer; the server continues, and tries again", "request", kind, "error", err)
	case err == nil && was:
		a.cfg.Log.Info("the sidecar of Agones answers again", "request", kind)
	}
	return err == nil
}

// report sends the state, the labels and the hints that differ from those that Agones has.
func (a *Agent) report(ctx context.Context) {
	r := reporter{Agent: a}
	pause := time.Duration(0)
	for ctx.Err() == nil {
		if r.step(ctx) {
			pause = 0
		} else {
			pause = max(longer(pause), minPause)
		}
		clock.Sleep(ctx, max(pace, pause))
	}
}

// reporter is the state of the goroutine that reports.
type reporter struct {
	*Agent
	polled   time.Duration // the time of the newest poll; 0: none
	labelled uint64        // the watch for which labels and annotations are set
	hinted   time.Duration
	counters map[string]int64 // the written counts
	names    []string         // the written list
}

// step sends each request that is due at present, until one fails.
func (r *reporter) step(ctx context.Context) bool {
	now := r.now()
	if r.polled == 0 || now-r.polled >= pollTime {
		g, err := r.client.gameServer(ctx)
		if ctx.Err() != nil || !r.log("gameserver", err) {
			return false
		}
		r.polled = now
		r.saw(g)
		r.compareHints(g)
	}
	load := r.cfg.Load()
	return r.stateStep(ctx, load) && r.labelStep(ctx) && r.hintStep(ctx, load)
}

// stateStep requests another state if the server needs one.
func (r *reporter) stateStep(ctx context.Context, load Load) bool {
	isReady := r.cfg.Ready() == nil
	r.mu.Lock()
	path := r.lifecycle.next(r.now(), isReady, load.Used)
	r.mu.Unlock()
	if path == "" {
		return true
	}
	err := r.client.post(ctx, path)
	if ctx.Err() != nil || !r.log("state", err) {
		return false
	}
	r.mu.Lock()
	changed := r.lifecycle.did(path, r.now())
	r.mu.Unlock()
	if changed && path == toAllocated {
		r.cfg.Log.Info("this server has clients: Agones keeps it as Allocated")
	}
	return true
}

// labelStep sets labels and annotations, once for each watch: a sidecar that has restarted may not
// have stored them.
func (r *reporter) labelStep(ctx context.Context) bool {
	r.mu.Lock()
	connected := r.connected
	r.mu.Unlock()
	if connected == r.labelled {
		return true
	}
	set := func(kind, key, value string) bool {
		err := r.client.setMetadata(ctx, kind, keyValue{key, value})
		return ctx.Err() == nil && r.log("metadata", err)
	}
	for key, value := range r.cfg.Labels {
		if !set("label", key, labelValue(value)) {
			return false
		}
	}
	for key, value := range r.cfg.Annotations {
		if !set("annotation", key, value) {
			return false
		}
	}
	r.labelled = connected
	return true
}

// maxLabel is the limit of a label's value in Kubernetes.
const maxLabel = 63

// labelValue returns a valid value of a label: letters, digits, and inside of them also - _ and a
// dot.
func labelValue(text string) string {
	outer := func(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' }
	b := []byte(text[:min(len(text), maxLabel)])
	for i, c := range b {
		if !outer(c) && c != '-' && c != '_' && c != '.' {
			b[i] = '-'
		}
	}
	return strings.Trim(string(b), "-_.")
}
