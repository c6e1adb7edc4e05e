package netvar

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/netloop/netloop/internal/netvar/interest"
	"github.com/netloop/netloop/internal/netvar/replica"
	"github.com/netloop/netloop/internal/netvar/state"
)

// fighter has fields of different weights, most of them readable by all clients.
type fighter struct {
	Dust   int32 `net:"weight=0.1"`
	Health int32 `net:"weight=10"`
	Pose   struct {
		X      int32
		Shield int32 `net:"weight=4"`
	} `net:"weight=2"`
	Secret int32 `net:"weight=64,read=team"`
	Plain  int32
}

// brawl is a world of fighters and rocks with one client, which acknowledges all packets that
// arrive.
type brawl struct {
	t       testing.TB
	w       *World
	fighter *state.Class
	rock    *state.Class
	objects []*state.Object // by slot
	p       *Peer
	r       *replica.Replica
	told    bool // the client may read secrets
	tick    uint64
	loses   bool // no packet arrives
	packets [][]byte
}

func newBrawl(t testing.TB, told bool) *brawl {
	b := &brawl{t: t, fighter: classOf[fighter](t, "fighter"), rock: classOf[rock](t, "rock"), told: told, tick: 500}
	table := state.NewTable(b.fighter, b.rock)
	b.w, b.r = NewWorld(table), replica.New(table)
	b.w.SetReaders(b.fighter, b)
	b.p = b.w.NewPeer(b.tick + 1)
	b.r.StartAt(b.tick)
	return b
}

// Ask implements Readers.
func (*brawl) Ask(*state.Object) {}

// Withheld implements Readers.
func (b *brawl) Withheld(*state.Object, *interest.Viewer) state.Rules {
	if b.told {
		return 0
	}
	return state.Rules(1 << 1)
}

func (b *brawl) spawn(fighters, rocks int) {
	for range fighters {
		b.objects = append(b.objects, b.w.Spawn(b.fighter, unsafe.Pointer(new(fighter)), 0, b.tick))
	}
	for range rocks {
		b.objects = append(b.objects, b.w.Spawn(b.rock, unsafe.Pointer(new(rock)), 0, b.tick))
	}
}

// edit returns the fighter in a slot, to change it.
func (b *brawl) edit(slot int) *fighter {
	b.w.Edit(b.objects[slot])
	return live[fighter](b.objects[slot])
}

func (b *brawl) editRock(slot int) *rock {
	b.w.Edit(b.objects[slot])
	return live[rock](b.objects[slot])
}

// step is a tick. It returns the slots with a record in its snapshot.
func (b *brawl) step() (slots []int) {
	b.t.Helper()
	b.tick++
	b.w.Capture(b.tick)
	b.packets, _ = b.p.AppendSnapshot(b.packets[:0], b.tick, wide)
	for _, packet := range b.packets {
		if b.loses {
			continue
		}
		mustApply(b.t, b.r, b.p, packet)
		for s := range b.r.Records {
			slots = append(slots, s.Slot)
		}
	}
	return slots
}

// steps is so many ticks.
func (b *brawl) steps(n int) (slots []int) {
	b.t.Helper()
	for range n {
		slots = append(slots, b.step()...)
	}
	return slots
}

// short sets a budget for one record, and for the next one only when that is paid for.
func (b *brawl) short() { b.p.SetBudget(Budget{PerTick: 1, Burst: 1}) }

// want fails unless the next records are of these slots, in this order.
func (b *brawl) want(slots ...int) {
	b.t.Helper()
	if got := b.steps(40 * len(slots)); !slices.Equal(got, slots) {
		b.t.Errorf("records go in the order %v, want %v", got, slots)
	}
}

// rival is the test's state of an object.
type rival struct {
	tags    []float64 // by field
	weight  float64
	changed []uint64 // by field
	has     uint64   // version that the client has
	last    uint64   // tick of the last record
}

// need returns the priority of the object at a tick; 0 if it is not pending.
func (r *rival) need(tick uint64) (most float64) {
	for i, tag := range r.tags {
		if r.changed[i] > r.has {
			most = max(most, tag*r.weight*float64(tick-r.last))
		}
	}
	return most
}

// In random worlds records are sent in the order of their priority.
func TestRecordsAreSentInOrderOfPriority(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 17))
		b := newBrawl(t, seed%2 == 0)
		b.spawn(30, 10)
		b.step()
		b.p.SetBudget(Budget{PerTick: 4 + rng.IntN(20), Burst: 30})
		rivals := make([]rival, 40)
		for i := range rivals {
			r := &rivals[i]
			*r = rival{tags: []float64{1, 1, 1, 1}, weight: []float64{0.5, 1, 8}[rng.IntN(3)], has: b.tick, last: b.tick}
			if i < 30 {
				if r.tags = []float64{0.1, 10, 2, 4, 64, 1}; !b.told {
					r.tags[4] = 0
				}
			}
			r.changed = make([]uint64, len(r.tags))
			b.w.SetWeight(b.objects[i], r.weight)
		}
		waited, passed := 0, 0
		for range 150 {
			for i := range rivals {
				if rng.IntN(4) > 0 {
					continue
				}
				which := rng.IntN(len(rivals[i].tags))
				if rivals[i].changed[which] = b.tick + 1; i < 30 {
					f := b.edit(i)
					*[]*int32{&f.Dust, &f.Health, &f.Pose.X, &f.Pose.Shield, &f.Secret, &f.Plain}[which] += 1 + rng.Int32N(1000)
				} else {
					r := b.editRock(i)
					switch which {
					case 0:
						r.X++
					case 1:
						r.Y++
					case 2:
						r.Spin++
					case 3:
						r.Big = !r.Big
					}
				}
			}
			sent := b.step()
			least, most := math.Inf(1), 0.0
			for i := range rivals {
				if r := &rivals[i]; slices.Contains(sent, i) {
					least = min(least, r.need(b.tick))
					r.has, r.last = b.tick, b.tick
				} else if r.need(b.tick) > 0 {
					most = max(most, r.need(b.tick))
					waited++
				}
			}
			// Weights are fixed-point numbers.
			if passed += len(sent); len(sent) > 0 && least < most*0.99 {
				t.Fatalf("seed %d, tick %d: what is needed %v goes, and %v waits", seed, b.tick, least, most)
			}
		}
		if waited < 50 || passed < 50 {
			t.Fatalf("seed %d: %d records went and %d waited", seed, passed, waited)
		}
	}
}
