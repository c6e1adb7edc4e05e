package main

import (
	"context"
	"crypto/tls"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/app"
	"github.com/netloop/netloop/bench/measure"
	"github.com/netloop/netloop/bench/world"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/bridge"
	"github.com/netloop/netloop/internal/clock"
)

// stamp is the object with the tick and the server's time.
type stamp struct {
	Tick uint32
	Sent int64
}

var (
	schema = netloop.NewSchema("peers", 1, 0)
	bodies = netloop.NewClass[world.Body](schema, "body")
	stamps = netloop.NewClass[stamp](schema, "stamp")
)

// room is netloop's game.
type room struct{ args serverArgs }

func (room) Schema() *netloop.Schema { return schema }

func (g room) Open(r *netloop.Room) error {
	r.OnStart(func(t *netloop.Tick) {
		for i := range world.Entities {
			bodies.Spawn(t, g.args.move(0, i))
		}
		stamps.Spawn(t, stamp{})
	})
	r.On(netloop.Update, "peers.move", func(t *netloop.Tick) {
		now := measure.Now()
		g.args.stall.tick()
		i := 0
		for o := range bodies.All(t) {
			if next := g.args.move(t.Number(), i); next != o.State() {
				*o.Edit(t) = next
			}
			i++
		}
		for o := range stamps.All(t) {
			*o.Edit(t) = stamp{uint32(t.Number()), int64(now)}
		}
	})
	return nil
}

// serveNetloop is netloop's server. Its WebSockets have TLS, as its other carriers always do.
func serveNetloop(a serverArgs, over client.Transport) error {
	os.Args = []string{
		os.Args[0], "--listen", a.addr, "--admin", "", "--insecure-no-auth", "--log-level", "warn",
		"--tick-rate", strconv.Itoa(a.rate), "--max-clients", "4096",
	}
	if over == client.WebSocket {
		os.Args = append(os.Args, "--web", a.addr, "--web-tls")
	}
	app.Main(room{a})
	return nil
}

// perSocket is the number of clients that share a UDP socket.
const perSocket = 10

// maxFullRate is the largest number of clients that run a frame in each tick. More clients run one
// in every third tick, in which they acknowledge: their core has no time for more. With a frame in
// each tick 200 clients over WebTransport took 92 % of it.
const maxFullRate = 100

// playNetloop is the clients' program of netloop.
func playNetloop(a clientArgs, over client.Transport) error {
	p := &netloopPlayers{args: a, over: over, clock: clock.NewSystem(), recorder: newRecorder()}
	p.period = time.Second / time.Duration(a.rate)
	if a.clients > maxFullRate {
		p.period *= 3
	}
	go p.frames()
	dialers := make([]*client.Dialer, (a.clients+perSocket-1)/perSocket)
	for i := range dialers {
		var err error
		if dialers[i], err = client.NewDialer(); err != nil {
			return err
		}
	}
	err := dialAll(a.clients, func(ctx context.Context, n int) error { return p.dial(ctx, dialers[n/perSocket], n) })
	if err != nil {
		return err
	}
	return control(os.Stdin, os.Stdout, a.clients, p.recorder)
}

type netloopPlayers struct {
	*recorder
	args   clientArgs
	over   client.Transport
	clock  *clock.System
	period time.Duration // of a client's frames

	mu  sync.Mutex
	new []*netloopPlayer // not yet taken by frames
}

// netloopPlayer is a client.
type netloopPlayer struct {
	*client.Client
	n      int
	due    time.Duration // its next frame, on the clock of the players
	last   time.Duration // when its frame before began
	offset time.Duration // of the machine's clock, to that of the client
	gone   bool

	arrivals []arrival            // since the last frame
	bytes    int                  // of these
	entities [world.Entities]seen // of a client that decodes
}

