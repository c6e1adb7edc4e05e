package simulation

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/netlooptest"
)

// action is a kind of event: how a story draws it, beside its time, and how it is played.
type action struct {
	name   string
	weight int // among the others; 0 is drawn by other code
	draw   func(d *drawer) Event
	play   func(p *play, e *Event)
}

// actions are all kinds of events. A new feature adds its row.
var actions = []action{
	// Rooms.
	{"open", 5, func(d *drawer) Event { return Event{Spec: d.spec(d.newName())} }, (*play).open},
	{"end room", 4, func(d *drawer) Event {
		return Event{Room: d.room(), For: oneOf(d, 0, time.Second, 4*time.Second, 5*time.Minute)}
	}, func(p *play, e *Event) {
		if e.Room != "" && p.server.CloseRoom(e.Room, e.For, netloop.CodeGame, p.reasons.tell(e.Room, netloop.CodeGame)) == nil {
			p.ends.tell(p.rooms.current(e.Room), e.For)
		}
	}},
	{"command", 60, func(d *drawer) Event {
		return Event{Room: d.room(), Command: pickCommand(d.Rand), N: d.Uint64(), For: d.between(0, 400*time.Millisecond)}
	}, (*play).command},
	{"reserve", 6, func(d *drawer) Event {
		d.tickets++
		return Event{Room: d.room(), N: d.tickets, For: oneOf(d, 300*time.Millisecond, 2*time.Second, 8*time.Second), Spec: &netloop.RoomSpec{MaxClients: 1 + d.IntN(2), MaxSpectators: d.IntN(4) / 3}}
	}, func(p *play, e *Event) {
		v := netloop.Reservation{Seats: e.Spec.MaxClients, TTL: e.For, Spectator: e.Spec.MaxSpectators > 0, Params: e.N}
		if all, err := p.reserve(e.Room, v); err == nil {
			p.tickets[e.N] = all
			p.rights.reserved(e.Room, v)
		}
	}},

	// Clients.
	{"join", 10, func(d *drawer) Event { return d.join() }, (*play).join},
	{"join by ticket", 5, func(d *drawer) Event {
		e := d.join()
		e.Join.Ticket = d.ticket()
		return e
	}, (*play).join},
	{"move", 8, func(d *drawer) Event { return Event{Bot: d.bot(), N: d.ticket()} }, func(p *play, e *Event) {
		if g, t := p.bots[e.Bot], p.tickets[e.N]; g != nil && len(t) > 0 {
			_ = g.c.Move(t[0]) // It may be in no room.
		}
	}},
	{"move by code", 3, func(d *drawer) Event { return Event{Bot: d.bot(), Room: d.room()} }, func(p *play, e *Event) {
		if g, code := p.bots[e.Bot], p.rooms.codeOf(e.Room); g != nil && code != "" {
			g.codes = true
			_ = g.c.Move(netloop.Ticket(code))
		}
	}},
	{"send on", 6, func(d *drawer) Event { return Event{Bot: d.bot(), N: d.ticket()} }, func(p *play, e *Event) {
		if g, t := p.bots[e.Bot], p.tickets[e.N]; g != nil && len(t) > 0 {
			p.post(g.c.Room(), command{Do: "send on", Client: g.c.ID(), Text: string(t[len(t)-1])})
		}
	}},
	{"leave", 4, byBot, func(p *play, e *Event) {
		if g := p.bots[e.Bot]; g != nil {
			g.gone = true
			_ = g.c.Close() // It always returns nil.
		}
	}},
	{"ask", 8, byBot, func(p *play, e *Event) { p.bots[e.Bot].ask(e.N) }},
	{"send", 14, byBot, func(p *play, e *Event) { p.bots[e.Bot].send(e.N) }},
	{"flood", 2, func(d *drawer) Event { return Event{Bot: d.bot(), N: d.Uint64N(600)} }, func(p *play, e *Event) { p.bots[e.Bot].flood(e.N) }},
	{"verify", 3, byBot, func(p *play, e *Event) {
		if g := p.bots[e.Bot]; g != nil {
			g.c.Verify(func(err error) { p.replicas.verified(g, err) })
		}
	}},

	// Troubles of the network and of programs.
	{"drop", 4, byBot, func(p *play, e *Event) {
		if g := p.bots[e.Bot]; g != nil {
			g.gone = true
			p.w.Drop(g.c)
		}
	}},
	{"break", 8, byBot, func(p *play, e *Event) {
		if g := p.bots[e.Bot]; g != nil && !g.gone {
			p.w.Break(g.c)
		}
	}},
	{"cut", 5, byBotFor, during((*bot).cut)},
	{"cut up", 3, byBotFor, during((*bot).cutUp)},
	{"cut down", 3, byBotFor, during((*bot).cutDown)},
	{"stall", 4, byBotFor, during((*bot).stall)},
	{"freeze", 5, byBotFor, during((*bot).freeze)},
	{"link", 8, func(d *drawer) Event { return Event{Bot: d.bot(), Link: d.link()} }, func(p *play, e *Event) {
		if g := p.bots[e.Bot]; g != nil {
			p.w.SetLink(g.c, *e.Link)
		}
	}},

	{"rebind", 3, func(d *drawer) Event { return Event{Bot: d.bot(), N: d.Uint64N(4)} }, func(p *play, e *Event) {
		if g := p.bots[e.Bot]; g != nil {
			p.w.Rebind(g.c, fmt.Sprintf("10.0.0.%d:1", e.N))
		}
	}},
	{"jump", 3, func(d *drawer) Event { return Event{Bot: d.bot(), For: d.between(0, 2*time.Second)} }, func(p *play, e *Event) {
		if g := p.bots[e.Bot]; g != nil {
			p.lab().JumpClock(g.c, e.For)
		}
	}},
	// Those of more.
	{"forge", 0, nil, (*play).forge},
	{"survey", 0, nil, func(p *play, e *Event) { p.bots[e.Bot].survey() }},
	{"payloads", 0, nil, func(p *play, e *Event) { p.operator.payloads(e) }},
	{"costs", 0, nil, func(p *play, e *Event) { p.operator.costs(e) }},
	{"await", 0, nil, func(p *play, e *Event) { p.bots[e.Bot].await(e.N, e.For) }},
	{"ask at once", 0, nil, func(p *play, e *Event) { p.bots[e.Bot].askAtOnce(e.N) }},
	{"ask many", 0, nil, func(p *play, e *Event) { p.bots[e.Bot].askMany(e.N) }},
	{"suspend", 3, byBotFor, (*play).suspend},
	{vanish, 0, nil, func(p *play, e *Event) { // Stories in real time draw it.
		p.join(e)
		if g := p.bots[e.Bot]; g != nil {
			g.gone = true
			p.note("%v", vanishingOf(e.N))
		}
	}},

	// Troubles of the server.
	{"wall", 2, func(d *drawer) Event { return Event{For: oneOf(d, -20*time.Second, 20*time.Second, time.Hour)} }, func(p *play, e *Event) { p.lab().JumpWall(e.For) }},
	{"crash", 1, func(d *drawer) Event { return Event{} }, (*play).crash},
	{"stop", 1, func(d *drawer) Event { return Event{For: d.between(0, 2*time.Second)} }, func(p *play, e *Event) {
		p.rooms.stall(e.For)
		p.w.stop(e.For)
	}},
	{"slow saves", 4, func(d *drawer) Event { return Event{For: d.between(0, 4*time.Second)} }, func(p *play, e *Event) { p.saves.latency = e.For }},
	{"store", 6, func(d *drawer) Event { return Event{N: d.Uint64N(6)} }, func(p *play, e *Event) { p.keeps.set(e.N) }},
	{"usurp", 1, func(d *drawer) Event { return Event{Room: d.room()} }, func(p *play, e *Event) {
		if e.Room != "" { // The server ends with its default room.
			p.keeps.usurp(e.Room)
		}
	}},
	{"operator", 10, func(d *drawer) Event {
		return Event{Room: d.room(), Bot: d.bot(), N: d.Uint64(), For: oneOf(d, 0, time.Second, time.Minute)}
	}, func(p *play, e *Event) { p.operator.act(e) }},
	{"failing saves", 2, func(d *drawer) Event { return Event{N: d.Uint64N(2)} }, func(p *play, e *Event) { p.saves.failing = e.N > 0 }},
}

