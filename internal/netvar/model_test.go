package netvar

import (
	"bytes"
	"cmp"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/netvar/interest"
	"github.com/netloop/netloop/internal/netvar/replica"
	"github.com/netloop/netloop/internal/netvar/state"
	"github.com/netloop/netloop/internal/testing/seeds"
)

// The model test: random edits, spawns, despawns, owner changes, hiding, showing, changes of
// readable fields, joins, leaves, and connections that break and are resumed, over links that lose,
// repeat and reorder. After every packet the client is compared with an independent mirror of the
// captured state.
//
//	NETLOOP_SEEDS=20000 go test -run TestModel ./internal/netvar   # the long proof
//	NETLOOP_SEED=17     go test -run TestModel ./internal/netvar   # one seed again
func TestModel(t *testing.T) {
	schemas := []schema{newSchema(t).withAgents(t), newSchema(t).withLightAgents(t)}
	var total Stats
	var told [WhyNext + 1]int
	masked, played := 0, 0
	for seed := range seeds.Of(t, 80) {
		played++
		m := newModel(schemas[seed%2], seed)
		if err := m.run(); err != nil {
			t.Fatalf("seed %d: %v\nrerun: NETLOOP_SEED=%d go test -run TestModel ./internal/netvar", seed, err, seed)
		}
		total.Lost += m.w.stats.Lost
		total.FullEvicted += m.w.stats.FullEvicted
		total.Waited += m.w.stats.Waited
		total.OverBudget += m.w.stats.OverBudget
		total.Shed += m.w.stats.Shed
		total.Despawns += m.w.stats.Despawns
		total.FullRequested += m.w.stats.FullRequested
		total.FullVisible += m.w.stats.FullVisible
		total.FullMasked += m.w.stats.FullMasked
		total.Masked += m.w.stats.Masked
		total.Shown += m.w.stats.Shown
		total.Hidden += m.w.stats.Hidden
		total.Deltas += m.w.stats.Deltas
		total.Large += m.w.stats.Large
		total.FullLarge += m.w.stats.FullLarge
		total.WaitedLarge += m.w.stats.WaitedLarge
		total.Resumes += m.w.stats.Resumes
		total.Planned += m.w.stats.Planned
		total.FullResumed += m.w.stats.FullResumed
		masked += m.masked
		for why, n := range m.told {
			told[why] += n
		}
	}
	if total.Lost == 0 || total.FullEvicted == 0 && played >= 200 || total.Waited == 0 || total.OverBudget == 0 || total.Shed == 0 || total.Despawns == 0 || total.Deltas == 0 ||
		total.FullVisible == 0 || total.Hidden == 0 || total.FullMasked == 0 || total.Masked == 0 || total.Large == 0 || total.FullLarge == 0 || total.WaitedLarge == 0 ||
		total.Resumes == 0 || total.Planned == 0 || total.FullResumed == 0 || masked == 0 {
		t.Errorf("the seeds do not reach everything: %+v", total)
	}
	for _, why := range []Why{WhyHidden, WhyWithheld, WhyUnedited, WhyUnchanged, WhyAcked, WhySent, WhyStream, WhyInFlight, WhyNoSnapshot, WhyShed, WhyBudget, WhyPackets, WhyStreamFull} {
		if told[why] == 0 && played >= 200 {
			t.Errorf("the seeds do not reach reason %d of Explain: %v", why, told)
		}
	}
	t.Logf("%+v, explained %v, %d masked and steady", total, told, masked)
}

// model is one seed: a world, its mirror, and some clients.
type model struct {
	schema
	rng     *rand.Rand
	w       *World
	tick    uint64
	mirror  map[uint64]map[int]mirrored // captured objects, by tick, by slot
	objects []*state.Object
	touched map[*state.Object]bool // since the last capture
	clients []*modelClient
	lim     Limit
	told    [WhyNext + 1]int // answers of Explain, by reason
	// Steady objects with unreadable fields, counted by tick and client.
	masked int
	hoards int                         // upper bound
	budget Budget                      // of every client
	hot    float64                     // share of objects edited per tick
	may    map[*state.Object]clientSet // clients that may see the object; all if missing
	team   map[*state.Object]clientSet // clients that may read the team fields of an agent
	sent   transcript
}

