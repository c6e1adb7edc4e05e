package netvar

import (
	"reflect"
	"slices"
	"testing"

	"github.com/netloop/netloop/internal/netvar/state"
)

// Explain reports each step of a change from its capture to its acknowledgement.
func TestExplainFollowsAChange(t *testing.T) {
	q := newPair(t, 0)
	const owner, x, y = 0, 1, 2
	var o *state.Object
	capture := func() { q.tick++; q.w.Capture(q.tick) }
	for i, step := range []struct {
		do    func()
		field int
		want  Explanation
	}{
		{func() { o = q.spawnRock(q.w, rock{}, 1) }, x, Explanation{Why: WhyNew}},
		{func() { q.next() }, x, Explanation{Why: WhySent, Tick: 1, Changed: 1, Visible: 1, Sent: 1, Version: 1, Copies: 1, Packets: []uint64{1}}},
		{capture, x, Explanation{Why: WhyInFlight, Tick: 2, Changed: 1, Visible: 1, Sent: 1, Version: 1, Copies: 1, Packets: []uint64{1}}},
		{func() { snap(q.p, q.tick, wide) }, x, Explanation{Why: WhySent, Tick: 2, Changed: 1, Visible: 1, Sent: 2, Version: 1, Copies: 2, Packets: []uint64{1, 2}}},
		{capture, x, Explanation{Why: WhyInFlight, Tick: 3, Changed: 1, Visible: 1, Sent: 2, Version: 1, Copies: 2, Packets: []uint64{1, 2}}},
		{func() { q.p.Ack([]Range{{2, 2}}) }, x, Explanation{Why: WhyUnedited, Tick: 3, Changed: 1, Visible: 1, Baseline: 1, Sent: 2, Version: 1}},
		{func() { q.edit(o); capture() }, x, Explanation{Why: WhyUnchanged, Tick: 4, Changed: 1, Visible: 1, Baseline: 1, Sent: 2, Version: 1}},
		{func() { q.edit(o).Y = 1; capture() }, y, Explanation{Why: WhyNoSnapshot, Tick: 5, Changed: 5, Visible: 1, Baseline: 1, Sent: 2, Version: 1}},
		{func() {}, x, Explanation{Why: WhyUnchanged, Tick: 5, Changed: 1, Visible: 1, Baseline: 1, Sent: 2, Version: 1}},
		{func() { live[rock](o).X = 1 }, x, Explanation{Why: WhyUnnoticed, Tick: 5, Changed: 1, Visible: 1, Baseline: 1, Sent: 2, Version: 1}},
		{func() { live[rock](o).X = 0; snap(q.p, q.tick, wide) }, y, Explanation{Why: WhySent, Tick: 5, Changed: 5, Visible: 1, Baseline: 1, Sent: 5, Version: 5, Copies: 1, Packets: []uint64{3}}},
		{func() { q.p.Ack([]Range{{3, 3}}) }, y, Explanation{Why: WhyUnchanged, Tick: 5, Changed: 5, Visible: 1, Baseline: 5, Sent: 5, Version: 5}},
		{capture, y, Explanation{Why: WhyAcked, Tick: 6, Changed: 5, Visible: 1, Baseline: 5, Sent: 5, Version: 5}},
		{func() { q.w.SetOwner(o, 5); q.next() }, owner, Explanation{Why: WhySent, Tick: 7, Changed: 7, Visible: 1, Baseline: 5, Sent: 7, Version: 7, Copies: 1, Packets: []uint64{4}}},
		{func() { q.edit(o).Y = 2; q.next() }, owner, Explanation{Why: WhySent, Tick: 8, Changed: 7, Visible: 1, Baseline: 5, Sent: 8, Version: 8, Copies: 1, Packets: []uint64{5}}},
		{func() {}, y, Explanation{Why: WhySent, Tick: 8, Changed: 8, Visible: 1, Baseline: 5, Sent: 8, Version: 8, Copies: 1, Packets: []uint64{5}}},
		{func() { q.next(); q.next() }, y, Explanation{Why: WhyInFlight, Tick: 10, Changed: 8, Visible: 1, Baseline: 5, Sent: 9, Version: 8, Copies: 2, Packets: []uint64{5, 6}}},
		{func() { q.p.Ack([]Range{{7, 7}}); q.edit(o).Y = 3; q.next() }, y, Explanation{Why: WhySent, Tick: 11, Changed: 11, Visible: 1, Baseline: 5, Sent: 11, Version: 11, Copies: 1, Packets: []uint64{8}}},
		{func() { q.edit(o).X = 3; q.next() }, y, Explanation{Why: WhySent, Tick: 12, Changed: 11, Visible: 1, Baseline: 5, Sent: 12, Version: 12, Copies: 1, Packets: []uint64{9}}},
		{func() { q.w.Despawn(o) }, x, Explanation{Why: WhyGone, Tick: 12, Changed: 12}},
	} {
		step.do()
		got := q.w.Explain(q.p, o, step.field)
		if !reflect.DeepEqual(got, step.want) {
			t.Errorf("step %d: %+v, want %+v", i, got, step.want)
		}
	}
}

