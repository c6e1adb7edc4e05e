package netvar

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/netloop/netloop/internal/netvar/packet"
	"github.com/netloop/netloop/internal/netvar/replica"
	"github.com/netloop/netloop/internal/netvar/state"
)

// gull flies in circles: four floats without a step, which all change in every tick, little and
// smoothly.
type gull struct{ X, Y, VX, VY float32 }

// flock is the world of comparisons with other servers: 100 entities of four float32, one client.
type flock struct {
	fly     func(tick uint64, i int) gull
	w       *World
	p       *Peer
	r       *replica.Replica
	gulls   []*state.Object
	packets [][]byte
	acks    []Range
	tick    uint64
	bytes   int // of whole packets
}

func newFlock(tb testing.TB, fly func(tick uint64, i int) gull) *flock {
	tb.Helper()
	class := classOf[gull](tb, "gull")
	table := state.NewTable(class)
	f := &flock{fly: fly, w: NewWorld(table), r: replica.New(table), acks: make([]Range, 3)}
	f.p = f.w.NewPeer(1)
	for range 100 {
		f.gulls = append(f.gulls, f.w.Spawn(class, unsafe.Pointer(new(gull)), 0, 1))
	}
	return f
}

// circles is the normal movement of gulls.
func circles(tick uint64, i int) gull {
	radius := 20 + float64(i)/3
	sin, cos := math.Sincos(float64(tick)/120 + float64(i))
	return gull{float32(100 + radius*cos), float32(-50 + radius*sin), float32(-radius * sin / 2), float32(radius * cos / 2)}
}

// flips is a gull that reverses in every tick, at a slightly varying speed.
func flips(change float64) func(tick uint64, i int) gull {
	return func(tick uint64, i int) gull {
		sin, cos := math.Sincos(float64(i))
		speed := float64(5 + i%7)
		speed += speed * change * math.Sin(float64(tick)/30+float64(i))
		if tick%2 == 0 {
			return gull{float32(10 * i), float32(-3 * i), float32(-speed * cos), float32(-speed * sin)}
		}
		return gull{float32(float64(10*i) + speed*cos/60), float32(float64(-3*i) + speed*sin/60), float32(speed * cos), float32(speed * sin)}
	}
}

// anyFloats returns arbitrary floats without any order.
func anyFloats(tick uint64, i int) gull {
	rng := rand.New(rand.NewPCG(tick, uint64(i)))
	some := func() float32 { return math.Float32frombits(rng.Uint32()) }
	return gull{some(), some(), some(), some()}
}

// step is a tick of a 60th of a second; acknowledgements arrive three ticks later.
func (f *flock) step(tb testing.TB) {
	f.tick++
	for i, o := range f.gulls {
		f.w.Edit(o)
		*live[gull](o) = f.fly(f.tick, i)
	}
	acks := &f.acks[f.tick%uint64(len(f.acks))]
	if acks.First > 0 {
		f.p.Ack([]Range{*acks})
	}
	f.w.Capture(f.tick)
	var first uint64
	f.packets, first = f.p.AppendSnapshot(f.packets[:0], f.tick, wide)
	*acks = Range{first, first + uint64(len(f.packets)) - 1}
	for _, p := range f.packets {
		f.bytes += len(p)
		if _, err := f.r.Apply(p); err != nil {
			tb.Fatal(err)
		}
	}
	f.r.Events()
}

// peersBytes is the size of an update in the leanest of five other servers: each float in full.
const peersBytes = 1604

func TestFloatsWithoutAStepAreLosslessAndSmall(t *testing.T) {
	for _, c := range []struct {
		name string
		fly  func(tick uint64, i int) gull
		most int // bytes per update
	}{
		{"circles", circles, 820},
		{"there and back", flips(0), 200},
		{"there and back at another speed", flips(0.2), 900},
		{"any bits", anyFloats, 100*(4*33+3)/8 + 2*packet.MaxHeader},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFlock(t, c.fly)
			for range 10 {
				f.step(t)
			}
			f.bytes = 0
			const ticks = 300
			for range ticks {
				f.step(t)
				for i, o := range f.gulls {
					got, ok := f.r.Get(o.ID())
					if !ok || *live[gull](got) != noNaN(*live[gull](o)) {
						t.Fatalf("gull %d is another one for the client", i)
					}
				}
			}
			perUpdate := f.bytes / ticks
			if t.Logf("%d bytes per update", perUpdate); perUpdate > c.most {
				t.Errorf("%d bytes per update, want at most %d", perUpdate, c.most)
			}
		})
	}
}

// noNaN returns the captured value of a gull.
func noNaN(g gull) gull {
	for _, f := range []*float32{&g.X, &g.Y, &g.VX, &g.VY} {
		if *f != *f {
			*f = 0
		}
	}
	return g
}

// BenchmarkFloats prints the bytes of an update of 100 objects of four float32, headers included.
func BenchmarkFloats(b *testing.B) {
	f := newFlock(b, circles)
	for range 2 * state.Horizon { // until the histories are full
		f.step(b)
	}
	f.bytes = 0
	ticks := 0
	b.ReportAllocs()
	for b.Loop() {
		f.step(b)
		ticks++
	}
	b.ReportMetric(float64(f.bytes)/float64(ticks), "B/update")
	b.ReportMetric(peersBytes, "peers-B/update")
}

// A blind replica returns the same as another one for each packet, and has no objects.
func TestABlindReplicaAcknowledgesLikeAnother(t *testing.T) {
	f := newFlock(t, circles)
	sees, blind := replica.New(f.r.Table()), replica.New(f.r.Table())
	blind.Blind()
	for range 20 {
		f.step(t)
		for _, p := range f.packets {
			want, errSees := sees.Apply(p)
			got, errBlind := blind.Apply(p)
			if got != want || errSees != nil || errBlind != nil || !got.Ack {
				t.Fatalf("%+v, %v; the one that sees %+v, %v", got, errBlind, want, errSees)
			}
		}
	}
	class := f.gulls[0].WireClass()
	if sees.Len(class) != 100 || blind.Len(class) != 0 || blind.Tick() != f.tick {
		t.Errorf("it has %d objects at tick %d, the one that sees %d at %d", blind.Len(class), blind.Tick(), sees.Len(class), f.tick)
	}
	q := newPair(t, 0)
	q.spawnHoard(q.w, hoard{Gold: 1, Loot: list4k()}, 1)
	q.r.Blind()
	if id := q.apply(q.sent()); id != 1 || q.r.Len(q.r.Table().Classes()[0]) != 0 {
		t.Errorf("of a record of the stream it acknowledges %d", id)
	}
}
