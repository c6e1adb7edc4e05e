package netvar

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/netloop/netloop/internal/netvar/interest"
	"github.com/netloop/netloop/internal/netvar/replica"
	"github.com/netloop/netloop/internal/netvar/state"
	"github.com/netloop/netloop/internal/testing/refdecoder"
	"github.com/netloop/netloop/internal/testing/seeds"
)

// The second reader, written from docs/WIRE.md alone (internal/testing/refdecoder), and the real
// reader receive the same packets of random worlds, over links that lose, repeat and reorder. After
// each packet both have the same objects, versions, values and events, and agree about the digest.
//
//	NETLOOP_SEEDS=2000 go test -run TestPlain ./internal/netvar
//	NETLOOP_SEED=17    go test -run TestPlain ./internal/netvar   # one seed again
func TestPlainReaderAgrees(t *testing.T) { plainSeeds(t, false) }

// The same with damaged packets: both readers accept a packet, or neither does.
func TestPlainReaderAgreesOnDamage(t *testing.T) { plainSeeds(t, true) }

func plainSeeds(t *testing.T, damage bool) {
	var all plainTally
	played := 0
	for seed := range seeds.Of(t, 50) {
		played++
		m := newPlainModel(t, seed, damage, &all)
		for range 40 + m.rng.IntN(80) {
			if err := m.step(); err != nil {
				t.Fatalf("seed %d, tick %d: %v\nrerun: NETLOOP_SEED=%d go test -run %s ./internal/netvar", seed, m.tick, err, seed, t.Name())
			}
		}
		all.Stats.add(m.w.Stats())
	}
	for i, n := range []uint64{all.packets, all.stale, all.repeated, all.equal, all.trends, all.Stats.Deltas, all.Stats.Despawns, all.Stats.Large,
		all.Stats.FullMasked, all.Stats.FullEvicted, all.Stats.FullRequested, all.Stats.FullResumed, all.Stats.FullVisible, all.Stats.Clamped} {
		if n == 0 && played >= 100 {
			t.Errorf("the seeds do not reach number %d of what they shall: %+v", i, all)
		}
	}
	if damage != (all.refused > 0) {
		t.Errorf("%d packets refused", all.refused)
	}
	t.Logf("%+v", all)
}

// plainTally counts the cases that the seeds have reached.
type plainTally struct {
	packets, stale, repeated, refused, damaged, taken uint64
	equal, partial, trends                            uint64
	Stats                                             plainStats
}

type plainStats struct {
	Deltas, Despawns, Large, FullMasked, FullEvicted, FullRequested, FullResumed, FullVisible, Clamped uint64
}

func (s *plainStats) add(w *Stats) {
	s.Deltas += w.Deltas
	s.Despawns += w.Despawns
	s.Large += w.Large
	s.FullMasked += w.FullMasked
	s.FullEvicted += w.FullEvicted
	s.FullRequested += w.FullRequested
	s.FullResumed += w.FullResumed
	s.FullVisible += w.FullVisible
	s.Clamped += w.Clamped
}

// plainModel is the simulation of one seed.
type plainModel struct {
	rng     *rand.Rand
	all     *plainTally
	damage  bool
	table   *state.Table
	classes []refdecoder.Class
	w       *World
	tick    uint64
	objects []*state.Object
	team    map[*state.Object]clientSet
	clients []*plainClient
	lim     Limit
	budget  Budget
	hot     float64
	log     *worldLog // received data; nil = no log
}

type plainClient struct {
	index    int
	p        *Peer
	pair     *plainPair
	down, up lossy
	stream   pipe
	acks     []Range
	// it has accepted a damaged packet, and is replaced by another client at this tick
	until uint64
}

// Ask and Withheld implement Readers.
func (m *plainModel) Ask(*state.Object) {}

func (m *plainModel) Withheld(o *state.Object, p *interest.Viewer) (w state.Rules) {
	i := p.Handle.(int)
	for rule, name := range o.WireClass().Rules() {
		if name == "owner" && o.Owner() != uint64(i+1) || name == "team" && !m.team[o].Includes(p) {
			w |= 1 << rule
		}
	}
	return w
}

