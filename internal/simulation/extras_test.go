package simulation

import (
	"fmt"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
)

// Parts of a game that need few lines: shots that a client predicts, claims of owners, the past of
// objects, and explanations.

// shot is spawned by a press, and a client that predicts the ship spawns it before.
type shot struct {
	X, V int32
	Key  netloop.SpawnKey `net:"read=owner"`
}

const (
	shotSpeed = 3
	shotLife  = 400 * time.Millisecond
)

// claim is a message about an object, which only its owner may send, and only in a role.
type claim struct{ Pawn netloop.Ref[pawn] }

// pressed lets a press spawn a shot, and looks at the past that the player has seen.
func (h *gameRoom) pressed(t *netloop.Tick, from *netloop.Client, m *member) {
	if p, ok := m.pawn.(*typed[pawn]); ok && p.alive() {
		if s, ok := p.o.At(t.ViewMoment(from)); ok && (abs(float64(s.X)) > 300 || abs(float64(s.Y)) > 300) {
			h.p.fail("views", "client %d of room %q has seen its pawn at %v, %v", from.ID(), h.key.name, s.X, s.Y)
		}
	}
	h.d.presses.With(fmt.Sprint(from.ID()%2)).Add(t, 1)
	h.shotAt = t.GameTime()
	o := h.d.shots.Spawn(t, shot{m.ship.State().X, shotSpeed, t.SpawnKey(from)}, netloop.OwnedBy(from.ID()))
	t.AfterFunc(shotLife, o.Despawn)
}

// moveShots moves the shots by a step.
func (h *gameRoom) moveShots(t *netloop.Tick) {
	for o := range h.d.shots.All(t) {
		s := o.Edit(t)
		s.X += s.V
	}
}

// predict predicts the ship and the shots of a bot.
func (g *bot) predict() {
	c, shots := g.c, g.d.shots
	var opt []client.PredictOption
	if g.n%2 == 0 {
		opt = append(opt, client.Smoothing(50*time.Millisecond), client.Snap(func(was, is *ship) bool { return abs(float64(was.X-is.X)) > 20 }))
	}
	client.Predict(c, g.d.ships, g.d.control, func(s *ship, _ *netloop.Tick, in control) {
		s.V = int32(in.Turn)
		s.X += s.V
		if in.Fire > 0 {
			s.Fires = in.Fire
			client.Spawn(c, shots, shot{X: s.X, V: shotSpeed})
		}
	}, opt...)
	client.Predict(c, shots, g.d.control, func(s *shot, _ *netloop.Tick, _ control) { s.X += s.V })
}

// restShots looks for shots of presses that no server has confirmed.
func (r *rooms) restShots() {
	for _, g := range r.p.all {
		f := r.byName[g.c.Room()]
		if f == nil || !g.playing() || f.spec.SpectatorDelay > 0 || g.d.shots == nil {
			continue
		}
		recent := false
		r.p.w.tick(g.c.Room(), func(t *netloop.Tick) { recent = t.GameTime()-f.gameRoom.shotAt < 5*time.Second })
		r.p.w.Look(g.c, func(t *netloop.Tick) {
			for o := range g.d.shots.All(t) {
				if !recent {
					r.p.fail("shots", "bot %d in room %q has a shot of step %d, although the room has none", g.n, g.c.Room(), o.State().Key.Step)
				}
			}
		})
	}
}

// claims sends claims of pawns, of which the server refuses those of others.
func (g *bot) claims() {
	g.p.w.Look(g.c, func(t *netloop.Tick) {
		n := 0
		for o := range g.d.pawns.All(t) {
			if n++; n > 3 {
				break
			}
			_ = client.Send(g.c, g.d.claim, claim{o.Ref()}) // It may be disconnected.
		}
	})
}

// claimed checks a claim.
func (h *gameRoom) claimed(t *netloop.Tick, from *netloop.Client, m claim) error {
	if o, ok := m.Pawn.Get(t); !ok || o.Owner() != from.ID() || from.Join().Role() < 1 {
		h.p.fail("rights", "client %d of room %q, in the role %d, claims a pawn of another client", from.ID(), h.key.name, from.Join().Role())
	}
	return nil
}

// explain asks why a client has, or has not, the last change of an object.
func (h *gameRoom) explain(t *netloop.Tick, c *netloop.Client, o command) {
	for n := range uint64(3) {
		it := h.pick(o.N>>16 + n)
		if it == nil {
			return
		}
		x, err := it.explain(t, c)
		if (err == nil) != c.Connected() || err == nil && (x.Reason.String() == "unknown" || x.String() == "") {
			h.p.fail("explanations", "client %d of room %q, connected: %v, %s: %v %v", c.ID(), h.key.name, c.Connected(), it.id(), x, err)
		}
	}
}

// meters lets a bot listen to overloads and snapshots, as a program that shows them does.
func (g *bot) meters() {
	g.c.OnOverload(func(o netloop.Overload) { g.overload = o; g.p.note("bot %d: overload %v", g.n, o) })
	g.c.OnSnapshot(func(s client.Snapshot) {
		if s.Bytes == 0 || s.Tick == 0 {
			g.p.fail("views", "bot %d has a snapshot of tick %d with %d bytes", g.n, s.Tick, s.Bytes)
		}
	})
}

// glance reads the figures that a program shows beside its objects.
func (g *bot) glance() {
	if v := g.c.ViewTime(); v < 0 || g.c.TickRate() == (netloop.Rate{}) && g.playing() {
		g.p.fail("views", "bot %d views %v, at a rate of %v", g.n, v, g.c.TickRate())
	}
	if m := g.c.ViewMoment(); g.c.Minor() > 0 && !g.forges || g.c.Now() < 0 || g.c.Overload() != g.overload && g.playing() || m.From > m.To {
		g.p.fail("views", "bot %d: minor version %d, at %v, overload %v after %v, moment %+v", g.n, g.c.Minor(), g.c.Now(), g.c.Overload(), g.overload, m)
	}
	if p := g.c.State().Progress(); p < 0 || p > 1 {
		g.p.fail("views", "bot %d has loaded %v of its state", g.n, p)
	}
}
