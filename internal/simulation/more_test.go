package simulation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/inspect"
)

// more draws events that few stories have. They come from a stream of their own, so that the draws
// of a seed remain: a new one belongs here, after the others.
func (d *drawer) more() {
	m := &drawer{Rand: rand.New(rand.NewPCG(d.s.Seed, 292)), s: d.s, names: d.names, bots: d.bots, tickets: d.tickets}
	add := func(n int, draw func() Event) {
		for range n {
			e := draw()
			e.At = m.between(time.Second/2, d.s.Length)
			m.add(e)
		}
	}
	act := func(do string) func() Event {
		return func() Event {
			return Event{Do: do, Room: m.room(), Bot: m.bot(), N: m.Uint64(), For: m.between(100*time.Millisecond, 3*time.Second)}
		}
	}
	command := func(name string) func() Event {
		return func() Event { return Event{Do: "command", Room: m.room(), Command: name, N: m.Uint64()} }
	}
	some := func(oneIn, n int, draw func() Event) {
		if m.oneIn(oneIn) {
			add(1+m.IntN(n), draw)
		}
	}
	some(6, 3, act("forge"))
	some(8, 3, m.strangers)
	if m.oneIn(8) {
		m.floodAndReturn()
	}
	some(6, 6, act("survey"))
	some(8, 8, act("await"))
	some(8, 12, act("ask at once"))
	some(16, 2, act("ask many"))
	some(4, 8, command("shout"))
	some(6, 8, command("explain field"))
	some(8, 4, command("give ship"))
	d.s.Server.Misfits = m.oneIn(2)
	some(12, 3, command("misfit"))
	some(12, 3, command("unedited"))
	for _, page := range []string{"payloads", "costs"} {
		if m.oneIn(10) { // The second answer has the events since the first question.
			e, at := act(page)(), m.between(time.Second/2, d.s.Length)
			for e.At = at; e.At < at+4*time.Second && e.At < d.s.Length; e.At += time.Second {
				m.add(e)
				m.add(Event{Do: "send", Bot: m.bot(), N: m.Uint64(), At: e.At + 100*time.Millisecond})
			}
		}
	}
	if d.s.Server.Auth && m.oneIn(3) {
		m.trespass()
	}
}

// trespass draws clients with tokens for one room that move to another one by its code, which
// accepts tokens for itself and for all rooms alone.
func (d *drawer) trespass() {
	at := d.between(0, d.s.Length-3*time.Second)
	for _, name := range []string{"hall", "cellar"} {
		s := d.spec(name)
		s.MaxClients, s.CloseEmpty, s.Rate = 4, netloop.NeverClose, netloop.Hz(oneOf[uint64](d, 10, 30, 60))
		s.Private, s.Code = name == "cellar", ""
		if s.Private {
			s.Code = "code of " + name
		}
		d.add(Event{At: at, Do: "open", Spec: s})
	}
	for _, kind := range []string{"own", "own", "valid"} {
		e := d.join()
		e.At, e.Room, e.Join.Token, e.Join.Code, e.Join.Spectate = at+100*time.Millisecond, "hall", kind, false, false
		d.add(e)
		d.add(Event{At: e.At + d.between(time.Second, 2*time.Second), Do: "move by code", Bot: e.Bot, Room: "cellar"})
	}
}

// strangers draws a client with a changed handshake.
func (d *drawer) strangers() Event {
	e := d.join()
	e.Join.Forge = oneOf(d, "up", "up", "down")
	e.Join.Newer, e.Join.Vanish, e.Join.Breaks = d.oneIn(2), 0, 0
	return e
}

