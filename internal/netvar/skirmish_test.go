package netvar

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
	"unsafe"

	"github.com/netloop/netloop/internal/netvar/state"
)

// vessel, boulder and beam are the objects of the arena in package examples/arena.
type vessel struct {
	X, Y    float32 `net:"quant=1/32"`
	VX, VY  float32 `net:"quant=1/64,read=owner"`
	Heading float32 `net:"quant=1/256"`
	Thrust  bool
	Turn    int8
	Reload  uint64 `net:"read=owner"`
	Hull    uint8
	Score   int32
}

type boulder struct {
	X, Y   float32 `net:"quant=1/8"`
	Radius uint8
}

type beam struct {
	X, Y    float32 `net:"quant=1/32"`
	Heading float32 `net:"quant=1/256"`
	Born    uint64  `net:"read=owner"`
}

// skirmish is a world of 100 boulders and of ships that each belong to a client. All of them move
// in every tick, and sometimes a ship fires. Acknowledgements arrive one to three ticks later, as
// on a short link with client frames at any time between two ticks.
type skirmish struct {
	w          *World
	random     *rand.Rand
	ships      []*state.Object
	turns      []int8
	boulders   []*state.Object
	beams      []*state.Object
	beam       *state.Class
	clients    []fleetClient
	tick       uint64
	encode, of time.Duration // of snapshots, and of all replication
}

func newSkirmish(tb testing.TB, clients int) *skirmish {
	ships, rocks, shots := classOf[vessel](tb, "ship"), classOf[boulder](tb, "boulder"), classOf[beam](tb, "beam")
	s := &skirmish{w: NewWorld(state.NewTable(ships, rocks, shots)), random: rand.New(rand.NewPCG(7, 7)), beam: shots, tick: 1000}
	s.w.SetReaders(ships, ownersRead{})
	s.w.SetReaders(shots, ownersRead{})
	for range 100 {
		s.boulders = append(s.boulders, s.w.Spawn(rocks, unsafe.Pointer(&boulder{X: s.place(), Y: s.place(), Radius: 9}), 0, s.tick))
	}
	for i := range clients {
		s.clients = append(s.clients, fleetClient{peer: s.w.NewPeer(s.tick)})
		s.clients[i].peer.Handle = i
		s.ships = append(s.ships, s.w.Spawn(ships, unsafe.Pointer(&vessel{X: s.place(), Y: s.place(), Hull: 3}), uint64(1+i), s.tick))
		s.turns = append(s.turns, 0)
	}
	for range 2 * state.Horizon {
		s.step()
	}
	return s
}

func (s *skirmish) place() float32 { return s.random.Float32() * 4096 }

// step is one tick.
func (s *skirmish) step() {
	s.tick++
	s.fly()
	s.fire()
	start := time.Now()
	for i := range s.clients {
		c := &s.clients[i]
		late := 1 + (uint64(i)+s.tick/16)%2
		if (uint64(i)+s.tick)%40 == 0 {
			late = 3
		}
		if sent := c.sent[(s.tick-late)%uint64(len(c.sent))]; sent.First > 0 {
			c.peer.Ack([]Range{sent})
		}
	}
	s.w.Capture(s.tick)
	captured := time.Now()
	for i := range s.clients {
		c := &s.clients[i]
		var first uint64
		c.packets, first = c.peer.AppendSnapshot(c.packets[:0], s.tick, wide)
		c.sent[s.tick%uint64(len(c.sent))] = Range{first, first + uint64(len(c.packets)) - 1}
	}
	s.encode += time.Since(captured)
	s.of += time.Since(start)
}

// fly moves all objects. Ships turn ten times a second.
func (s *skirmish) fly() {
	const dt = 1.0 / 60
	for i, o := range s.ships {
		s.w.Edit(o)
		v := live[vessel](o)
		if (uint64(i)+s.tick)%6 == 0 {
			s.turns[i] = int8(s.random.IntN(3) - 1)
			v.Thrust = s.random.IntN(4) > 0
		}
		v.Turn = s.turns[i]
		v.Heading = float32(math.Mod(float64(v.Heading)+float64(v.Turn)*3*dt+2*math.Pi, 2*math.Pi))
		if v.Thrust {
			sin, cos := math.Sincos(float64(v.Heading))
			v.VX += float32(cos) * 220 * dt
			v.VY += float32(sin) * 220 * dt
		}
		v.VX -= v.VX * 0.6 * dt
		v.VY -= v.VY * 0.6 * dt
		v.X, v.Y = v.X+v.VX*dt, v.Y+v.VY*dt
	}
	for i, o := range s.boulders {
		s.w.Edit(o)
		b := live[boulder](o)
		b.X += float32(i%80-40) * dt
		b.Y += float32(i%70-35) * dt
	}
}

// fire makes a ship fire every other tick, and removes beams twelve ticks later.
func (s *skirmish) fire() {
	if s.tick&1 != 0 {
		return
	}
	from := live[vessel](s.ships[s.random.IntN(len(s.ships))])
	s.beams = append(s.beams, s.w.Spawn(s.beam, unsafe.Pointer(&beam{X: from.X, Y: from.Y, Heading: from.Heading, Born: s.tick}), 1, s.tick))
	if len(s.beams) > 6 {
		s.w.Despawn(s.beams[0])
		s.beams = s.beams[1:]
	}
}

// BenchmarkSkirmish: 200 players with a ship each, and all objects are visible to all.
func BenchmarkSkirmish(b *testing.B) {
	s := newSkirmish(b, 200)
	s.encode, s.of = 0, 0
	before := *s.w.Stats()
	b.ReportAllocs()
	for b.Loop() {
		s.step()
	}
	n := float64(b.N) * float64(len(s.clients))
	b.ReportMetric(float64(s.encode.Nanoseconds())/n, "encode-ns/client")
	b.ReportMetric(float64(s.of.Nanoseconds())/n, "ns/client")
	b.ReportMetric(float64(s.w.Stats().Bytes-before.Bytes)/n, "B/client")
}