func (p *netloopPlayers) dial(ctx context.Context, d *client.Dialer, n int) error {
	addr := p.args.addr
	if p.over == client.WebSocket {
		addr = "wss://" + addr
	}
	c, err := d.Dial(ctx, addr, client.Config{
		Schema: schema, Transport: p.over, Reconnect: client.Reconnect{Off: true},
		// The server is a child of the same program.
		TLS: &tls.Config{MinVersion: tls.VersionTLS13, InsecureSkipVerify: true},
	})
	if err != nil {
		return err
	}
	if !p.args.decodes(n) {
		bridge.Client.Blind(c)
	}
	l := &netloopPlayer{Client: c, n: n}
	p.mu.Lock()
	p.new = append(p.new, l)
	p.mu.Unlock()
	return nil
}

// begin sets up a client, on the goroutine of its frames.
func (p *netloopPlayers) begin(l *netloopPlayer) {
	now := p.clock.Now()
	l.last, l.due = now, now-now%p.period+p.period*time.Duration(l.n)/time.Duration(p.args.clients)
	l.offset = measure.Now() - l.Now()
	l.OnSnapshot(func(s client.Snapshot) {
		l.bytes += s.Bytes
		l.arrivals = append(l.arrivals, arrival{s.Tick, s.At + l.offset})
	})
	client.Watch(l.Client, stamps, client.Watcher[stamp]{Change: func(_ *netloop.Tick, o *netloop.Object[stamp], _ stamp) {
		s := o.State()
		p.stamp(s.Tick, time.Duration(s.Sent))
	}})
	if p.args.decodes(l.n) {
		l.On(netloop.Update, "peers.look", func(t *netloop.Tick) { p.look(t, l) })
	}
}

// arrival is a snapshot that arrived whole.
type arrival struct {
	tick uint64
	at   time.Duration
}

// seen is the last state of an entity, and the tick in which the world had it.
type seen struct {
	state world.Body
	tick  uint64
}

// look finds the tick of the state that a client has after its newest snapshots: that of its oldest
// entity, because a snapshot may leave out entities on a slow link.
func (p *netloopPlayers) look(t *netloop.Tick, l *netloopPlayer) {
	if len(l.arrivals) == 0 {
		return
	}
	newest := l.arrivals[len(l.arrivals)-1]
	oldest, i := newest.tick, 0
	for o := range bodies.All(t) {
		tick, ok := l.entities[i].find(p.args.move, i, o.State(), newest.tick)
		if !ok {
			p.differs()
		}
		oldest = min(oldest, tick)
		i++
	}
	if i == world.Entities && oldest < newest.tick {
		l.arrivals = append(l.arrivals[:0], arrival{oldest, newest.at})
	}
}

// longestSearch is the number of ticks for which a state is looked for in the world.
const longestSearch = 3600

// find returns the newest tick, up to that of a snapshot, in which the world had a state.
func (s *seen) find(move world.Motion, i int, state world.Body, newest uint64) (tick uint64, ok bool) {
	switch {
	case state == move(newest, i):
		*s = seen{state, newest}
		return newest, true
	case state == s.state:
		return s.tick, true
	}
	for tick := newest; tick > 0 && newest-tick < longestSearch; tick-- {
		if state == move(tick-1, i) {
			*s = seen{state, tick - 1}
			return tick - 1, true
		}
	}
	return newest, false
}

// frames runs the frames of all clients, each at its own time.
func (p *netloopPlayers) frames() {
	var all []*netloopPlayer
	for {
		p.mu.Lock()
		for _, l := range p.new {
			p.begin(l)
			all = append(all, l)
		}
		p.new = p.new[:0]
		p.mu.Unlock()
		next := p.clock.Now() + p.period
		for _, l := range all {
			if l.gone {
				continue
			}
			if p.clock.Now() >= l.due {
				p.frame(l)
			}
			next = min(next, l.due)
		}
		_ = p.clock.WaitUntil(context.Background(), next) // That context never ends.
	}
}

func (p *netloopPlayers) frame(l *netloopPlayer) {
	now := p.clock.Now()
	l.Step(now - l.last)
	l.last = now
	for l.due <= now {
		l.due += p.period
	}
	for _, a := range l.arrivals {
		p.update(l.n, uint32(a.tick), 0, a.at) // The stamp of the tick has the server's time.
	}
	p.read(l.bytes)
	l.arrivals, l.bytes = l.arrivals[:0], 0
	if l.Closed() != nil {
		l.gone = true
		p.lose(l.n)
	}
}
