package netvar

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"testing"
)

// plainScene is a pair of readers in the middle of things, and the packets of the next ticks.
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
				scramble(m.rng, reflect.NewAt(o.class.Type(), o.Live()).Elem())
			}
		}
		if m.tick == 107 {
			m.w.Despawn(m.objects[2])
			m.objects = m.objects[:2]
		}
		m.w.Capture(m.tick)
		packets, _ := snap(p, m.tick, Limit{Packets: 2, PacketSize: MaxPacket})
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

// Any bytes: both readers take them, or neither does, and then both have the same.
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