func byBot(d *drawer) Event { return Event{Bot: d.bot(), N: d.Uint64()} }

func byBotFor(d *drawer) Event {
	return Event{Bot: d.bot(), For: oneOf(d, 200*time.Millisecond, time.Second, 3*time.Second, 7*time.Second)}
}

// during lets something begin for a bot, and end after the event's time.
func during(trouble func(g *bot, on bool)) func(p *play, e *Event) {
	return func(p *play, e *Event) {
		if g := p.bots[e.Bot]; g != nil && !g.gone {
			trouble(g, true)
			p.later(e.For, func() { trouble(g, false) })
		}
	}
}

// pick draws an action by weight.
func pick(rng *rand.Rand) *action {
	return &actions[weighted(rng, len(actions), func(i int) int { return actions[i].weight })]
}

// pickCommand draws a command by weight.
func pickCommand(rng *rand.Rand) string {
	names := slices.Sorted(maps.Keys(commands))
	return names[weighted(rng, len(names), func(i int) int { return commands[names[i]].weight })]
}

// weighted draws one of n indices by weight.
func weighted(rng *rand.Rand, n int, weight func(i int) int) int {
	all := 0
	for i := range n {
		all += weight(i)
	}
	k, i := rng.IntN(all), 0
	for k >= weight(i) {
		k -= weight(i)
		i++
	}
	return i
}

