package e2e_test

import (
	"crypto/sha256"
	"strconv"
	"time"

	"github.com/netloop/netloop/netlooptest"
)

// change is something that happens to clients and their links between two ticks.
type change struct {
	name   string
	weight int
	do     func(r *trial)
}

// The weather. What happens to a link ends by itself, and one thing happens to it at a time.
var weather = []change{
	{"join", 6, func(r *trial) {
		if r.here() < 4 && len(r.m.guests) < 7 {
			r.join()
		}
	}},
	{"leave", 2, onGuest(func(r *trial, g *guest) {
		if err := g.c.Close(); err != nil {
			g.fail("Close: %v", err)
		}
		g.gone = true
	})},
	{"vanish", 1, onGuest(func(r *trial, g *guest) {
		r.w.Drop(g.c)
		g.gone = true
	})},
	{"burst of losses", 20, onGuest(func(r *trial, g *guest) {
		l := g.link
		l.Loss = 0.2 + 0.2*r.rng.Float64()
		r.w.SetLink(g.c, l)
		r.lasts(g, 3+r.rng.Uint64N(40), func() { r.w.SetLink(g.c, g.link) })
	})},
	{"short silence", 6, onGuest(func(r *trial, g *guest) { r.cut(g, 2+r.rng.Uint64N(30)) })},
	// It lasts longer than versions are kept.
	{"long silence", 3, onGuest(func(r *trial, g *guest) { r.cut(g, 130+r.rng.Uint64N(90)) })},
	{"stalled server", 3, onGuest(func(r *trial, g *guest) {
		r.w.Stall(g.c, true)
		r.lasts(g, 1+r.rng.Uint64N(20), func() { r.w.Stall(g.c, false) })
	})},
	{"frozen client", 2, onGuest(func(r *trial, g *guest) {
		r.w.Freeze(g.c)
		r.lasts(g, 1+r.rng.Uint64N(20), func() { r.w.Thaw(g.c) })
	})},
	{"verify", 3, onGuest(func(r *trial, g *guest) { // which may come to nothing on such links
		g.c.Verify(func(err error) {
			if err == nil {
				r.tally.verified++
			}
		})
	})},
}

// onGuest does it to one of the clients in the room whose link is as usual.
func onGuest(do func(r *trial, g *guest)) func(*trial) {
	return func(r *trial) {
		g := r.m.guests[r.rng.IntN(len(r.m.guests))]
		if g.in && !g.gone && g.mend == nil && g.c.ID() != 0 {
			do(r, g)
		}
	}
}

// turn lets the weather change.
func (r *trial) turn() {
	c := pick(r.rng, weather, func(c *change) int { return c.weight })
	c.do(r)
	r.tally.weather[c.name]++
}

// here counts the clients that are there.
func (r *trial) here() (n int) {
	for _, g := range r.m.guests {
		if !g.gone {
			n++
		}
	}
	return n
}

// join lets a client come.
func (r *trial) join() {
	g := &guest{
		number: len(r.m.guests), tally: r.tally, log: sha256.New(), budget: r.spec.Budget,
		views: map[string][]view{}, told: map[string]telling{}, lives: map[string]uint64{}, count: map[string]uint32{},
		link: netlooptest.Link{
			Delay:     time.Duration(r.rng.IntN(80)) * time.Millisecond,
			Jitter:    time.Duration(r.rng.IntN(2)*r.rng.IntN(30)) * time.Millisecond,
			Loss:      []float64{0, 0.02, 0.1, 0.2}[r.rng.IntN(4)],
			Duplicate: 0.1 * float64(r.rng.IntN(2)),
			Reorder:   0.1 * float64(r.rng.IntN(2)),
			Bandwidth: []int{0, 0, 0, 400_000}[r.rng.IntN(4)],
		},
	}
	r.m.guests = append(r.m.guests, g)
	g.c = r.w.Join(strconv.Itoa(g.number), nil, g.link)
	for _, k := range kinds {
		k.watch(g)
		k.audit(r.w, g)
	}
}

// cut makes a black hole of the client's link for a while, less than the connection's patience.
func (r *trial) cut(g *guest, ticks uint64) {
	r.w.Cut(g.c)
	r.lasts(g, ticks, func() { r.w.Heal(g.c) })
}

// lasts says how long something is wrong with a link, and how it ends.
func (r *trial) lasts(g *guest, ticks uint64, mend func()) {
	g.until = r.m.tick + ticks
	g.mend = func() {
		mend()
		g.mend = nil
	}
}

// mend ends what is over.
func (r *trial) mend(tick uint64) {
	for _, g := range r.m.guests {
		if g.mend != nil && g.until <= tick && !g.gone {
			g.mend()
		}
	}
}
