package netvar

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"unsafe"

	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/netvar/packet"
	"github.com/netloop/netloop/internal/netvar/replica"
	"github.com/netloop/netloop/internal/netvar/state"
)

// Helpers of the tests: two classes, a lossy link, and a client that acknowledges over it.

type item struct {
	Name  string `net:"max=8"`
	Count uint8
}

type ship struct {
	X, Y  float32 `net:"quant=1/256"`
	Angle float32
	Armed bool
	Name  string `net:"max=12,weight=8"`
	Bag   []item `net:"max=4,weight=1/4"`
	Foe   codec.Ref
	Until codec.Instant
	Local int `net:"-"`
}

type rock struct {
	X, Y int32
	Spin int16
	Big  bool
}

// hoard is a class of values that may not fit a packet.
type hoard struct {
	Gold uint16
	Loot []loot `net:"max=1000"`
}

type loot struct {
	ID   uint32
	Kind uint8
}

type schema struct {
	table             *state.Table
	ship, rock, hoard *state.Class
	agent             *state.Class // only in model tests
}

func newSchema(tb testing.TB) schema {
	tb.Helper()
	return schema{ship: classOf[ship](tb, "ship"), rock: classOf[rock](tb, "rock"), hoard: classOf[hoard](tb, "hoard")}.finish()
}

func (s schema) finish() schema {
	if s.hoard == nil {
		s.table = state.NewTable(s.ship, s.rock)
	} else {
		s.table = state.NewTable(s.ship, s.rock, s.hoard)
	}
	return s
}

func classOf[T any](tb testing.TB, name string) *state.Class {
	tb.Helper()
	c, err := state.NewClass(name, reflect.TypeFor[T]())
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

func live[T any](o *state.Object) *T { return (*T)(o.Live()) }

func (s schema) spawnRock(w *World, r rock, tick uint64) *state.Object {
	return w.Spawn(s.rock, unsafe.Pointer(&r), 0, tick)
}

func (s schema) spawnHoard(w *World, h hoard, tick uint64) *state.Object {
	return w.Spawn(s.hoard, unsafe.Pointer(&h), 0, tick)
}

func (s schema) spawnShip(w *World, v ship, owner, tick uint64) *state.Object {
	return w.Spawn(s.ship, unsafe.Pointer(&v), owner, tick)
}

var wide = Limit{Packets: 10, PacketSize: packet.MaxSize, Reliable: true}

// snap returns fresh packets of one snapshot, so that a test may keep them.
func snap(p *Peer, tick uint64, lim Limit) ([][]byte, uint64) {
	return p.AppendSnapshot(nil, tick, lim)
}

// mustApply applies packets and acknowledges those that ask for it.
func mustApply(tb testing.TB, r *replica.Replica, p *Peer, packets ...[]byte) {
	tb.Helper()
	for _, b := range packets {
		a, err := r.Apply(b)
		if err != nil {
			tb.Fatalf("packet refused: %v", err)
		}
		if a.Ack && p != nil {
			p.Ack([]Range{{a.Packet, a.Packet}})
		}
	}
}

// lossy is one direction of a link: it loses, repeats and reorders.
type lossy struct {
	rng            *rand.Rand
	loss, dup      float64
	delay, jitter  int // ticks
	queue          []parcel
	lost, repeated int
}

type parcel struct {
	due   uint64
	bytes []byte
	acks  []Range
	id    uint64
	tick  uint64
}

func (l *lossy) send(now uint64, p parcel) {
	copies := 1
	if l.rng.Float64() < l.dup {
		copies = 2
		l.repeated++
	}
	for range copies {
		if l.rng.Float64() < l.loss {
			l.lost++
			continue
		}
		p.due = now + uint64(l.delay)
		if l.jitter > 0 {
			p.due += uint64(l.rng.IntN(l.jitter + 1))
		}
		l.queue = append(l.queue, p)
	}
}

// receive returns the due parcels, in random order.
func (l *lossy) receive(now uint64) (due []parcel) {
	rest := l.queue[:0]
	for _, p := range l.queue {
		if p.due <= now {
			due = append(due, p)
		} else {
			rest = append(rest, p)
		}
	}
	l.queue = rest
	if l.jitter > 0 {
		l.rng.Shuffle(len(due), func(i, j int) { due[i], due[j] = due[j], due[i] })
	}
	return due
}

func newShip(s *ship) unsafe.Pointer { return unsafe.Pointer(s) }

// pipe is one direction of a stream: late, but in order and without losses.
type pipe struct {
	rng   *rand.Rand
	late  int // ticks, at most
	queue []parcel
	last  uint64
}

func (l *pipe) send(now uint64, p parcel) {
	l.last = max(l.last, now+uint64(l.rng.IntN(l.late+1)))
	p.due = l.last
	l.queue = append(l.queue, p)
}

func (l *pipe) receive(now uint64) (due []parcel) {
	n := 0
	for n < len(l.queue) && l.queue[n].due <= now {
		n++
	}
	due, l.queue = l.queue[:n], l.queue[n:]
	return due
}

// heal ends delays and losses: all parcels arrive now.
func (l *pipe) heal(now uint64) {
	l.late, l.last = 1, now
	for i := range l.queue {
		l.queue[i].due = now
	}
}