func newPlainModel(t testing.TB, seed uint64, damage bool, all *plainTally) *plainModel {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 7))
	m := &plainModel{rng: rng, all: all, damage: damage, team: map[*state.Object]clientSet{}, lim: wide}
	var classes []*state.Class
	for _, c := range []struct {
		name string
		t    reflect.Type
	}{{"drifter", reflect.TypeFor[drifter]()}, {"everything", reflect.TypeFor[everything]()}, {"rock", reflect.TypeFor[rock]()}, {"hoard", reflect.TypeFor[hoard]()}} {
		class, err := state.NewClass(c.name, c.t, notes)
		if err != nil {
			t.Fatal(err)
		}
		classes = append(classes, class)
	}
	m.table = state.NewTable(classes...)
	m.classes = plainTables(t, m.table)
	m.w = NewWorld(m.table)
	for _, c := range classes {
		if len(c.Rules()) > 0 {
			m.w.SetReaders(c, m)
		}
	}
	if rng.IntN(2) == 0 {
		m.lim = Limit{Packets: 1 + rng.IntN(5), PacketSize: 200 + rng.IntN(900)}
	}
	if rng.IntN(3) == 0 {
		m.budget = Budget{PerTick: 200 + rng.IntN(800), Burst: 2000}
	}
	m.tick = []uint64{0, 5, 1<<32 - 50, 1 << 40}[rng.IntN(4)]
	m.hot = []float64{0.03, 0.3, 1}[rng.IntN(3)]
	for range 2 + rng.IntN(8) {
		m.spawn()
	}
	for i := range 1 + rng.IntN(2) {
		m.clients = append(m.clients, m.join(i))
	}
	return m
}

func (m *plainModel) join(i int) *plainClient {
	rng := rand.New(rand.NewPCG(m.rng.Uint64(), 8))
	link := lossy{rng: rng, loss: []float64{0, 0, 0.1, 0.3}[rng.IntN(4)], dup: 0.1 * float64(rng.IntN(2)), delay: rng.IntN(5), jitter: rng.IntN(5)}
	c := &plainClient{index: i, p: m.w.NewPeer(m.tick + 1), pair: newPlainPair(m.table, m.classes, m.tick), down: link, up: link,
		stream: pipe{rng: rng, late: 1 + rng.IntN(20)}}
	c.p.Handle = i
	c.p.SetBudget(m.budget)
	if rng.IntN(2) == 0 {
		c.p.RequestDigest(MaxDigests)
	}
	m.logged(c)
	return c
}

// logged logs the start of the client's pair of readers.
func (m *plainModel) logged(c *plainClient) {
	if m.log != nil {
		m.log.join(c.pair)
	}
}

func (m *plainModel) spawn() {
	c := m.table.Classes()[m.rng.IntN(4)]
	v := reflect.New(c.Type())
	if c.Name() == "drifter" {
		v.Elem().FieldByName("Turn").Set(reflect.ValueOf([4]float32{0, 0, 0, 1}))
	}
	for range m.rng.IntN(9) {
		scramble(m.rng, v.Elem())
	}
	o := m.w.Spawn(c, v.UnsafePointer(), uint64(m.rng.IntN(4)), m.tick+1)
	m.team[o] = clientSet(m.rng.IntN(4))
	m.objects = append(m.objects, o)
}

func (m *plainModel) step() error {
	m.tick++
	m.play()
	m.w.Capture(m.tick)
	for i, c := range m.clients {
		for _, p := range c.up.receive(m.tick) {
			c.p.Ack(p.acks)
		}
		if m.rng.IntN(6) > 0 {
			lim := m.lim
			lim.Reliable = m.rng.IntN(20) > 0
			packets, _ := snap(c.p, m.tick, lim)
			for _, b := range c.p.Large() {
				c.stream.send(m.tick, parcel{bytes: bytes.Clone(b)})
			}
			for _, b := range packets {
				c.down.send(m.tick, parcel{bytes: b})
			}
		}
		if err := m.receive(c); err != nil {
			return fmt.Errorf("client %d: %w", i, err)
		}
		if m.rng.IntN(250) == 0 || c.until > 0 && m.tick >= c.until {
			m.w.ClosePeer(c.p)
			m.clients[i] = m.join(i)
		} else if m.rng.IntN(150) == 0 {
			m.resume(c)
		}
	}
	return nil
}