// clientSet is a set of clients by their index in the model.
type clientSet uint8

// Includes implements Audience.
func (s clientSet) Includes(p *interest.Viewer) bool { return s>>p.Handle.(int)&1 != 0 }

type modelClient struct {
	index    int
	p        *Peer
	r        *replica.Replica
	down, up lossy
	stream   pipe // of large records
	applied  pipe // of their acknowledgements
	acks     []Range
	black    uint64                     // no datagram passes before this tick
	away     uint64                     // tick at which its connection is restored, 0 = connected
	shown    map[state.ID]*state.Object // according to events only
	lives    map[string]bool            // lifetimes with a spawn event
	newest   map[int]uint64             // by slot: version shown
	complete uint64                     // tick of the last whole snapshot
	joined   uint64                     // tick of its first capture
	equal    uint64
	leak     error // a record carried an unreadable field
}

func newModel(s schema, seed uint64) *model {
	rng := rand.New(rand.NewPCG(seed, 1))
	m := &model{schema: s, rng: rng, w: NewWorld(s.table), mirror: map[uint64]map[int]mirrored{}, touched: map[*state.Object]bool{}, lim: wide,
		may: map[*state.Object]clientSet{}, team: map[*state.Object]clientSet{}}
	m.w.SetReaders(s.agent, &modelReaders{m})
	m.w.farBehind = 1 + int(seed%7)*3 // few enough for these small worlds
	if rng.IntN(2) == 0 {
		m.lim = Limit{Packets: 1 + rng.IntN(3), PacketSize: 120 + rng.IntN(300)}
	}
	if rng.IntN(2) == 0 {
		m.budget = Budget{PerTick: 100 + rng.IntN(500)}
		m.budget.Burst = m.budget.PerTick * (1 + rng.IntN(4))
		m.w.SetClassWeight(s.ship, 4, 0)
		m.w.SetClassWeight(s.rock, 0.5, uint64(rng.IntN(20)))
		m.w.SetFactor(s.ship, func(_ *Peer, o *state.Object) float64 { return float64(o.ID().Slot()%3) - 0.5 })
		m.w.Shed(uint64(rng.IntN(3) * 5))
	}
	m.tick = []uint64{0, 5, 1<<32 - 100, 1 << 40}[rng.IntN(4)]
	m.hot = []float64{0.02, 0.3, 1}[rng.IntN(3)]
	m.hoards = []int{0, 3, 12}[rng.IntN(3)]
	for range 1 + rng.IntN(3) {
		m.clients = append(m.clients, nil)
	}
	return m
}

func (m *model) run() error {
	for range 4 + m.rng.IntN(20) {
		m.spawn()
	}
	steps := 130 + m.rng.IntN(170)
	for range steps {
		if err := m.step(true); err != nil {
			return fmt.Errorf("tick %d: %w", m.tick, err)
		}
	}
	digests := m.rng.IntN(2) == 0
	// Edits stop and the links heal: all clients converge, and the digests agree.
	for i := range m.clients {
		if m.clients[i] == nil {
			m.join(i, m.tick+1)
		}
		c := m.clients[i]
		if c.away > 0 {
			if err := m.resume(c); err != nil {
				return fmt.Errorf("client %d: %w", i, err)
			}
		}
		c.down.loss, c.up.loss, c.black = 0, 0, 0
		c.down.jitter, c.up.jitter = 0, 0
		c.stream.heal(m.tick)
		c.applied.heal(m.tick)
		// Or the time that the budget needs for all of them.
		if m.hoards > 0 && m.budget.PerTick > 0 {
			c.p.SetBudget(Budget{PerTick: 4000})
		}
		if digests { // digests also resend records in flight, so half of the seeds have none
			c.p.RequestDigest(MaxDigests)
		} else {
			c.p.digests = 0
		}
	}
	for range 90 {
		if err := m.step(false); err != nil {
			return fmt.Errorf("tick %d, healing: %w", m.tick, err)
		}
	}
	for i, c := range m.clients {
		if c.complete+20 < m.tick || digests && c.equal+20 < m.tick || c.p.pending.Count() > 0 {
			return fmt.Errorf("client %d: last whole snapshot %d, last equal digest %d, now %d, %d owed, %d outstanding, limit %+v, budget %+v: not converged", i, c.complete, c.equal, m.tick, c.p.pending.Count(), len(c.p.large.list), m.lim, c.p.bucket)
		}
		if err := m.same(c, c.complete, true); err != nil {
			return fmt.Errorf("client %d: %w", i, err)
		}
	}
	return nil
}