// floodAndReturn draws a client that sends too much, and others of its player, or its address: they
// are admitted later, or refused.
func (d *drawer) floodAndReturn() {
	player, at := oneOf(d, "", fmt.Sprint("p", 1+d.IntN(6))), d.between(0, d.s.Length)
	room := d.room()
	for i := range 4 {
		e := d.join()
		e.Room, e.At, e.Join.Subject, e.Join.Addr, e.Join.Token = room, at, player, "10.0.0.1:1", "valid"
		if d.add(e); i == 0 {
			d.add(Event{Do: "flood", Bot: e.Bot, N: 3000, At: at + time.Second})
			d.add(Event{Do: "ask many", Bot: e.Bot, N: d.Uint64(), At: at + time.Second})
			at += time.Second
		}
		at += d.between(200*time.Millisecond, time.Second)
	}
}

// forges reports whether the bytes of a bot are, or were, changed.
func (p *play) forges(bot int) bool { return p.bots[bot] != nil && p.bots[bot].forges }

// payloads watches the messages of a method, as an operator with the role write may.
func (o *operator) payloads(e *Event) {
	f := o.p.rooms.byName[e.Room]
	if f == nil {
		return
	}
	methods := []string{"up", "down", "loose up", "loose down", "ask", "claim", "shout", "no such method"}
	q := url.Values{"method": {methods[e.N%uint64(len(methods))]}}
	if e.Room != "" {
		q.Set("room", e.Room)
	}
	o.begin(&ask{key: f.key, path: "/api/payloads", query: q, writes: true, then: o.watched})
}

// watched checks the payloads of a method: the newest first, of clients that send it.
func (o *operator) watched(a *ask) {
	method := a.query.Get("method")
	if known := method != "no such method"; known != (a.err == nil) {
		if o.p.rooms.of(a.key) != nil && !known {
			o.p.fail("operator", "payloads of %q: %v", method, a.err)
		}
		return
	}
	text, _ := json.Marshal(a.v) // The caller has checked the error.
	var v struct {
		Tick     uint64
		Payloads []struct {
			Tick, Client uint64
			Outcome      string
			Value        any
		}
	}
	if a.err != nil || json.Unmarshal(text, &v) != nil {
		return
	}
	last := v.Tick
	for _, one := range v.Payloads {
		down := strings.HasSuffix(method, "down") || method == "shout"
		if one.Tick > last || (down && one.Outcome == "sent") != (one.Client == 0) || one.Outcome == "" {
			o.p.fail("operator", "payloads of %q in tick %d: %s", method, v.Tick, text)
		}
		last = one.Tick
	}
}

// costs asks for the objects that cost most.
func (o *operator) costs(e *Event) {
	f := o.p.rooms.byName[e.Room]
	if f == nil {
		return
	}
	q := url.Values{}
	if e.Room != "" {
		q.Set("room", e.Room)
	}
	o.ask(f.key, "/api/costs", q, func(a *ask) {
		v, ok := a.v.(inspect.Costs)
		if !ok {
			return // The room has ended.
		}
		sum, last := uint64(0), ^uint64(0)
		for _, c := range v.Objects {
			if sum += c.Bytes; c.Bytes > last || c.Records < c.Fulls || c.Class == "" {
				o.p.fail("operator", "costs of room %q: %+v", a.key.name, v)
			}
			last = c.Bytes
		}
		if sum > v.Bytes {
			o.p.fail("operator", "room %q: objects cost %d bytes of %d", a.key.name, sum, v.Bytes)
		}
	})
}

// awaited is a call of a goroutine that waits for the answer.
type awaited struct {
	call *call
	done chan struct{}
	a    answer
	err  error
}

// await makes a call on a goroutine that waits for the answer, for a time.
func (g *bot) await(n uint64, d time.Duration) {
	if g == nil || g.gone || g.c.Closed() != nil || g.c.State().Phase == client.Connecting {
		return
	}
	g.asked++
	q := question{g.asked, uint8(n % modes)}
	w := &awaited{call: g.p.mail.asked(g, q), done: make(chan struct{})}
	g.p.mail.waits = append(g.p.mail.waits, w)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), d)
		defer cancel()
		w.a, w.err = client.Await(ctx, g.c, g.d.ask, q)
		close(w.done)
	}()
	g.p.settle()
}

