package simulation

import (
	"context"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/netlooptest"
)

// bot is a client's program.
type bot struct {
	p      *play
	d      *declared // its build's
	n      int
	c      *client.Client
	join   *joining
	link   netlooptest.Link
	gone   bool   // it has left, or disappeared
	forges bool   // it sends, or gets, changed bytes
	codes  bool   // it has used the code of a room to move
	wake   func() // ends its suspension; nil without

	ids    map[netloop.ClientID]bool // that it has had
	places map[place]bool            // where it has been
	played bool                      // in its last phase
	life   uint64                    // as one client of one room; numbers its messages
	place  place
	sent   map[netloop.Stage]uint32
	said   time.Duration // time of the newest of them
	loose  uint32
	asked  uint32
	many   int           // calls of askMany without an answer
	since  time.Duration // of its phase
	hold   int8
	fire   uint32 // the press of the next input
	made   uint64 // inputs
	frames uint64

	overload netloop.Overload
	surveyed map[string]bool // pawns that a watcher has seen
	unwatch  func()          // ends the watcher; nil without
}

// newBot makes a bot that joins.
func (p *play) newBot(e *Event, cfg client.Config) {
	if p.bots[e.Bot] != nil {
		return
	}
	g := &bot{p: p, n: e.Bot, join: e.Join, link: *e.Link, since: p.w.Now(), sent: map[netloop.Stage]uint32{}, ids: map[netloop.ClientID]bool{}, places: map[place]bool{}}
	if g.d = p.d; e.Join.Newer {
		g.d = declare(p.story.Parts | newerBuild)
	}
	cfg.Schema, cfg.Token, cfg.Join = g.d.schema, p.tokens.of(e), hello{e.Bot}
	p.rights.granted(g, e)
	if e.Join.FromTokens {
		cfg.Tokens = func(context.Context) (string, error) { return p.tokens.of(e), nil }
	}
	p.bots[g.n], p.all = g, append(p.all, g)
	g.c = p.w.join(cfg, e)
	g.listen()
	p.secrets.listen(g)
	p.vex(g)
}

// vex begins the troubles that a bot has from its first packet on.
func (p *play) vex(g *bot) {
	j := g.join
	if j.Forge != "" {
		p.forgeHandshake(g)
	}
	if j.Addr != "" {
		p.w.Rebind(g.c, j.Addr)
	}
	if j.Vanish > 0 {
		p.lab().DropAfter(g.c, j.Vanish-1, func() { g.gone = true })
	}
	if j.Breaks > 0 {
		p.later(j.Breaks, func() {
			if !g.gone {
				p.w.Break(g.c)
			}
		})
	}
}

// resume ends a suspension.
func (g *bot) resume() {
	if g.wake != nil {
		g.wake()
	}
}

// listen registers the handlers of the bot.
func (g *bot) listen() {
	p, c := g.p, g.c
	c.OnState(func(s client.State) {
		p.note("bot %d: %v %v %s", g.n, s.Phase, s.Code, s.Text)
		g.since = p.w.Now()
		if g.ids[c.ID()] = true; c.ID() != 0 {
			g.places[place{id: c.ID(), room: c.Room()}] = true
		}
		if s.Phase == client.Closed {
			p.reasons.closed(g, s)
		}
		g.played = s.Phase == client.Playing
	})
	client.Handle(c, g.d.down, func(_ *netloop.Tick, m numbered) { p.mail.heard(g, m) })
	client.Handle(c, g.d.looseDown, func(_ *netloop.Tick, m numbered) { p.mail.heardLoose(g, m) })
	client.Handle(c, g.d.shout, func(_ *netloop.Tick, m numbered) { g.shouted(m) })
	client.Inputs(c, g.d.control, func(t *netloop.Tick) control {
		in := control{Turn: g.hold, Fire: g.fire}
		g.made++
		if k := g.join.Keys; k > 0 && g.made%(k*8) == 0 && !p.calm {
			g.hold = (g.hold + 2) % 3
		}
		if g.fire > 0 {
			p.inputs.sampled(g, g.fire, t.FixedStep())
		}
		g.fire = 0
		return in
	})
	if g.d.ships != nil && g.join.Predict {
		g.predict()
	}
	if g.d.vaults != nil {
		look := func(_ *netloop.Tick, o *netloop.Object[vault]) {
			if !g.forges {
				p.rights.saw(g, o.Owner(), o.State())
			}
		}
		client.Watch(c, g.d.vaults, client.Watcher[vault]{Spawn: look, Change: func(t *netloop.Tick, o *netloop.Object[vault], _ vault) { look(t, o) }})
	}
	if g.n%3 == 0 {
		client.Interpolate(c, g.d.pawns, client.Extrapolate(100*time.Millisecond))
	} else {
		client.Interpolate(c, g.d.pawns)
	}
	g.meters()
	if g.join.Look {
		c.On(netloop.PostLateUpdate, "simulation.look", g.look)
	}
}