func (m *model) step(edits bool) error {
	m.tick++
	for i, c := range m.clients {
		if c != nil && c.away > 0 && c.away <= m.tick {
			if err := m.resume(c); err != nil {
				return fmt.Errorf("client %d: %w", i, err)
			}
		}
		if c != nil {
			for _, p := range c.up.receive(m.tick) {
				c.p.Ack(p.acks)
			}
			for _, p := range c.applied.receive(m.tick) {
				c.p.AckLarge(p.id)
			}
		}
	}
	if edits {
		m.play()
	}
	m.w.Capture(m.tick)
	m.remember()
	for i, c := range m.clients {
		if c == nil {
			continue
		}
		if c.away == 0 && m.rng.IntN(8) > 0 { // the window may be closed
			lim := m.lim
			lim.Reliable = m.rng.IntN(20) > 0 // the stream may be full
			packets, first := snap(c.p, m.tick, lim)
			m.sent.sent(packets, c.p.Large())
			for _, b := range c.p.Large() {
				c.stream.send(max(m.tick, c.black), parcel{bytes: bytes.Clone(b), tick: m.tick})
			}
			for j, b := range packets {
				if want := first + uint64(j); c.p.flight.next <= want {
					return fmt.Errorf("packet %d has no id", want)
				}
				if m.tick >= c.black {
					c.down.send(m.tick, parcel{bytes: b})
				}
			}
		}
		for k, word := range c.p.derived {
			for _, v := range c.p.Block(k) {
				m.masked += bits.OnesCount64(v.Slots & word)
			}
		}
		if wrong := soundBlanks(c.p); wrong != "" {
			return fmt.Errorf("client %d: %s", i, wrong)
		}
		if err := m.receive(c); err != nil {
			return fmt.Errorf("client %d: %w", i, err)
		}
		if err := m.explain(c); err != nil {
			return fmt.Errorf("client %d: %w", i, err)
		}
	}
	return nil
}

// play is one tick of the game.
func (m *model) play() {
	if m.rng.IntN(6) == 0 && len(m.objects) < 60 {
		m.spawn()
	}
	for i := 0; i < len(m.objects); i++ {
		o := m.objects[i]
		if m.rng.Float64() < m.hot {
			m.edit(o)
		}
		if m.rng.IntN(200) == 0 {
			m.w.SetOwner(o, uint64(m.rng.IntN(4)))
			m.touched[o] = true
		}
		if m.rng.IntN(60) == 0 {
			m.show(o)
		}
		if o.WireClass() == m.agent && m.rng.IntN(30) == 0 {
			m.permit(o)
		}
		if young := m.tick-o.Changed() < 3 && o.Hist.Len() <= 1; m.rng.IntN(250) == 0 || young && m.rng.IntN(8) == 0 {
			m.w.Despawn(o)
			delete(m.may, o)
			delete(m.team, o)
			m.objects = append(m.objects[:i], m.objects[i+1:]...)
			if m.rng.IntN(2) == 0 {
				m.spawn() // in the next tick it may take the slot
			}
		}
	}
	for i, c := range m.clients {
		switch {
		case c == nil && m.rng.IntN(20) == 0:
			m.join(i, m.tick)
		case c == nil:
		case m.rng.IntN(300) == 0:
			m.w.ClosePeer(c.p)
			m.clients[i] = nil
		case m.rng.IntN(150) == 0:
			c.black = m.tick + uint64(m.rng.IntN(200))
		case m.rng.IntN(150) == 0:
			c.p.RequestDigest(5)
		case m.rng.IntN(400) == 0:
			c.p.RequestFull()
		case c.away == 0 && m.rng.IntN(150) == 0:
			m.part(c)
		}
	}
	if m.rng.IntN(50) == 0 { // no client ever sees it
		m.w.Despawn(m.spawnRock(m.w, rock{}, m.tick))
	}
}