// poll takes the answers of calls that wait.
func (m *mail) poll() {
	if len(m.waits) > 0 {
		m.p.settle()
	}
	m.waits = slices.DeleteFunc(m.waits, func(w *awaited) bool {
		select {
		case <-w.done:
			m.answered(w.call, w.a, w.err)
			return true
		default:
			return false
		}
	})
}

// Modes of questions that only askAtOnce draws.
const (
	twice = 100 + iota // two answers
	late               // an answer after the client's time
)

// askAtOnce makes a call that the room answers at once, or one that it answers wrongly.
func (g *bot) askAtOnce(n uint64) {
	if g == nil || g.gone || g.c.Closed() != nil || g.c.State().Phase == client.Connecting {
		return
	}
	g.asked++
	q := question{g.asked, []uint8{atOnce, atOnce, refused, never, twice, late}[n%6]}
	method := g.d.atOnce
	if q.Mode >= twice {
		method = g.d.ask
	}
	call := g.p.mail.asked(g, q)
	client.Call(g.c, method, q, func(_ *netloop.Tick, a answer, err error) { g.p.mail.answered(call, a, err) })
}

// askMany makes more calls than may wait for their answers.
func (g *bot) askMany(n uint64) {
	if g == nil || g.gone || g.c.Closed() != nil || g.c.State().Phase == client.Connecting || g.many > 0 {
		return // In one frame only 2 048 calls may be made.
	}
	g.p.floods = true
	method, mode, many := g.d.atOnce, uint8(atOnce), 1000+n%300
	if n>>16%2 == 0 { // More than may be pending in the room.
		method, mode, many = g.d.ask, never, 90
	}
	for range many {
		g.asked++
		g.many++
		q := question{g.asked, mode}
		call := g.p.mail.asked(g, q)
		client.Call(g.c, method, q, func(_ *netloop.Tick, a answer, err error) {
			g.many--
			g.p.mail.answered(call, a, err)
		})
	}
}

// answerAtOnce is the handler of calls that are answered before it returns.
func (h *gameRoom) answerAtOnce(_ *netloop.Tick, _ *netloop.Client, q question) (answer, error) {
	switch q.Mode {
	case refused:
		return answer{}, netloop.Refuse(netloop.CodeGame, "not now")
	case never:
		return answer{}, errors.New("refused")
	}
	return answer{q.N}, nil
}

// answerOddly answers twice, or too late. The client gets one answer.
func (h *gameRoom) answerOddly(t *netloop.Tick, q question, reply netloop.Reply[answer]) {
	switch q.Mode {
	case twice:
		reply.Send(t, answer{q.N}, nil)
		if reply.Waiting(t) {
			h.p.fail("messages", "question %d waits after its answer", q.N)
		}
		reply.Send(t, answer{q.N + 1}, nil)
	case late:
		t.AfterFunc(3*time.Second, func(t *netloop.Tick) { reply.Send(t, answer{q.N}, nil) })
	}
}

// shout sends a message to all clients, also to delayed spectators.
func (h *gameRoom) shout(t *netloop.Tick, o command) {
	h.shouts++
	h.d.shout.Send(t, netloop.Everyone(), numbered{Life: h.key.inc, Seq: h.shouts})
}

// shouted notes a message to all: a client hears it once.
func (g *bot) shouted(m numbered) {
	if g.live(); g.forges {
		return
	}
	g.p.mail.once(fmt.Sprintf("bot %d, life %d,", g.n, g.life), looseKey{life: g.key()*0x9e3779b97f4a7c15 ^ m.Life, seq: m.Seq})
}

// misfit stores a value that does not fit its field: clients get the last one that fits, or the
// nearest. Later the field has a value that fits.
func (h *gameRoom) misfit(t *netloop.Tick, it item, o command) {
	p, ok := it.(*typed[pawn])
	if !ok {
		return
	}
	h.p.misuses++
	p.o.Edit(t).X = []float32{1000, -1e9, 301}[o.N>>8%3]
	t.AfterFunc(300*time.Millisecond, func(t *netloop.Tick) {
		if p.alive() {
			p.o.Edit(t).X = 1
		}
	})
}

