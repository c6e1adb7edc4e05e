package simulation

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/bridge"
	"github.com/netloop/netloop/internal/clock"
	"github.com/netloop/netloop/netlooptest"
)

// realWorld is a server that runs on loopback ports, in real time. The goroutine of the play steps
// all clients; the rooms have their own goroutines.
type realWorld struct {
	p        *play
	server   *netloop.Server
	registry *prometheus.Registry
	clock    *clock.System
	cancel   context.CancelFunc // ends Run
	over     chan struct{}      // closed when Run has returned
	err      error              // of Run
	clients  []*realClient
	looks    map[uint64]func(*netloop.Tick) // of tick, by the number of their command
	posted   chan func()                    // results of dials
	dials    sync.WaitGroup

	mu    sync.Mutex // the lock of the world
	state sync.Mutex
	fault string // under state: the first line of the log that tells of a fault
}

// realTime returns the world of a story in real time. The server runs.
func (p *play) realTime() world {
	w := &realWorld{
		p: p, registry: prometheus.NewRegistry(), clock: clock.NewSystem(), over: make(chan struct{}),
		looks: map[uint64]func(*netloop.Tick){}, posted: make(chan func(), 1),
	}
	p.w = w
	w.lock()
	var cfg netloop.Config
	p.configure(&cfg)
	cfg.Listen, cfg.Web, cfg.Seed, cfg.DrainTimeout = "127.0.0.1:0", "127.0.0.1:0", p.story.Seed, p.story.Drain
	cfg.Registerer, cfg.Log = w.registry, slog.New(faultLog{w})
	ctx, stop := context.WithCancel(context.Background())
	w.cancel = stop
	var err error
	p.without(func(*netloop.Server) {
		if w.server, err = netloop.New(cfg, p.game()); err == nil {
			err = w.server.Listen()
		}
	})
	if err != nil {
		panic(err)
	}
	go func() {
		w.err = w.server.Run(ctx)
		close(w.over)
	}()
	return w
}

func (w *realWorld) lock()                { w.mu.Lock() }
func (w *realWorld) unlock()              { w.mu.Unlock() }
func (w *realWorld) settle()              {}
func (w *realWorld) stop(d time.Duration) { time.Sleep(d) }
func (w *realWorld) Now() time.Duration   { return w.clock.Now() }

// Restart does nothing: stories in real time have no crashes.
func (w *realWorld) Restart(netloop.Game) {}

// Spend lets a tick take time.
func (w *realWorld) Spend(d time.Duration) { w.p.without(func(*netloop.Server) { time.Sleep(d) }) }

// Advance steps the clients until some time has passed.
func (w *realWorld) Advance(d time.Duration) {
	for until := w.Now() + d; ; {
		next := until
		for _, c := range w.clients {
			if c.next <= w.Now() {
				c.step()
			}
			next = min(next, c.next)
		}
		if text := w.faults(); text != "" {
			w.p.fail("world", "%s", text)
		}
		if w.Now() >= until {
			return
		}
		w.wait(next - w.Now())
	}
}

// wait waits for the result of a dial, or for a time. Meanwhile the rooms may tick.
func (w *realWorld) wait(d time.Duration) {
	var done func()
	w.p.without(func(*netloop.Server) {
		select {
		case done = <-w.posted:
		case <-time.After(d):
		}
	})
	if done != nil {
		done()
	}
}

// Ended returns a reason as soon as the default room has ended.
func (w *realWorld) Ended() *netloop.Closed {
	if w.p.rooms.byName[w.p.story.Server.Room.Name] == nil {
		return &netloop.Closed{Code: netloop.CodeClosing}
	}
	return nil
}

// Drain ends the server.
func (w *realWorld) Drain(d time.Duration) {
	w.cancel()
	for by := w.Now() + d + finishing; w.Now() < by; w.Advance(nap) {
		select {
		case <-w.over:
			if w.err != nil && w.p.planned == 0 && !isClosed(w.err) {
				w.p.fail("ends", "Run returns %v", w.err)
			}
			return
		default:
		}
	}
	w.p.fail("ends", "Run has not returned %v after the end of its context and a drain of %v\n%s", finishing, d, stacks())
}

func isClosed(err error) bool { return strings.Contains(err.Error(), "the story closes") }

func stacks() string {
	all := make([]byte, 1<<20)
	return string(all[:runtime.Stack(all, true)])
}

// close ends all that the world has started.
func (w *realWorld) close() {
	w.cancel()
	w.unlock()
	select {
	case <-w.over:
	case <-time.After(finishing):
	}
	w.lock()
	for _, c := range w.clients {
		_ = c.c.Close()
	}
	w.unlock()
	var closing sync.WaitGroup
	for _, c := range w.clients {
		closing.Go(c.close)
	}
	go func() {
		closing.Wait()
		w.dials.Wait()
		close(w.posted)
	}()
	for range w.posted { // Dials wait to tell their result.
	}
	_ = w.clock.Close()
	w.lock()
}

func (w *realWorld) open(spec netloop.RoomSpec) (err error) {
	w.p.without(func(*netloop.Server) { _, err = w.server.OpenRoom(context.Background(), spec) })
	return err
}

