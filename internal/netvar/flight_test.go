package netvar

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// plainFlight is a map of packets by id, with those that are pending.
type plainFlight struct {
	packets map[uint64]sentPacket
	next    uint64
	most    uint64 // maximum of ids from the oldest pending one to the next
}

func (l *plainFlight) oldest() uint64 {
	for id := uint64(1); id < l.next; id++ {
		if l.packets[id].inFlight {
			return id
		}
	}
	return l.next
}

func (l *plainFlight) decided(id uint64) { l.packets[id] = sentPacket{tick: l.packets[id].tick} }

// The ring keeps all pending packets with their records, doubles its length when it is full, and
// reuses the memory of decided packets.
func TestFlightAgreesWithAPlainList(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 9))
		f, l, lists := newFlight(), plainFlight{packets: map[uint64]sentPacket{}, next: 1}, 0
		for round := range 600 {
			pending := f.next - l.oldest()
			switch what := rng.IntN(100); {
			case what == 0:
				f.drop()
				for id := l.oldest(); id < l.next; id++ {
					l.decided(id)
				}
			case what < 52 && pending < 70:
				if len(f.spare) == 0 {
					lists++
				}
				s := f.add(uint64(round))
				version := 7 + rng.Uint64N(2)
				s.note(uint32(round), 1<<(round&63), version)
				s.note(uint32(round|1), 1<<(round&63|1), version)
				s.note(uint32(round), 1, version+2)
				s.note(uint32(round)+64, 1, version+2)
				block := uint32(round) >> 6
				l.packets[l.next] = sentPacket{tick: uint64(round), inFlight: true, records: []sentRecord{
					{version, 1<<(round&63) | 1<<(round&63|1), block}, {version + 2, 1, block}, {version + 2, 1, block + 1},
				}}
				l.next++
				l.most = max(l.most, pending+1)
			case pending > 0:
				id := l.oldest() + rng.Uint64N(pending)
				if s := f.packet(id); s.inFlight {
					s.got = true
					f.decided(s)
					l.decided(id)
				}
			}
			f.mustBe(t, seed, &l, lists)
		}
	}
}

func (f *flight) mustBe(t *testing.T, seed uint64, l *plainFlight, lists int) {
	t.Helper()
	if f.oldest != l.oldest() || f.next != l.next {
		t.Fatalf("seed %d: packets from %d to before %d, want from %d to before %d", seed, f.oldest, f.next, l.oldest(), l.next)
	}
	room := 16
	for ; room < int(l.most); room *= 2 {
	}
	if len(f.ring) != room {
		t.Fatalf("seed %d: room for %d packets, want %d for %d", seed, len(f.ring), room, l.most)
	}
	kept := len(f.spare)
	for id := f.oldest; id < f.next; id++ {
		s, want := f.packet(id), l.packets[id]
		if s.tick != want.tick || s.inFlight != want.inFlight || s.got || !slices.Equal(s.records, want.records) {
			t.Fatalf("seed %d: packet %d is %+v, want %+v", seed, id, s, want)
		}
		if s.records != nil {
			kept++
		}
	}
	if kept != lists {
		t.Fatalf("seed %d: of %d lists of records %d are kept", seed, lists, kept)
	}
}

// Ranges are processed as far as they name packets in flight, and no further than the number of
// packets in flight. Other ids are counted once for each range.
func TestRangesNamePacketsInFlight(t *testing.T) {
	type counts struct{ acked, lost, unknown, stale, overlapped, oldest uint64 }
	for _, c := range []struct {
		ranges []Range
		want   counts
	}{
		{nil, counts{0, 0, 0, 0, 0, 3}},
		{[]Range{{3, 6}}, counts{4, 0, 0, 0, 0, 7}},
		{[]Range{{6, 6}}, counts{1, 3, 0, 0, 0, 7}},
		{[]Range{{3, 3}}, counts{1, 0, 0, 0, 0, 4}},
		{[]Range{{4, 4}, {6, 6}}, counts{2, 2, 0, 0, 0, 7}},
		{[]Range{{6, 6}, {4, 4}}, counts{2, 2, 0, 0, 0, 7}},
		{[]Range{{1, 2}}, counts{0, 0, 0, 1, 0, 3}},
		{[]Range{{2, 3}}, counts{1, 0, 0, 0, 0, 4}},
		{[]Range{{6, 7}}, counts{1, 3, 1, 0, 0, 7}},
		{[]Range{{7, 7}}, counts{0, 0, 1, 1, 0, 3}},
		{[]Range{{0, 3}}, counts{1, 0, 1, 0, 0, 4}},
		{[]Range{{5, 4}}, counts{0, 0, 1, 1, 0, 3}},
		{[]Range{{3, 5}, {4, 4}, {6, 6}}, counts{3, 0, 0, 0, 1, 6}},
		{[]Range{{3, 6}, {3, 3}}, counts{4, 0, 0, 0, 1, 7}},
		{[]Range{{3, 4}, {4, 6}}, counts{2, 0, 0, 0, 1, 5}},
		{[]Range{{3, 3}, {1, 2}, {4, 4}}, counts{2, 0, 0, 1, 0, 5}},
	} {
		q := newPair(t, 0)
		for range 2 {
			q.deliver()
		}
		for range 4 {
			q.next()
		}
		before := q.w.stats
		q.p.Ack(c.ranges)
		s := q.w.stats
		got := counts{s.Acked - before.Acked, s.Lost - before.Lost, s.AckUnknown, s.AckStale, s.AckOverlapped, q.p.flight.oldest}
		if got != c.want {
			t.Errorf("%v: %+v, want %+v", c.ranges, got, c.want)
		}
	}
}
