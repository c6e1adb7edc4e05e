package netvar

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/netloop/netloop/internal/netvar/packet"
	"github.com/netloop/netloop/internal/testing/refdecoder"
)

// plainScene is a pair of readers with some state, and the packets of the next ticks.
func plainScene(tb testing.TB) (pair *plainPair, next [][]byte) {
	var tally plainTally
	m := newPlainModel(tb, 1, false, &tally)
	m.tick, m.objects, m.clients, m.w = 100, nil, nil, NewWorld(m.table)
	for _, c := range m.table.Classes() {
		if len(c.Rules()) > 0 {
			m.w.SetReaders(c, m)
		}
	}
	m.rng = rand.New(rand.NewPCG(1, 2))
	for i, c := range m.table.Classes() {
		v := reflect.New(c.Type())
		for range 6 {
			scramble(m.rng, v.Elem())
		}
		o := m.w.Spawn(c, v.UnsafePointer(), uint64(i%2), m.tick+1)
		m.objects = append(m.objects, o)
	}
	p := m.w.NewPeer(m.tick + 1)
	p.Handle = 0
	pair = newPlainPair(m.table, m.classes, m.tick)
	for range 8 {
		m.tick++
		for i, o := range m.objects {
			m.w.Edit(o)
			if i == 0 {
				live[drifter](o).drift(1, m.tick)
			} else {
				scramble(m.rng, reflect.NewAt(o.WireClass().Type(), o.Live()).Elem())
			}
		}
		if m.tick == 107 {
			m.w.Despawn(m.objects[2])
			m.objects = m.objects[:2]
		}
		m.w.Capture(m.tick)
		packets, _ := snap(p, m.tick, Limit{Packets: 2, PacketSize: packet.MaxSize})
		if m.tick > 105 {
			next = append(next, packets...)
			continue
		}
		for _, b := range packets {
			a, _, err := pair.apply(b)
			if err != nil {
				tb.Fatal(err)
			}
			p.Ack([]Range{{a.Packet, a.Packet}})
		}
	}
	return pair, next
}

// With any bytes both readers accept a packet, or neither does, and then both have the same state.
func FuzzPlainReaderAgrees(f *testing.F) {
	_, next := plainScene(f)
	for _, b := range next {
		f.Add(b, uint16(0), byte(0))
		f.Add(b, uint16(12), byte(0x10))
	}
	f.Fuzz(func(t *testing.T, b []byte, at uint16, flip byte) {
		pair, next := plainScene(t)
		b = bytes.Clone(b)
		if int(at) < len(b) {
			b[at] ^= flip
		}
		pair.taken = true
		if _, _, err := pair.apply(b); err != nil {
			t.Fatal(err)
		}
		for _, b := range next {
			if _, _, err := pair.apply(b); err != nil {
				t.Fatal("afterwards:", err)
			}
		}
	})
}

// spoil damages a copy of a packet for a reader.
func (m *plainModel) spoil(b []byte, r *refdecoder.Reader) []byte {
	b = bytes.Clone(b)
	if r != nil && m.rng.IntN(2) == 0 {
		b = b[:min(len(b), 8+m.rng.IntN(30))]
		for ones := m.rng.IntN(3); len(b) < 300; {
			some := byte(m.rng.IntN(256))
			if ones == 0 {
				some &= byte(m.rng.IntN(256))
			} else if ones == 1 {
				some |= byte(m.rng.IntN(256))
			}
			b = append(b, some)
		}
		if cut := r.Cut(b, 1+m.rng.IntN(3)); cut != nil {
			return cut
		}
	}
	for range 1 + m.rng.IntN(2) {
		at := m.rng.IntN(len(b))
		if m.rng.IntN(4) > 0 { // the records are more interesting than the header
			at = max(at, min(9, len(b)-1))
		}
		switch m.rng.IntN(6) {
		case 0:
			b = b[:at+1]
		case 1:
			b = append(b[:at:at], b[at+1:]...)
			if len(b) == 0 {
				b = []byte{2}
			}
		case 2:
			b = append(b, byte(m.rng.IntN(256)))
		case 3:
			b[at] = []byte{0, 1, 0x7f, 0x80, 0xff, b[at] + 1}[m.rng.IntN(6)]
		default:
			b[at] ^= 1 << m.rng.IntN(8)
		}
	}
	return b
}