func (m *model) spawn() {
	var o *state.Object
	if m.living(m.hoard) < m.hoards && m.rng.IntN(4) == 0 {
		o = m.spawnHoard(m.w, hoard{}, m.tick)
	} else if m.rng.IntN(3) == 0 {
		o = m.spawnAgent()
	} else if m.rng.IntN(2) == 0 {
		o = m.spawnShip(m.w, ship{Name: "new"}, uint64(m.rng.IntN(3)), m.tick)
	} else {
		o = m.spawnRock(m.w, rock{}, m.tick)
	}
	m.touched[o] = true
	m.objects = append(m.objects, o)
	if m.rng.IntN(4) == 0 {
		m.show(o)
	}
}

// living counts the objects of a class.
func (m *model) living(c *state.Class) (n int) {
	for range m.w.All(c) {
		n++
	}
	return n
}

// show changes the audience of the object, sometimes with a reversal.
func (m *model) show(o *state.Object) {
	for range 1 + m.rng.IntN(2) {
		if m.rng.IntN(4) == 0 {
			m.w.SetAudience(o, nil)
			delete(m.may, o)
			continue
		}
		m.may[o] = clientSet(m.rng.IntN(8))
		m.w.SetAudience(o, m.may[o])
	}
}

func (m *model) edit(o *state.Object) {
	m.w.Edit(o)
	m.touched[o] = true
	if o.WireClass() == m.rock {
		r := live[rock](o)
		r.X += int32(m.rng.IntN(5)) - 2
		r.Big = m.rng.IntN(2) == 0
		return
	}
	if o.WireClass() == m.agent {
		m.editAgent(live[agent](o))
		return
	}
	if o.WireClass() == m.hoard {
		h := live[hoard](o)
		h.Gold++
		if m.rng.IntN(4) == 0 { // mostly a small change of a large value
			h.Loot = m.loot()
		} else if len(h.Loot) > 0 {
			h.Loot[m.rng.IntN(len(h.Loot))].ID++
		}
		return
	}
	s := live[ship](o)
	switch m.rng.IntN(7) {
	case 0:
		s.X += m.rng.Float32() - 0.5
	case 1:
		s.Angle = m.rng.Float32()
	case 2:
		s.Armed = !s.Armed // A, B, A happens all the time
	case 3:
		s.Name = fmt.Sprint("n", m.rng.IntN(3))
	case 4:
		if len(s.Bag) < 4 {
			s.Bag = append(s.Bag, item{Name: "x"})
		} else {
			s.Bag = s.Bag[:1]
		}
	case 5:
		if len(s.Bag) > 0 {
			s.Bag[0].Count++ // in place: captures must not alias
		}
	case 6:
		if n := len(m.objects); n > 0 {
			s.Foe = codec.Ref{ID: uint64(m.objects[m.rng.IntN(n)].ID())}
		}
	}
}

// loot returns a list of a size between empty and the largest record.
func (m *model) loot() []loot {
	list := make([]loot, m.rng.IntN([]int{4, 80, 1000}[m.rng.IntN(3)]))
	for i := range list {
		list[i] = loot{ID: m.rng.Uint32(), Kind: uint8(m.rng.IntN(256))}
	}
	return list
}

func (m *model) join(i int, tick uint64) {
	rng := rand.New(rand.NewPCG(m.rng.Uint64(), 2))
	loss := []float64{0, 0.1, 0.2, 0.4}[rng.IntN(4)]
	link := lossy{rng: rng, loss: loss, dup: 0.1 * float64(rng.IntN(2)), delay: rng.IntN(6), jitter: rng.IntN(6)}
	p := m.w.NewPeer(tick)
	p.SetBudget(m.budget)
	late := 1 + rng.IntN(40) // lag of a stream behind datagrams, in ticks
	c := &modelClient{index: i, p: p, joined: tick, down: link, up: link, stream: pipe{rng: rng, late: late}, applied: pipe{rng: rng, late: late}}
	c.p.Handle = i
	m.empty(c, tick)
	m.clients[i] = c
}

