package simulation

import (
	"time"

	"github.com/netloop/netloop"
)

// mail checks messages. The documents: the comments of netloop.RPC, Call and client.Reconnect, and
// GUIDE.md.
//
//   - In the life of a client reliable messages run once each, in order for each stage, in both
//     directions, also over broken connections; the last ones of a life may be missing.
//   - An unreliable message runs once at most. No client gets a message for another.
//   - Each call has exactly one answer, of its own question, or an error.
//   - At rest all reliable messages have arrived.
type mail struct {
	p     *play
	ups   map[upKey]uint32
	downs map[downKey]uint32
	loose map[looseKey]bool
	sent  map[roomKey]map[netloop.ClientID][2]uint64 // life and newest message
	calls []*call
	waits []*awaited
}

type upKey struct {
	key   roomKey
	id    netloop.ClientID
	life  uint64
	stage netloop.Stage
}

type downKey struct {
	bot  int
	life uint64
}

type looseKey struct {
	up   bool
	life uint64
	seq  uint32
}

type call struct {
	g       *bot
	q       question
	at      time.Duration
	answers int
}

func newMail(p *play) mail {
	return mail{p: p, ups: map[upKey]uint32{}, downs: map[downKey]uint32{}, loose: map[looseKey]bool{}, sent: map[roomKey]map[netloop.ClientID][2]uint64{}}
}

func (m *mail) up(key roomKey, id netloop.ClientID, bot int, stage netloop.Stage, said numbered) {
	if m.p.forges(bot) {
		return
	}
	k := upKey{key, id, said.Life, stage}
	last, known := m.ups[k]
	if known && said.Seq != last+1 && (said.Seq <= last || !m.p.floods) {
		m.p.fail("messages", "room %q: message %d of bot %d at %v comes after %d", key.name, said.Seq, bot, stage, last)
	}
	if int(said.Life>>32) != bot {
		m.p.fail("messages", "room %q takes a message of bot %d as one of bot %d", key.name, said.Life>>32, bot)
	}
	m.ups[k] = said.Seq
	m.p.note("room %q hears %d of bot %d at %v", key.name, said.Seq, bot, stage)
}

func (m *mail) looseUp(key roomKey, id netloop.ClientID, said numbered) {
	if m.p.forges(int(said.Life)) {
		return
	}
	m.once("room "+key.name, looseKey{true, said.Life, said.Seq})
}

func (m *mail) once(who string, k looseKey) {
	if m.loose[k] {
		m.p.fail("messages", "%s gets message %d of life %d twice", who, k.seq, k.life)
	}
	m.loose[k] = true
}

// said notes how many messages a room has sent to a client.
func (m *mail) said(key roomKey, id netloop.ClientID, life uint64, seq uint32) {
	if m.sent[key] == nil {
		m.sent[key] = map[netloop.ClientID][2]uint64{}
	}
	m.sent[key][id] = [2]uint64{life, uint64(seq)}
}

func (m *mail) heard(g *bot, said numbered) {
	if g.forges {
		return
	}
	k := downKey{g.n, said.Life}
	if last := m.downs[k]; said.Seq != last+1 {
		m.p.fail("messages", "bot %d: message %d of life %d comes after %d", g.n, said.Seq, said.Life, last)
	}
	m.downs[k] = said.Seq
	m.addressed(g, said)
	m.p.note("bot %d hears %d of life %d", g.n, said.Seq, said.Life)
}

func (m *mail) heardLoose(g *bot, said numbered) {
	if g.forges {
		return
	}
	m.once("a bot", looseKey{false, said.Life, said.Seq})
	m.addressed(g, said)
}

func (m *mail) addressed(g *bot, said numbered) {
	// Messages with state of a room may run after a move, and others before OnState.
	if !g.ids[said.To] && g.c.ID() != said.To {
		m.p.fail("rights", "bot %d, client %d, gets a message for client %d", g.n, g.c.ID(), said.To)
	}
}

func (m *mail) asked(g *bot, q question) *call {
	c := &call{g: g, q: q, at: m.p.w.Now()}
	m.calls = append(m.calls, c)
	return c
}

func (m *mail) answered(c *call, a answer, err error) {
	m.p.note("bot %d: question %d is answered: %v", c.g.n, c.q.N, err)
	if c.answers++; c.g.forges {
		return
	}
	if c.answers > 1 || err == nil && (a.N != c.q.N || c.q.Mode == refused || c.q.Mode == never || c.q.Mode == late || c.q.Mode == badQuestion) {
		m.p.fail("messages", "bot %d: question %d of mode %d has answer %d of %d, number %d", c.g.n, c.q.N, c.q.Mode, a.N, c.q.N, c.answers)
	}
}

// rest looks for messages, answers and results that have not arrived.
func (m *mail) rest() {
	for _, g := range m.p.all {
		f := m.p.rooms.byName[g.c.Room()]
		if !g.playing() || f == nil || f.in[g.c.ID()] == nil || f.in[g.c.ID()].spectator {
			continue
		}
		g.live()
		for stage, n := range g.sent {
			if g.said < f.opened { // It said them in an earlier room of this name.
				break
			}
			if heard := m.ups[upKey{f.key, g.c.ID(), g.key(), stage}]; heard != n && !m.p.floods && f.in[g.c.ID()].bot == g.n {
				m.p.fail("messages", "room %q has heard %d of %d messages of bot %d at %v", f.key.name, heard, n, g.n, stage)
			}
		}
		if said := m.sent[f.key][g.c.ID()]; said[1] > 0 {
			if heard := m.downs[downKey{g.n, said[0] << 2}]; uint64(heard) != said[1] && m.lifeOf(f, g) == said[0] {
				m.p.fail("messages", "bot %d has heard %d of %d messages of room %q", g.n, heard, said[1], f.key.name)
			}
		}
	}
	for _, c := range m.calls {
		if c.answers == 0 && !c.g.gone && m.p.w.Now()-c.at > 5*time.Second {
			m.p.fail("messages", "bot %d: question %d of %v was never answered", c.g.n, c.q.N, c.at)
		}
	}
}

// lifeOf returns the life of a client as the room numbers it.
func (m *mail) lifeOf(f *roomFacts, g *bot) (life uint64) {
	m.p.w.tick(f.key.name, func(t *netloop.Tick) {
		if c, ok := t.Client(g.c.ID()); ok {
			life = f.gameRoom.of.Of(c).life
		}
	})
	return life
}

// over looks for questions without an answer after the end.
func (m *mail) over() {
	for _, c := range m.calls {
		if c.answers == 0 && !c.g.gone && c.g.c.Closed() != nil {
			m.p.fail("messages", "bot %d: question %d of %v was not even answered by the end", c.g.n, c.q.N, c.at)
		}
	}
}
