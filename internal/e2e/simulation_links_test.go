package e2e_test

import (
	"crypto/sha256"
	"strconv"
	"time"

	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/netlooptest"
)

// event is a change of clients or links between two ticks.
type event struct {
	name   string
	weight int
	do     func(s *simulation)
}

// Each event of a link ends by itself, and a link has one at a time.
var events = []event{
	{"join", 6, func(s *simulation) {
		if s.presentCount() < 4 && len(s.m.clients) < 7 {
			s.join()
		}
	}},
	{"leave", 2, onSimClient(func(s *simulation, g *simClient) {
		if err := g.c.Close(); err != nil {
			g.fail("Close: %v", err)
		}
		g.gone = true
	})},
	{"vanish", 1, onSimClient(func(s *simulation, g *simClient) {
		s.w.Drop(g.c)
		g.gone = true
	})},
	// The connection breaks, and the client reconnects by itself, without a lost state or
	// message: unless the server has received no data of it yet and so reserves no seat.
	{"break", 6, onSimClient(func(s *simulation, g *simClient) {
		if g.c.State().Phase == client.Playing && s.m.tick > g.broken+60 {
			g.broken = s.m.tick
			s.w.Break(g.c)
		}
	})},
	{"burst of losses", 20, onSimClient(func(s *simulation, g *simClient) {
		l := g.link
		l.Loss = 0.2 + 0.2*s.rng.Float64()
		s.w.SetLink(g.c, l)
		s.lasts(g, 3+s.rng.Uint64N(40), func() { s.w.SetLink(g.c, g.link) })
	})},
	{"short silence", 6, onSimClient(func(s *simulation, g *simClient) { s.cut(g, 2+s.rng.Uint64N(30)) })},
	// Longer than the history of versions.
	{"long silence", 3, onSimClient(func(s *simulation, g *simClient) { s.cut(g, 130+s.rng.Uint64N(90)) })},
	{"stalled server", 3, onSimClient(func(s *simulation, g *simClient) {
		s.w.Stall(g.c, true)
		s.lasts(g, 1+s.rng.Uint64N(20), func() { s.w.Stall(g.c, false) })
	})},
	{"frozen client", 2, onSimClient(func(s *simulation, g *simClient) {
		s.w.Freeze(g.c)
		s.lasts(g, 1+s.rng.Uint64N(20), func() { s.w.Thaw(g.c) })
	})},
	{"verify", 3, onSimClient(func(s *simulation, g *simClient) { // may fail on such links
		g.c.Verify(func(err error) {
			if err == nil {
				s.tally.verified++
			}
		})
	})},
}

// onSimClient applies a function to a random client in the room without a link event.
func onSimClient(do func(s *simulation, g *simClient)) func(*simulation) {
	return func(s *simulation) {
		g := s.m.clients[s.rng.IntN(len(s.m.clients))]
		if g.in && !g.gone && g.mend == nil && g.c.ID() != 0 {
			do(s, g)
		}
	}
}

// disturb runs a random event.
func (s *simulation) disturb() {
	e := pick(s.rng, events, func(e *event) int { return e.weight })
	e.do(s)
	s.tally.events[e.name]++
}

// presentCount counts the present clients.
func (s *simulation) presentCount() (n int) {
	for _, g := range s.m.clients {
		if !g.gone {
			n++
		}
	}
	return n
}

// join joins a client.
func (s *simulation) join() {
	g := &simClient{
		number: len(s.m.clients), tally: s.tally, log: sha256.New(), budget: s.spec.Budget,
		views: map[string][]view{}, told: map[string]watcherCall{}, lives: map[string]uint64{}, count: map[string]uint32{},
		link: netlooptest.Link{
			Delay:     time.Duration(s.rng.IntN(80)) * time.Millisecond,
			Jitter:    time.Duration(s.rng.IntN(2)*s.rng.IntN(30)) * time.Millisecond,
			Loss:      []float64{0, 0.02, 0.1, 0.2}[s.rng.IntN(4)],
			Duplicate: 0.1 * float64(s.rng.IntN(2)),
			Reorder:   0.1 * float64(s.rng.IntN(2)),
			Bandwidth: []int{0, 0, 0, 400_000}[s.rng.IntN(4)],
		},
	}
	s.m.clients = append(s.m.clients, g)
	g.c = s.w.Join(strconv.Itoa(g.number), nil, g.link)
	for _, k := range kinds {
		k.watch(g)
		k.audit(s.w, g)
	}
}

// cut makes a black hole of the client's link for a while, shorter than the connection's idle
// timeout.
func (s *simulation) cut(g *simClient, ticks uint64) {
	s.w.Cut(g.c)
	s.lasts(g, ticks, func() { s.w.Heal(g.c) })
}

// lasts sets the duration of a link's event, and the function that ends it.
func (s *simulation) lasts(g *simClient, ticks uint64, mend func()) {
	g.until = s.m.tick + ticks
	g.mend = func() {
		mend()
		g.mend = nil
	}
}

// mend ends the events that are over.
func (s *simulation) mend(tick uint64) {
	for _, g := range s.m.clients {
		if g.mend != nil && g.until <= tick && !g.gone {
			g.mend()
		}
	}
}