// The packets that carry an object are those with a record of its slot, not of a neighbour.
func TestPacketsThatCarryAnObject(t *testing.T) {
	r := sentRecord{block: 1, mask: 1<<3 | 1<<5}
	for slot, want := range map[int]bool{64 + 3: true, 64 + 5: true, 64 + 4: false, 3: false, 128 + 3: false} {
		if got := r.covers(slot); got != want {
			t.Errorf("records of slots 67 and 69 cover slot %d: %v", slot, got)
		}
	}
}

// A lost record is reported for the next snapshot. It is not reported as shed in a world that does
// not shed, although it has a low weight and was sent in this tick.
func TestLostRecordsAreNotShed(t *testing.T) {
	q := newPair(t, 0)
	q.w.SetClassWeight(q.schema.rock, 0.5, 100)
	o := q.spawnRock(q.w, rock{}, 1)
	q.deliver()
	q.edit(o).X++
	q.next()
	q.next()
	_, last := q.next() // two copies are in flight, so this packet has no record
	q.p.Ack([]Range{{last, last}})
	if got := q.w.Explain(q.p, o, 1); got.Why != WhyNext {
		t.Errorf("%+v, want why %d", got, WhyNext)
	}
	q.w.Shed(100)
	if got := q.w.Explain(q.p, o, 1); got.Why != WhyShed {
		t.Errorf("%+v, want why %d", got, WhyShed)
	}
}

// A name selects a field, or all fields in a struct or an array; the empty name selects all fields.
func TestNamesMeanFields(t *testing.T) {
	c := classOf[agent](t, "agent")
	for name, want := range map[string][]int{
		"(owner)": {0}, "X": {1}, "Heat": {2}, "Hea": nil, "Gear": {5, 6, 7, 8, 9}, "Gear.Spot": {8, 9}, "Gear.Spot[1]": {9},
		"Take": {11}, "Gear.": nil, "": {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11},
	} {
		if got := c.FieldsNamed(name); !slices.Equal(got, want) {
			t.Errorf("%q means the fields %v, want %v", name, got, want)
		}
	}
}

// ParseID reads the format of ID.String only.
func TestIDsAreReadAsTheyAreWritten(t *testing.T) {
	for _, id := range []state.ID{state.MakeID(0, 1), state.MakeID(1<<16-1, 1<<32-1), state.MakeID(12, 10)} {
		if got, ok := state.ParseID(id.String()); !ok || got != id {
			t.Errorf("%v is read as %v, %v", id, got, ok)
		}
	}
	if got := state.MakeID(12, 10).String(); got != "12.10" {
		t.Errorf("slot 12, lifetime 10 is %s", got)
	}
	for _, text := range []string{"", "1", ".", "1.", ".1", "65536.1", "1.4294967296", "0x1.1", "1.0x1", "-1.1", "1.1.1", "010.1x"} {
		if _, ok := state.ParseID(text); ok {
			t.Errorf("%q is an id", text)
		}
	}
}