// tick lets the next tick of a room call fn, if the room exists.
func (w *realWorld) tick(room string, fn func(*netloop.Tick)) {
	n, done := uint64(len(w.looks)), false
	w.looks[n] = func(t *netloop.Tick) { fn(t); done = true }
	w.p.post(room, command{Do: "inspect", N: n})
	for by := w.Now() + w.p.slack(5*time.Second); !done && w.p.rooms.byName[room] != nil; w.Advance(5 * time.Millisecond) {
		if w.Now() > by {
			w.p.fail("world", "room %q runs no message", room)
			return
		}
	}
}

// lookAt is called by the tick of a room. A replay has no looks.
func (p *play) lookAt(t *netloop.Tick, n uint64) {
	if w, real := p.w.(*realWorld); real && w.looks[n] != nil {
		w.looks[n](t)
	}
}

// sum returns the sum of a gauge's or counter's values. A metric that is another kind has 0.
func (w *realWorld) sum(name string) (n uint64) {
	all, err := w.registry.Gather()
	if err != nil {
		w.p.fail("metrics", "%v", err)
	}
	for _, f := range all {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			n += uint64(m.GetGauge().GetValue() + m.GetCounter().GetValue())
		}
	}
	return n
}

// unadmitted returns the number of connections without a client.
func (w *realWorld) unadmitted() uint64 { return w.sum("netloop_strangers") }

// atRest reports whether the seats are as they must be once the troubles have been over for long.
func (w *realWorld) atRest() bool {
	if w.p.finding != nil {
		return true
	}
	w.p.rooms.rest()
	w.p.lists.rest()
	rest := w.p.finding == nil
	w.p.finding = nil
	for _, g := range w.p.all {
		rest = rest && (g.gone || g.playing() || g.c.Closed() != nil)
	}
	return rest && w.p.unreserved() && w.unadmitted() == 0
}

// rest looks for promises of real connections.
func (w *realWorld) rest() {
	if n := w.unadmitted(); n > 0 {
		w.p.fail("seats", "%d connections without a client are kept", n)
	}
	for info := range w.server.Rooms() {
		f := w.p.rooms.byName[info.Spec.Name]
		if f == nil {
			continue
		}
		if players, _ := f.count(); players != info.Clients-info.Spectators {
			w.p.fail("seats", "room %q has sold %d seats, and has %d players", info.Spec.Name, info.Clients-info.Spectators, players)
		}
	}
}

// Look calls fn with the tick of a client.
func (w *realWorld) Look(c *client.Client, fn func(*netloop.Tick)) {
	bridge.Client.Inspect(c, func(t any) { fn(t.(*netloop.Tick)) })
}

func (w *realWorld) of(c *client.Client) *realClient {
	return w.clients[slices.IndexFunc(w.clients, func(one *realClient) bool { return one.c == c })]
}

func (w *realWorld) Drop(c *client.Client)                        { w.of(c).drop() }
func (w *realWorld) Break(c *client.Client)                       { w.of(c).route.breakAll() }
func (w *realWorld) Cut(c *client.Client)                         { w.of(c).link.cut(true, true) }
func (w *realWorld) CutUp(c *client.Client)                       { w.of(c).link.cut(true, false) }
func (w *realWorld) CutDown(c *client.Client)                     { w.of(c).link.cut(false, true) }
func (w *realWorld) Heal(c *client.Client)                        { w.of(c).link.cut(false, false) }
func (w *realWorld) Stall(c *client.Client, on bool)              { w.of(c).link.stall(on) }
func (w *realWorld) Rebind(c *client.Client, _ string)            { w.of(c).route.rebind() }
func (w *realWorld) Freeze(c *client.Client)                      { w.of(c).frozen = true }
func (w *realWorld) Thaw(c *client.Client)                        { w.of(c).frozen = false }
func (w *realWorld) SetLink(c *client.Client, l netlooptest.Link) { w.of(c).link.set(l) }

// faultLog is the log of the server: it keeps the first line that tells of a fault.
type faultLog struct{ w *realWorld }

func (l faultLog) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelError }
func (l faultLog) WithAttrs([]slog.Attr) slog.Handler               { return l }
func (l faultLog) WithGroup(string) slog.Handler                    { return l }

func (l faultLog) Handle(_ context.Context, r slog.Record) error {
	l.w.state.Lock()
	defer l.w.state.Unlock()
	if l.w.fault == "" {
		l.w.fault = r.Message
		r.Attrs(func(a slog.Attr) bool { l.w.fault += fmt.Sprintf(" %v", a); return true })
	}
	return nil
}

// faults returns the line, unless an event has asked for it.
func (w *realWorld) faults() (text string) {
	w.state.Lock()
	defer w.state.Unlock()
	text, w.fault = w.fault, ""
	if w.p.planned > 0 && strings.Contains(text, "panic") || w.p.keeps.forgiven(text) || strings.Contains(text, "the story") || strings.Contains(text, "error=refused") || strings.Contains(text, "answered a call twice") {
		return ""
	}
	return text
}