// lab has the controls that only a world in virtual time has.
func (p *play) lab() *netlooptest.World {
	if w, ok := p.w.(virtualWorld); ok {
		return w.World
	}
	return nil
}

// suspend stops a bot's computer, and its clock.
func (p *play) suspend(e *Event) {
	g := p.bots[e.Bot]
	if g == nil || g.gone || g.wake != nil {
		return
	}
	g.cut(true)
	g.freeze(true)
	began := p.w.Now()
	g.wake = func() {
		p.lab().JumpClock(g.c, began-p.w.Now())
		g.wake = nil
		g.freeze(false)
		g.cut(false)
	}
	p.later(e.For, func() { g.resume() })
}

// open opens a room.
func (p *play) open(e *Event) {
	_ = p.w.open(*e.Spec) // Its name may exist, or the server may be full.
}

// command lets the game of a room do something.
func (p *play) command(e *Event) {
	o := command{Do: e.Command, N: e.N, For: int64(e.For)}
	if names := p.rooms.names(); len(names) > 0 {
		o.Text = names[e.N>>40%uint64(len(names))]
	}
	if e.Command == "open" {
		o.Text = string(rune('a' + e.N>>40%6))
	}
	p.post(e.Room, o)
}

// post sends a command.
func (p *play) post(room string, o command) {
	p.without(func(s *netloop.Server) {
		_ = p.d.commands.PostRoom(context.Background(), s, room, o) // The room may not exist.
	})
}

// reserve reserves seats.
func (p *play) reserve(room string, v netloop.Reservation) (all []netloop.Ticket, err error) {
	p.without(func(s *netloop.Server) { all, err = s.Reserve(context.Background(), room, v) })
	return all, err
}

// crash kills the server and starts another one.
func (p *play) crash(*Event) {
	if p.story.Server.Record {
		return
	}
	p.keeps.check()
	p.dead[p.server] = true
	p.rooms.crashed()
	p.keeps.heal()
	p.keeps.trouble, p.resources.opens = true, false
	p.w.Restart(p.game())
	p.listen()
}

// join makes a bot.
func (p *play) join(e *Event) {
	j := e.Join
	cfg := j.config(e.Room)
	if all := p.tickets[j.Ticket]; len(all) > 0 {
		cfg.Ticket = string(all[0])
	} else if j.Code {
		cfg.Ticket = p.rooms.codeOf(e.Room)
	}
	p.newBot(e, cfg)
}