// empty gives the client an empty replica.
func (m *model) empty(c *modelClient, tick uint64) {
	c.r = replica.New(m.table)
	c.shown, c.lives, c.newest = map[state.ID]*state.Object{}, map[string]bool{}, map[int]uint64{}
	c.r.Inspect(func(r *replica.Carried) { c.leak = cmp.Or(c.leak, m.leaked(c.index, r)) })
	c.r.StartAt(tick)
}

func (m *model) receive(c *modelClient) error {
	for _, p := range c.down.receive(m.tick) {
		was := c.r.Tick()
		a, err := c.r.Apply(p.bytes)
		if err != nil {
			return fmt.Errorf("packet refused: %w", err)
		}
		if a.Ack != (a.Tick >= was) {
			return fmt.Errorf("packet of tick %d after %d: ack %v", a.Tick, was, a.Ack)
		}
		if a.Ack && m.rng.IntN(10) > 0 {
			c.acks = append(c.acks, Range{a.Packet, a.Packet})
			if len(c.acks) > 30 {
				c.acks = c.acks[1:]
			}
		}
		if err := m.watch(c, a.Tick); err != nil {
			return err
		}
		if a.SnapshotComplete {
			c.complete = a.Tick
			d, tick := c.r.Digest()
			if d == replica.DigestUnequal {
				return fmt.Errorf("digest of complete snapshot %d differs", tick)
			}
			if d == replica.DigestEqual {
				c.equal = tick
				if err := m.same(c, tick, false); err != nil {
					return fmt.Errorf("equal digest, but %w", err)
				}
			}
		}
	}
	for _, p := range c.stream.receive(m.tick) {
		id, err := c.r.ApplyLarge(p.bytes)
		if err != nil {
			return fmt.Errorf("large record refused: %w", err)
		}
		if err := m.watch(c, p.tick); err != nil {
			return err
		}
		if c.away == 0 {
			c.applied.send(max(m.tick, c.black), parcel{id: id})
		}
	}
	if len(c.acks) > 0 && m.tick >= c.black && c.away == 0 {
		acks := append([]Range(nil), c.acks...)
		m.rng.Shuffle(len(acks), func(i, j int) { acks[i], acks[j] = acks[j], acks[i] })
		c.up.send(m.tick, parcel{acks: acks})
	}
	return nil
}

// watch processes the events of a packet sent at a tick and compares every object in them with the
// mirror of its version.
func (m *model) watch(c *modelClient, sent uint64) error {
	if c.leak != nil {
		return c.leak
	}
	for _, e := range c.r.Events() {
		o := e.Object
		switch e.Kind {
		case replica.Spawn:
			life := fmt.Sprint(o.ID(), "@", o.Life)
			if c.shown[o.ID()] != nil || c.lives[life] {
				return fmt.Errorf("spawn of %x twice", uint64(o.ID()))
			}
			c.shown[o.ID()], c.lives[life] = o, true
			delete(c.newest, o.Slot())
		case replica.Change:
			if c.shown[o.ID()] != o || e.Old == nil {
				return fmt.Errorf("change of %x, which is not shown", uint64(o.ID()))
			}
		case replica.Despawn:
			if c.shown[o.ID()] != o || o.Alive() {
				return fmt.Errorf("despawn of %x, which is not shown", uint64(o.ID()))
			}
			delete(c.shown, o.ID())
			continue
		}
		if !o.Alive() {
			continue // its despawn follows
		}
		id, slot := o.ID(), o.Slot()
		if o.Changed() < c.newest[slot] {
			return fmt.Errorf("%x shows version %d after %d", uint64(id), o.Changed(), c.newest[slot])
		}
		c.newest[slot] = o.Changed()
		if err := m.isVersion(c, o, sent); err != nil {
			return err
		}
		if got, ok := c.r.Get(id); !ok || got != o {
			return fmt.Errorf("Get(%x) does not find what the events have shown", uint64(id))
		}
	}
	return nil
}