// resume gives the client another connection and a new pair without copies.
func (m *plainModel) resume(c *plainClient) {
	c.p.Resume(false)
	c.pair = newPlainPair(m.table, m.classes, m.tick)
	m.logged(c)
	c.up.queue, c.down.queue, c.acks, c.until = nil, nil, nil, 0
	c.stream = pipe{rng: c.stream.rng, late: c.stream.late}
}

// play is one tick of the game.
func (m *plainModel) play() {
	if m.rng.IntN(8) == 0 && len(m.objects) < 14 {
		m.spawn()
	}
	for i := 0; i < len(m.objects); i++ {
		o := m.objects[i]
		if m.rng.Float64() < m.hot {
			m.w.Edit(o)
			if v := reflect.NewAt(o.WireClass().Type(), o.Live()).Elem(); o.WireClass().Name() != "drifter" || m.rng.IntN(10) == 0 {
				scramble(m.rng, v)
			} else {
				live[drifter](o).drift(float64(o.ID().Slot()+1), m.tick)
			}
		}
		if m.rng.IntN(100) == 0 {
			m.w.SetOwner(o, uint64(m.rng.IntN(4)))
		}
		if m.rng.IntN(60) == 0 {
			m.team[o] = clientSet(m.rng.IntN(4))
			m.w.Recheck(o)
		}
		if m.rng.IntN(80) == 0 {
			m.w.SetAudience(o, clientSet(m.rng.IntN(8)))
		}
		if m.rng.IntN(150) == 0 {
			m.w.Despawn(o)
			m.objects = append(m.objects[:i], m.objects[i+1:]...)
		}
	}
	for _, c := range m.clients {
		switch m.rng.IntN(300) {
		case 0:
			c.p.RequestFull()
		case 1:
			c.p.RequestDigest(20)
		}
	}
	if m.rng.IntN(100) == 0 && m.tick < 1<<31 {
		m.tick += uint64(m.rng.IntN(200)) // the room has skipped some ticks
	}
}

func (m *plainModel) receive(c *plainClient) error {
	for _, p := range c.down.receive(m.tick) {
		b := p.bytes
		spoiled := m.damage && m.rng.IntN(3) == 0
		if spoiled {
			b = m.spoil(b, c.pair.plain)
			m.all.damaged++
		}
		was := c.pair.taken
		c.pair.taken = was || spoiled
		a, res, err := c.pair.apply(b)
		c.pair.taken = was || spoiled && a.Packet > 0
		if err != nil {
			return fmt.Errorf("%w: packet %x", err, b)
		}
		if err := m.count(c, a, res, spoiled); err != nil {
			return err
		}
		if a.Ack {
			c.acks = append(c.acks, Range{a.Packet, a.Packet})
			c.acks = c.acks[max(0, len(c.acks)-30):]
		}
	}
	for _, p := range c.stream.receive(m.tick) {
		b := p.bytes
		if m.damage && m.rng.IntN(6) == 0 {
			b = m.spoil(b, nil)
			c.pair.taken, c.until = true, m.tick+1
		}
		id, err := c.pair.applyLarge(b)
		if err != nil {
			return fmt.Errorf("%w: record %x", err, b)
		}
		c.p.AckLarge(id)
	}
	if len(c.acks) > 0 {
		c.up.send(m.tick, parcel{acks: append([]Range(nil), c.acks...)})
	}
	return nil
}

// count tallies the outcome of a packet. An undamaged packet must be accepted and agree with the
// server.
func (m *plainModel) count(c *plainClient, a replica.Applied, res refdecoder.Result, spoiled bool) error {
	switch {
	case res.ID == 0 || a.Packet == 0:
		m.all.refused++
		if !spoiled && c.until == 0 {
			return fmt.Errorf("a sound packet is refused")
		}
		return nil
	case !res.Ack:
		m.all.stale++
	case res.Repeated:
		m.all.repeated++
	default:
		m.all.packets++
		m.all.trends += uint64(res.Trends)
	}
	// A packet that appears as repeated is acknowledged too, with any id.
	if spoiled && res.Ack {
		m.all.taken++
		c.until = m.tick + uint64(m.rng.IntN(6))
	}
	switch {
	case res.Digest == refdecoder.Equal:
		m.all.equal++
	case res.Digest == refdecoder.Unequal && c.until == 0:
		return fmt.Errorf("digest %x, the server's is %x", res.Got, res.Want)
	case res.HasDigest:
		m.all.partial++
	}
	return nil
}
