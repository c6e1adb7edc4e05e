package netvar

import (
	"slices"
	"testing"
	"unsafe"

	"github.com/netloop/netloop/internal/netvar/state"
)

// Readers.Ask is called once for an object, before Withheld is called for its clients.
func TestAskPrecedesWithheld(t *testing.T) {
	q := newSquad(t, 0)
	o := q.spawn(whole(), 1)
	for i, do := range []func(){func() {}, func() { q.w.Recheck(o) }, func() { q.w.SetOwner(o, 2) }} {
		before := *q.rules
		do()
		q.deliver()
		if asked, judged := q.rules.asked-before.asked, q.rules.judged-before.judged; asked != 1 || judged != 2 {
			t.Errorf("case %d: they hear %d times of an object, and of %d clients", i, asked, judged)
		}
	}
}

// The rule of the first field is applied like any other.
func TestAChangeOfTheFirstFieldIsHidden(t *testing.T) {
	type vault struct {
		Pin  int32 `net:"read=owner"`
		Name int32
	}
	class := classOf[vault](t, "vault")
	w := NewWorld(state.NewTable(class))
	w.SetReaders(class, &rules{})
	v := new(vault)
	o := w.Spawn(class, unsafe.Pointer(v), 1, 1)
	owner, other := w.NewPeer(1), w.NewPeer(1)
	owner.Handle, other.Handle = 1, 2
	for tick, c := range []struct {
		do                  func()
		toOwner, toTheOther bool
	}{1: {func() {}, true, true}, 2: {func() { v.Pin++ }, true, false}, 3: {func() { v.Name++ }, true, true}} {
		if tick == 0 {
			continue
		}
		w.Edit(o)
		c.do()
		w.Capture(uint64(tick))
		if owner.pending.Has(0) != c.toOwner || other.pending.Has(0) != c.toTheOther {
			t.Errorf("tick %d: owed to the owner %v, to the other %v", tick, owner.pending.Has(0), other.pending.Has(0))
		}
		for _, p := range []*Peer{owner, other} {
			_, first := snap(p, uint64(tick), wide)
			p.Ack([]Range{{first, first}})
		}
	}
}

// viewed is an object with a reader of some of its fields; the reader acknowledges each packet.
type viewed struct {
	w    *World
	o    *state.Object
	v    *captain
	p    *Peer
	tick uint64
}

// newViewed returns an object after ten changes of a field that the reader reads.
func newViewed(t *testing.T) *viewed {
	class := classOf[captain](t, "captain")
	s := &viewed{w: NewWorld(state.NewTable(class)), v: new(captain)}
	s.w.SetReaders(class, ownersRead{})
	s.o = s.w.Spawn(class, unsafe.Pointer(s.v), 0, 1)
	s.p = s.w.NewPeer(1)
	s.p.Handle = 0
	for range 10 {
		s.step(func() { s.v.X++ })
	}
	return s
}

// step edits the object, and sends the change.
func (s *viewed) step(edit func()) {
	s.tick++
	s.w.Edit(s.o)
	edit()
	s.w.Capture(s.tick)
	_, first := snap(s.p, s.tick, wide)
	s.p.Ack([]Range{{first, first}})
}

// If the readable fields of an object are unchanged for longer than its history, the client keeps
// its baseline: unreadable changes do not drop a version that the client uses.
func TestARestingViewKeepsItsBaseline(t *testing.T) {
	s := newViewed(t)
	for range 2 * state.Horizon {
		s.step(func() { s.v.Ammo++ })
	}
	s.w.Edit(s.o)
	s.v.X++
	s.w.Capture(s.tick + 1)
	if !s.p.derived.Has(0) {
		t.Fatal("the object is not steady")
	}
	if e := s.p.peek(0); e.base != 10 || e.full != fullFirst || e.sent != 10 {
		t.Errorf("the baseline is %d, want 10, the tick of the last readable change: %+v", e.base, e)
	}
}

// If the history no longer has the first version with the values of a view, the next record of the
// object is a full one.
func TestAViewWithAnEvictedBaselineGetsAFullRecord(t *testing.T) {
	s := newViewed(t)
	for range 20 {
		s.step(func() { s.v.Ammo++ })
	}
	s.o.Hist.Fit(0)
	s.w.Edit(s.o)
	s.v.X++
	s.w.Capture(s.tick + 1)
	if !s.p.derived.Has(0) || s.o.Hist.Floor(s.tick, s.o.Changed()) != 0 {
		t.Fatalf("the object is steady: %v, and version %d was the newest, want the first", s.p.derived.Has(0), s.o.Hist.Floor(s.tick, s.o.Changed()))
	}
	if e := s.p.peek(0); e.base != 0 || e.full != fullEvicted {
		t.Errorf("the baseline is %d, and the reason of a full record %d", e.base, e.full)
	}
}

// A mask tells the rules that it withholds.
func TestAMaskNamesWithheldRules(t *testing.T) {
	c := classOf[agent](t, "agent")
	for withheld := state.Rules(0); withheld < 1<<len(c.Rules()); withheld += 1 << 1 {
		if got := c.WithheldBy(c.AppendMask(nil, withheld)); got != withheld {
			t.Errorf("the mask of %b withholds %b", withheld, got)
		}
	}
	if got := c.WithheldBy(nil); got != 0 {
		t.Errorf("no mask withholds %b", got)
	}
}

// The iteration over objects with rules is in id order, and may stop.
func TestRestrictedIsInOrderAndMayBeLeft(t *testing.T) {
	open, ruled := classOf[rock](t, "rock"), classOf[agent](t, "agent")
	w := NewWorld(state.NewTable(open, ruled))
	var want []*state.Object
	for range 3 {
		w.Spawn(open, unsafe.Pointer(new(rock)), 0, 1)
		want = append(want, w.Spawn(ruled, unsafe.Pointer(new(agent)), 0, 1))
	}
	for most := range len(want) + 1 {
		var got []*state.Object
		for o := range w.Restricted {
			if got = append(got, o); len(got) > most {
				break
			}
		}
		if !slices.Equal(got, want[:min(most+1, len(want))]) {
			t.Errorf("%d objects of the first %d", len(got), most+1)
		}
	}
}