// look reads the objects in every fourth frame, as a program that draws them does.
func (g *bot) look(*netloop.Tick) {
	if g.frames++; g.frames%4 > 0 {
		return
	}
	g.glance()
	for o, s := range client.Views(g.c, g.d.pawns) {
		if abs(float64(s.X)) > 400 || abs(float64(s.Y)) > 400 {
			g.p.fail("views", "bot %d draws %v at %v, %v", g.n, o.Ref(), s.X, s.Y)
		}
	}
	if g.d.ships == nil || !g.join.Predict {
		return
	}
	for o, s := range client.Views(g.c, g.d.ships) {
		if now, ok := client.PredictedState(g.c, o); ok && s.Fires > now.Fires {
			g.p.fail("views", "bot %d draws press %d and predicts press %d", g.n, s.Fires, now.Fires)
		}
	}
	client.Mispredictions(g.c, g.d.ships)
	g.c.Mispredictions()
}

// place identifies the client that a bot is.
type place struct {
	id   netloop.ClientID
	room string
	anew uint64 // times that it has joined anew after a break
}

// live notices that the bot is another client.
func (g *bot) live() {
	if g.c.State().Phase == client.Reconnecting {
		return // It may resume.
	}
	stats := g.c.Stats()
	if now := (place{g.c.ID(), g.c.Room(), stats.Drops - stats.Resumes}); now != g.place {
		g.place = now
		g.life++
		clear(g.sent)
	}
}

// playing reports whether the bot plays or watches, as far as it knows.
func (g *bot) playing() bool { return !g.gone && g.c.State().Phase == client.Playing }

// send sends some numbered messages.
func (g *bot) send(n uint64) {
	if g == nil || g.gone || g.c.Closed() != nil {
		return
	}
	g.live()
	if n>>16%4 == 0 {
		g.claims()
	}
	stages := netloop.AllStages()
	stage := stages[n%uint64(len(stages))]
	for range 1 + n>>8%5 {
		g.sent[stage]++
		g.said = g.p.rooms.now()
		if client.Send(g.c, g.d.up, numbered{Life: g.key(), Seq: g.sent[stage]}, netloop.RunAt(stage)) != nil {
			g.sent[stage]--
		}
		g.loose++
		_ = client.Send(g.c, g.d.looseUp, numbered{Life: uint64(g.n), Seq: g.loose})
	}
}

// flood sends more messages than the server takes.
func (g *bot) flood(n uint64) {
	if g == nil || g.gone || g.c.Closed() != nil {
		return
	}
	g.p.floods = true
	for range n {
		g.loose++
		_ = client.Send(g.c, g.d.looseUp, numbered{Life: uint64(g.n), Seq: g.loose})
	}
}

// key identifies the life among those of all bots.
func (g *bot) key() uint64 { return uint64(g.n)<<32 | g.life }

// ask makes a call, which gets exactly one answer or error.
func (g *bot) ask(n uint64) {
	if g == nil || g.gone || g.c.Closed() != nil || g.c.State().Phase == client.Connecting {
		return
	}
	g.asked++
	q := question{g.asked, uint8(n % modes)}
	call := g.p.mail.asked(g, q)
	client.Call(g.c, g.d.ask, q, func(_ *netloop.Tick, a answer, err error) {
		g.p.mail.answered(call, a, err)
	})
}

func (g *bot) cut(on bool) {
	if g.wake != nil {
		return // It is suspended.
	}
	if on {
		g.p.w.Cut(g.c)
	} else {
		g.p.w.Heal(g.c)
	}
}

func (g *bot) cutUp(on bool) {
	if g.cut(false); on {
		g.p.w.CutUp(g.c)
	}
}

func (g *bot) cutDown(on bool) {
	if g.cut(false); on {
		g.p.w.CutDown(g.c)
	}
}

func (g *bot) stall(on bool) { g.p.w.Stall(g.c, on) }

func (g *bot) freeze(on bool) {
	if g.wake != nil {
		return
	}
	if on {
		g.p.w.Freeze(g.c)
	} else {
		g.p.w.Thaw(g.c)
	}
}

// heal ends all troubles of the bot, except the delay of its link.
func (g *bot) heal() {
	if g.endForging(); g.gone {
		return
	}
	g.resume()
	g.stall(false)
	g.freeze(false)
	g.cut(false)
	g.hold = 0
	g.link = netlooptest.Link{Delay: g.link.Delay}
	g.p.w.SetLink(g.c, g.link)
}
