package netvar

import (
	"bytes"
	"fmt"
	"testing"
	"unsafe"

	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/netvar/replica"
	"github.com/netloop/netloop/internal/netvar/state"
	"github.com/netloop/netloop/internal/wire"
)

// scene is a replica with some state and the packets of the next tick, from which a fuzzer reaches
// deltas.
func scene(tb testing.TB) (s schema, r *replica.Replica, next [][]byte) {
	s = newSchema(tb)
	r = replica.New(s.table)
	return s, r, s.play(tb, r)
}

// play fills a replica and returns the packets of the next tick.
func (s schema) play(tb testing.TB, r *replica.Replica) (next [][]byte) {
	w := NewWorld(s.table)
	p := w.NewPeer(50)
	a := s.spawnShip(w, ship{Name: "a", Bag: []item{{"x", 1}}}, 1, 50)
	b := s.spawnRock(w, rock{X: 5}, 50)
	c := s.spawnRock(w, rock{X: 6}, 50)
	for tick := uint64(50); tick < 53; tick++ {
		w.Edit(a)
		live[ship](a).X++
		w.Edit(b)
		live[rock](b).Big = !live[rock](b).Big
		w.Capture(tick)
		packets, _ := snap(p, tick, wide)
		mustApply(tb, r, p, packets...)
	}
	r.Events()
	w.Edit(a)
	live[ship](a).Name, live[ship](a).Bag = "b", nil
	w.Edit(b)
	live[rock](b).Y--
	w.Despawn(c)
	w.SetOwner(b, 9)
	s.spawnShip(w, ship{Angle: 1}, 3, 53)
	p.RequestDigest(1)
	w.Capture(53)
	next, _ = snap(p, 53, wide)
	return next
}

// picture is the state that a rejected packet must not change.
func picture(r *replica.Replica) []byte {
	var b []byte
	for i, o := range r.Objects().Slots {
		if o == nil {
			continue
		}
		b = wire.AppendUvarint(b, uint64(i))
		b = wire.AppendUvarint(b, uint64(o.ID()))
		b = wire.AppendUvarint(b, o.Life)
		b = wire.AppendBytes(b, r.Mask(i))
		for j := range o.Hist.Len() {
			v := o.Hist.Values(j)
			b = wire.AppendUvarint(b, o.Hist.Tick(j))
			b = o.Plan().AppendValues(wire.AppendUvarint(b, o.WireClass().Owner(&v)), &v)
		}
		live, _ := o.Plan().Append(nil, o.Live())
		b = append(b, live...)
	}
	return append(b, fmt.Sprint(r.Tick())...)
}

// With any bytes: no panic; an error changes no state; after success live values agree with stored
// versions, and events form pairs.
func FuzzReplicaApply(f *testing.F) {
	_, _, next := scene(f)
	for _, b := range next {
		f.Add(b, uint16(0), byte(0))
		f.Add(b, uint16(9), byte(0x41))
		f.Add(b[:len(b)-1], uint16(0), byte(0))
	}
	f.Add([]byte{1, 0, 0, 1, 60, 0, 0, 0, 9, 3, 3, 3}, uint16(0), byte(0))
	f.Fuzz(func(t *testing.T, b []byte, at uint16, flip byte) {
		_, r, _ := scene(t)
		b = bytes.Clone(b)
		if int(at) < len(b) { // mutations of valid packets
			b[at] ^= flip
		}
		before := picture(r)
		living := len(ids(r))
		a, err := r.Apply(b)
		if (err != nil || !a.Ack) && (!bytes.Equal(before, picture(r)) || len(r.Events()) != 0) {
			t.Fatalf("refused or discarded, but something changed: %+v %v", a, err)
		}
		mustPair(r, t, living)
		for _, o := range r.Objects().Slots {
			if o == nil {
				continue
			}
			v, newest := captured(o), o.Hist.Newest()
			// Rocks have integers, so the comparison is exact.
			if o.WireClass() == r.Table().Classes()[1] && !o.Plan().Equal(&v, &newest) {
				t.Fatalf("live %v, newest version %v", v, newest)
			}
		}
		mustCount(t, r)
		after := picture(r)
		if again, err := r.Apply(b); err == nil && again.Ack && !bytes.Equal(after, picture(r)) {
			t.Fatal("the same packet had an effect twice")
		}
	})
}

func ids(r *replica.Replica) (ids []state.ID) {
	for _, c := range r.Table().Classes() {
		for o := range r.All(c) {
			ids = append(ids, o.ID())
		}
	}
	return ids
}

func captured(o *state.Object) codec.Values {
	v := codec.Values{Words: make([]uint64, o.WireClass().Words()), Blobs: make([][]byte, o.Plan().Blobs())}
	o.Plan().Capture(o.Live(), &v)
	return v
}

// With any ranges in any order: no panic, bounded work, and consistent entries. Pending slots are
// not lost: honest acknowledgements afterwards settle them all.
func FuzzPeerAck(f *testing.F) {
	f.Add([]byte{1, 2, 3, 3, 255, 0, 7, 9})
	f.Add([]byte{9, 1, 5, 5, 5, 5, 1, 9})
	f.Add([]byte{128, 255, 0, 0, 20, 30, 10, 40})
	f.Fuzz(func(t *testing.T, in []byte) {
		in = in[:min(len(in), 2000)] // a thousand ticks reach all code
		s := newSchema(t)
		w := NewWorld(s.table)
		p := w.NewPeer(1)
		var objects []*state.Object
		for i := range 5 {
			objects = append(objects, s.spawnRock(w, rock{X: int32(i)}, 1))
		}
		tick := uint64(0)
		for len(in) >= 2 {
			tick++
			o := objects[int(tick)%len(objects)]
			if w.Edit(o); o.Alive() {
				live[rock](o).X++
			}
			if in[0]%16 == 0 {
				w.Despawn(o)
				objects[int(tick)%len(objects)] = w.Spawn(s.rock, unsafe.Pointer(&rock{}), 0, tick)
			}
			w.Capture(tick)
			snap(p, tick, Limit{Packets: 2, PacketSize: 60})
			ranges := []Range{{uint64(in[0]), uint64(in[1])}, {uint64(in[1]) / 2, uint64(in[0])}}
			if in[0] == 255 {
				ranges[0].Last = ^uint64(0)
			}
			p.Ack(ranges)
			in = in[2:]
		}
		for range 20 { // honest again
			tick++
			w.Capture(tick)
			packets, first := snap(p, tick, wide)
			last := first + uint64(len(packets)) - 1
			p.Ack([]Range{{first, last}})
		}
		if p.pending.Count() != 0 || p.sentTwice.Count() != 0 || p.flight.oldest != p.flight.next {
			t.Fatalf("owed %v, waiting %v, in flight %d", p.pending, p.sentTwice, p.flight.next-p.flight.oldest)
		}
		for slot := range p.entries {
			e := p.detailed(slot)
			if e.phase == shown && e.base != w.objects.Slots[slot].Changed() || e.phase == ended {
				t.Fatalf("slot %d: %+v", slot, *e)
			}
		}
	})
}

// mustPair checks that the events lead from so many living objects to the present ones.
func mustPair(r *replica.Replica, t *testing.T, living int) {
	t.Helper()
	for _, e := range r.Events() {
		switch e.Kind {
		case replica.Spawn:
			living++
		case replica.Despawn:
			living--
		case replica.Change:
			if e.Old == nil {
				t.Fatal("change without the old value")
			}
		}
	}
	if n := len(ids(r)); n != living {
		t.Fatalf("%d objects, %d by events", n, living)
	}
}
