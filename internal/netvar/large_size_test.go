package netvar

import "testing"

// A small change of a large value costs the encoding of that change, not that of the value.
func TestSmallChangesOfLargeValuesAreAllThatIsEncoded(t *testing.T) {
	q := newPair(t, 0)
	o := q.spawnHoard(q.w, hoard{Loot: list4k()}, 1)
	q.deliver()
	q.streamed()
	q.w.stats = Stats{}
	for i := range 20 {
		q.editHoard(o).Gold = uint16(i + 1)
		q.deliver()
	}
	if s := &q.w.stats; s.Encoded != 20 || s.Deltas != 20 {
		t.Errorf("for %d changes %d differences were encoded", s.Deltas, s.Encoded)
	}
	q.editHoard(o).Loot = nil // and then all of it, which is more than a packet again
	q.deliver()
	q.editHoard(o).Loot = list4k()
	q.w.stats = Stats{}
	q.deliver()
	if s := &q.w.stats; s.Encoded != 2 || s.Large != 1 || s.FullLarge != 1 {
		t.Errorf("%d were encoded for %d large records", s.Encoded, s.Large)
	}
}

// What has exactly the room that a packet leaves is not large, and one bit more is: of the
// difference where there is one, although all of the value may take less.
func TestLargeIsWhatHasNoRoom(t *testing.T) {
	q := newPair(t, 0)
	o := q.spawnHoard(q.w, hoard{Gold: 60_000, Loot: list4k()}, 1)
	q.deliver()
	q.streamed()
	h := q.editHoard(o)
	h.Gold = 0
	for i := range h.Loot {
		h.Loot[i] = loot{ID: uint32(i), Kind: 1}
	}
	q.tick++
	q.w.Capture(q.tick)
	c, e := &q.p.cut, q.p.detailed(0)
	full, base := int(q.w.residual(o, basis{}).n), e.base
	delta := int(q.w.residual(o, basis{asOf: base, exact: true}).n)
	if delta <= full {
		t.Fatalf("the difference takes %d bits, all of it %d", delta, full)
	}
	c.origin = origin{}
	for _, size := range []int{full, delta} {
		for _, room := range []int{size - 1, size, size + 1} {
			e.base = base
			if size == full {
				e.base = 0
			}
			c.room = room + 8*(maxHeader+maxRecordHead)
			n := candidate{version: o.changed}
			if c.findLarge(&n, o, e); n.large != (room < size) {
				t.Errorf("%d bits in a room of %d, version %d acknowledged: large is %v", size, room, e.base, n.large)
			}
			if n.large && n.size != uint32(8*maxLargeHead+full) {
				t.Errorf("it is to take %d bits, want those of all of it, %d", n.size, full)
			}
		}
	}
}
