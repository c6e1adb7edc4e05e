package netvar

import (
	"fmt"
	"testing"
	"unsafe"

	"github.com/netloop/netloop/internal/netvar/interest"
	"github.com/netloop/netloop/internal/netvar/replica"
	"github.com/netloop/netloop/internal/netvar/state"
)

// The agents of the model: objects of which not every client may read all fields.

func (s schema) withAgents(tb testing.TB) schema {
	tb.Helper()
	s.agent = classOf[agent](tb, "agent")
	s.table = state.NewTable(s.ship, s.rock, s.hoard, s.agent)
	return s
}

// withLightAgents adds agents that always fit a packet, as most objects do: then they are steady.
func (s schema) withLightAgents(tb testing.TB) schema {
	tb.Helper()
	s.agent = classOf[lightAgent](tb, "agent")
	s.table = state.NewTable(s.ship, s.rock, s.hoard, s.agent)
	return s
}

// lightAgent has the memory layout of agent.
type lightAgent struct {
	X    int32
	Heat float32 `net:"quant=1/4,range=20:90,read=owner"`
	Ammo int32   `net:"read=owner,weight=16"`
	Plan string  `net:"max=8,read=team"`
	Gear struct {
		Key  int16  `net:"weight=4"`
		Hat  int16  `net:"read=all"`
		Bag  []item `net:"max=4"`
		Spot [2]int8
	} `net:"read=team,weight=1/2"`
	Y    int32
	Take []loot `net:"max=4,read=team"`
}

// modelReaders implements Readers by the model's decisions.
type modelReaders struct{ m *model }

func (*modelReaders) Ask(*state.Object) {}

func (r *modelReaders) Withheld(o *state.Object, p *interest.Viewer) (w state.Rules) {
	if o.Owner() != uint64(p.Handle.(int)+1) {
		w |= ownerRule
	}
	if !r.m.team[o].Includes(p) {
		w |= teamRule
	}
	return w
}

// hiddenParts is the text of an agent's unreadable parts.
var hiddenParts = agentParts(&agent{Heat: 20})

func agentParts(a *agent) parts {
	g := &a.Gear
	return parts{
		fmt.Sprint(" x=", a.X, " y=", a.Y, " hat=", g.Hat),
		fmt.Sprint("heat=", a.Heat, " ammo=", a.Ammo),
		fmt.Sprint("plan=", a.Plan, " key=", g.Key, " bag=", g.Bag, " spot=", g.Spot, " take=", a.Take),
	}
}

// partOf maps the leaves of an agent to its parts.
var partOf = [...]int{0: 0, 1: 1, 2: 1, 3: 2, 4: 2, 5: 0, 6: 2, 7: 2, 8: 2, 9: 0, 10: 2}

// leaked checks a record of an agent leaf by leaf, against the tick at which it was sent.
func (m *model) leaked(client int, r *replica.Carried) error {
	then, ok := m.mirror[r.Tick]
	if r.Class != m.agent || !ok {
		return nil
	}
	v := then[r.ID.Slot()].views[client]
	for i, part := range partOf {
		if r.Tells(i) && !v.reads[part] {
			return fmt.Errorf("a record of %x, sent at tick %d, tells of %s, which the client may not read", uint64(r.ID), r.Tick, r.Class.Plan().LeafName(i))
		}
	}
	return nil
}

func (m *model) spawnAgent() *state.Object {
	o := m.w.Spawn(m.agent, unsafe.Pointer(&agent{Heat: 30, Plan: "new"}), uint64(m.rng.IntN(4)), m.tick)
	m.team[o] = clientSet(m.rng.IntN(8))
	return o
}

// permit changes the readers of an agent, sometimes with a reversal or a change of the value.
func (m *model) permit(o *state.Object) {
	for range 1 + m.rng.IntN(2) {
		switch m.rng.IntN(3) {
		case 0:
			m.w.SetOwner(o, uint64(m.rng.IntN(4)))
			m.touched[o] = true
		case 1:
			m.team[o] = clientSet(m.rng.IntN(8))
			m.w.Recheck(o)
		default:
			m.w.Recheck(o) // without effect
		}
	}
	if m.rng.IntN(2) == 0 {
		m.edit(o)
	}
}

func (m *model) editAgent(a *agent) {
	switch m.rng.IntN(10) {
	case 0:
		a.X += int32(m.rng.IntN(3)) - 1
	case 1:
		a.Y = int32(m.rng.IntN(2)) // A, B, A
		a.Ammo++
	case 2:
		a.Ammo += int32(m.rng.IntN(3)) - 1
	case 3:
		a.Heat = 20 + float32(m.rng.IntN(20))/4
	case 4:
		a.Plan = fmt.Sprint("p", m.rng.IntN(3))
	case 5:
		a.Gear.Key++
		a.Gear.Hat = int16(m.rng.IntN(2))
	case 6:
		a.Gear.Spot[m.rng.IntN(2)]++
	case 7:
		if m.hoards > 0 {
			a.Take = m.loot()
			a.Take = a.Take[:min(len(a.Take), 400)]
			if !m.agent.Large {
				a.Take = a.Take[:min(len(a.Take), 4)]
			}
		}
	case 8:
		if len(a.Take) > 0 {
			a.Take[0].ID++
		}
	case 9:
		if len(a.Gear.Bag) < 3 {
			a.Gear.Bag = append(a.Gear.Bag, item{Name: "rope"})
		} else {
			a.Gear.Bag = a.Gear.Bag[:1]
			a.Gear.Bag[0].Count++
		}
	}
}