// unedited changes state without Edit, which CheckEdits reports. Later it is edited.
func (h *gameRoom) unedited(t *netloop.Tick, it item, _ command) {
	p, ok := it.(*typed[pawn])
	if !ok {
		return
	}
	h.p.misuses++
	kept := p.o.Edit(t)
	t.AfterFunc(100*time.Millisecond, func(*netloop.Tick) {
		if p.alive() {
			kept.N++
		}
	})
	t.AfterFunc(300*time.Millisecond, func(t *netloop.Tick) {
		if p.alive() {
			p.o.Edit(t).N++
		}
	})
}

// explainField asks why a client has, or has not, a field of an object.
func (h *gameRoom) explainField(t *netloop.Tick, c *netloop.Client, o command) {
	for n := range uint64(6) {
		it := h.pick(o.N>>16 + n)
		if it == nil {
			return
		}
		x, err := it.explainField(t, c, o.N>>8)
		if (err == nil) != c.Connected() || err == nil && (x.Reason.String() == "unknown" || x.String() == "") {
			h.p.fail("explanations", "client %d of room %q, connected: %v, a field of %s: %v %v", c.ID(), h.key.name, c.Connected(), it.id(), x, err)
		}
	}
}

// fieldNames are fields of the classes, by class.
var fieldNames = map[string][]string{
	"pawn": {"N", "X", "Face", "Ammo", "Pace"}, "vault": {"N", "Gold", "Plan", "Code", "Key"}, "tome": {"Pages"}, "boiler": {"Slow", "Heat"},
	"chest": {"Wares", "Cards", "At"}, "ship": {"V"},
}

func (x *typed[S]) explainField(t *netloop.Tick, c *netloop.Client, n uint64) (netloop.Explanation, error) {
	names := append([]string{""}, fieldNames[x.class.Name()]...)
	return x.o.Explain(t, c, names[n%uint64(len(names))])
}

// survey watches the pawns of a bot from now on, or ends that, and compares them with its objects.
func (g *bot) survey() {
	if g == nil || g.gone || g.forges || !g.playing() {
		return
	}
	if g.unwatch != nil {
		g.unwatch()
		g.unwatch = nil
		return
	}
	seen := map[string]bool{}
	g.unwatch = client.Watch(g.c, g.d.pawns, client.Watcher[pawn]{
		Spawn:   func(_ *netloop.Tick, o *netloop.Object[pawn]) { seen[o.Ref().String()] = true },
		Despawn: func(_ *netloop.Tick, o *netloop.Object[pawn], _ pawn) { delete(seen, o.Ref().String()) },
	})
	g.surveyed = seen
}

// checkSurvey compares the watched pawns with those that a bot has.
func (g *bot) checkSurvey() {
	if g.unwatch == nil || g.gone || g.forges {
		return
	}
	g.p.w.Look(g.c, func(t *netloop.Tick) {
		n := 0
		for o := range g.d.pawns.All(t) {
			if n++; !g.surveyed[o.Ref().String()] {
				g.p.fail("views", "bot %d has pawn %v, whose spawn its watcher has not seen", g.n, o.Ref())
			}
		}
		if n != len(g.surveyed) {
			g.p.fail("views", "bot %d has %d pawns, and its watcher %d", g.n, n, len(g.surveyed))
		}
	})
}

// giveShip gives the ship of a client to another one: it is predicted by its owner.
func (h *gameRoom) giveShip(t *netloop.Tick, c *netloop.Client, o command) {
	m, to := h.of.Of(c), h.client(t, o.N>>16)
	if m.ship != nil && m.ship.Alive() && !to.Spectator() {
		m.ship.SetOwner(t, to.ID())
	}
}
