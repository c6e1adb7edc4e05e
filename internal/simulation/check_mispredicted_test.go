package simulation

import (
	"time"

	"github.com/netloop/netloop"
)

// mispredicted checks the mispredictions that clients report. The documents: netloop.LinkStats and
// "Mispredictions" in WIRE.md.
//
//   - A room has at most the number that a client has counted.
//   - At rest it has the number of some seconds ago at least, if the client has been in no other
//     room.
type mispredicted struct{ p *play }

// seated returns the facts of the room in which a bot plays, or nil.
func (x mispredicted) seated(g *bot) *roomFacts {
	f := x.p.rooms.byName[g.c.Room()]
	if f == nil || !g.playing() || g.forges {
		return nil
	}
	if s := f.in[g.c.ID()]; s == nil || s.spectator || s.dropped || s.bot != g.n {
		return nil
	}
	return f
}

// reported returns the number that a room has of a bot.
func (x mispredicted) reported(g *bot) (n uint64, ok bool) {
	x.p.w.tick(g.c.Room(), func(t *netloop.Tick) {
		var c *netloop.Client
		if c, ok = t.Client(g.c.ID()); ok {
			n = c.Link().Mispredicted
		}
	})
	return n, ok
}

// stayed reports whether a bot has been one client of one room alone.
func (g *bot) stayed() bool {
	s := g.c.Stats()
	return len(g.places) == 1 && s.Drops == s.Resumes
}

// agree reports whether the rooms have the numbers of all clients that stayed.
func (x mispredicted) agree() bool {
	for _, g := range x.p.all {
		if x.seated(g) == nil || !g.stayed() {
			continue
		}
		if n, ok := x.reported(g); ok && n != g.c.Stats().Prediction.Mispredicted {
			return false
		}
	}
	return true
}

func (x mispredicted) rest() {
	before := map[*bot]uint64{}
	for _, g := range x.p.all {
		before[g] = g.c.Stats().Prediction.Mispredicted
	}
	if !x.p.await(4*time.Second+4*x.p.rooms.slowest(), x.agree) {
		return
	}
	for _, g := range x.p.all {
		if x.seated(g) == nil {
			continue
		}
		n, ok := x.reported(g)
		counted := g.c.Stats().Prediction.Mispredicted
		if ok && (n > counted || n < before[g] && g.stayed()) {
			x.p.fail("mispredicted", "room %q has %d mispredictions of bot %d, which has counted %d, and %d before", g.c.Room(), n, g.n, counted, before[g])
		}
	}
}
