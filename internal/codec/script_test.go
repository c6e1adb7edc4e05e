package codec

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"unsafe"

	"github.com/netloop/netloop/internal/wire"
)

type slot struct {
	ID    uint16
	Count int32
	Name  string `net:"max=8"`
	Marks map[int8]bool
}

// lists holds every way to keep many: by index, by key, in a map, in a set.
type lists struct {
	Index []slot `net:"max=80"`
	Keyed []slot `net:"max=80,key=ID"`
	Map   map[string]slot
	Set   map[int64]struct{}
	Bits  []bool
}

func captured[S any](p *Plan, s S) *Values {
	v := p.newValues()
	p.Capture(unsafe.Pointer(&s), v)
	return v
}

// appendDiffs writes the differences of the leaves that differ.
func (p *Plan) appendDiffs(dst []byte, v, base *Values) []byte {
	for i := range p.leaves {
		switch l := &p.leaves[i]; {
		case l.equal(v, base):
		case l.kind.Blob():
			dst = l.appendBlobDiff(dst, v.Blobs[l.pos], base.Blobs[l.pos])
		default:
			dst = l.appendDiff(dst, v.Words[l.pos], base.Words[l.pos])
		}
	}
	return dst
}

// readDiffs changes the leaves of the mask.
func (p *Plan) readDiffs(r *wire.Reader, mask byte, v *Values) {
	for i := range p.leaves {
		switch l := &p.leaves[i]; {
		case mask>>i&1 == 0:
		case l.kind.Blob():
			v.Blobs[l.pos] = l.readBlobDiff(r, v.Blobs[l.pos])
		default:
			v.Words[l.pos] = l.readDiff(r, v.Words[l.pos])
		}
	}
}

// difference returns the bytes that make b of a, and proves that they do.
func difference(t *testing.T, p *Plan, a, b *Values) []byte {
	t.Helper()
	d := p.appendDiffs(nil, b, a)
	var mask byte
	for i := range p.leaves {
		if !p.leaves[i].equal(a, b) {
			mask |= 1 << i
		}
	}
	got := &Values{Words: slices.Clone(a.Words), Blobs: append([][]byte(nil), a.Blobs...)}
	r := wire.NewReader(d)
	p.readDiffs(&r, mask, got)
	if err := r.Done(); err != nil || !p.Equal(got, b) {
		t.Fatalf("% x: %v\ngot  %x\nwant %x", d, err, got.Blobs, b.Blobs)
	}
	if got := deltaOf(t, p, b, a, Trend{}); !p.Equal(got, b) {
		t.Fatalf("delta: got %x, want %x", got.Blobs, b.Blobs)
	}
	whole := 0
	for i := range b.Blobs {
		whole += 1 + len(b.Blobs[i])
	}
	if len(d) > whole {
		t.Fatalf("%d bytes as a difference, %d whole", len(d), whole)
	}
	return d
}

func inventory(n int) (s []slot) {
	for i := range n {
		s = append(s, slot{ID: uint16(100 + i), Count: int32(i), Name: "thing", Marks: map[int8]bool{1: true}})
	}
	return s
}

func TestOneChangeInAListCostsOneChange(t *testing.T) {
	p := mustPlan[lists](t)
	base := lists{Index: inventory(60), Keyed: inventory(60), Map: map[string]slot{}, Set: map[int64]struct{}{}}
	for i, s := range inventory(60) {
		base.Map[fmt.Sprint("key", i)] = s
		base.Set[int64(i)*1000] = struct{}{}
	}
	for _, c := range []struct {
		name   string
		change func(*lists)
		most   int // bytes
	}{
		{"an element by index", func(s *lists) { s.Index[30].Count++ }, 5},
		{"appended by index", func(s *lists) { s.Index = append(s.Index, slot{ID: 1}) }, 9},
		{"cut by index", func(s *lists) { s.Index = s.Index[:20] }, 7},
		{"an element by key", func(s *lists) { s.Keyed[30].Count++ }, 5},
		{"first removed by key", func(s *lists) { s.Keyed = s.Keyed[1:] }, 2},
		{"first inserted by key", func(s *lists) { s.Keyed = append([]slot{{ID: 1}}, s.Keyed...) }, 6},
		{"moved by key", func(s *lists) { s.Keyed = append(s.Keyed[1:], s.Keyed[0]) }, 20},
		{"swapped and changed by key", func(s *lists) { s.Keyed[4], s.Keyed[9] = s.Keyed[9], s.Keyed[4]; s.Keyed[7].Count = 1 }, 45},
		{"deep inside", func(s *lists) { s.Keyed[30].Marks = map[int8]bool{1: false} }, 8},
		{"a value of a map", func(s *lists) { v := s.Map["key7"]; v.Count = 9; s.Map["key7"] = v }, 6},
		{"removed from a map", func(s *lists) { delete(s.Map, "key7") }, 4},
		{"added to a map", func(s *lists) { s.Map["key"] = slot{} }, 10},
		{"added to and removed from a set", func(s *lists) { delete(s.Set, 30000); s.Set[5] = struct{}{} }, 6},
	} {
		old := captured(p, base)
		next := lists{}
		p.Clone(unsafe.Pointer(&next), unsafe.Pointer(&base))
		c.change(&next)
		if d := difference(t, p, old, captured(p, next)); len(d) > c.most {
			t.Errorf("%s: %d bytes, want at most %d: % x", c.name, len(d), c.most, d)
		}
	}
}

func TestListsGoWholeWhenThatIsShorter(t *testing.T) {
	type s struct {
		A []int32
		B map[int32]int32
	}
	p := mustPlan[s](t)
	a, b := s{A: make([]int32, 8), B: map[int32]int32{1: 1, 2: 2}}, s{A: make([]int32, 8), B: map[int32]int32{7: 7, 8: 8}}
	for i := range b.A {
		b.A[i] = 1 << 20
	}
	d := difference(t, p, captured(p, a), captured(p, b))
	v := captured(p, b)
	want := append(append([]byte{scriptWhole}, v.Blobs[0]...), append([]byte{scriptWhole}, v.Blobs[1]...)...)
	if string(d) != string(want) {
		t.Errorf("% x, want % x", d, want)
	}
}

func randomLists(r *rand.Rand, s *lists) {
	one := func() slot {
		v := slot{ID: uint16(r.IntN(12)), Count: int32(r.IntN(3)), Name: "abc"[:r.IntN(4)]}
		if r.IntN(3) == 0 {
			v.Marks = map[int8]bool{int8(r.IntN(3)): r.IntN(2) == 0}
		}
		return v
	}
	for range 1 + r.IntN(4) {
		for _, l := range []*[]slot{&s.Index, &s.Keyed} {
			switch n := len(*l); {
			case r.IntN(3) == 0 && n < 70:
				i := r.IntN(n + 1)
				*l = append((*l)[:i:i], append([]slot{one()}, (*l)[i:]...)...)
			case n > 0 && r.IntN(3) == 0:
				i := r.IntN(n)
				*l = append((*l)[:i:i], (*l)[i+1:]...)
			case n > 1 && r.IntN(2) == 0:
				r.Shuffle(n, func(i, j int) { (*l)[i], (*l)[j] = (*l)[j], (*l)[i] })
			case n > 0:
				(*l)[r.IntN(n)] = one()
			}
		}
		if key := fmt.Sprint(r.IntN(20)); r.IntN(2) == 0 {
			s.Map[key] = one()
		} else {
			delete(s.Map, key)
		}
		if key := int64(r.IntN(40) - 20); r.IntN(2) == 0 {
			s.Set[key] = struct{}{}
		} else {
			delete(s.Set, key)
		}
		if s.Bits = append(s.Bits, true); len(s.Bits) > 20 {
			s.Bits = s.Bits[:r.IntN(20)]
		}
		if n := len(s.Bits); n > 0 {
			s.Bits[r.IntN(n)] = r.IntN(2) == 0
		}
	}
}

// For any two states the difference converts one into the other.
func TestListDifferencesRestoreEveryState(t *testing.T) {
	p := mustPlan[lists](t)
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 7))
		s := lists{Map: map[string]slot{}, Set: map[int64]struct{}{}}
		states := []*Values{captured(p, s)}
		for range 12 {
			randomLists(r, &s)
			now := captured(p, s)
			for _, old := range states {
				difference(t, p, old, now)
				difference(t, p, now, old)
			}
			states = append(states, now)
			var out lists
			p.Restore(unsafe.Pointer(&out), now, nil)
			if again := captured(p, out); !p.Equal(again, now) {
				t.Fatalf("seed %d: %+v became %+v", seed, s, out)
			}
		}
	}
}

// max bounds the elements, each the strings among them.
func TestEachBoundsTheStringsInAList(t *testing.T) {
	type s struct {
		A []string            `net:"max=2,each=4"`
		B map[string]int8     `net:"max=3,each=5"`
		C map[uint8][]byte    `net:"each=6"`
		D map[string]struct{} `net:"each=7"`
	}
	want := []FieldInfo{{"A", "[]string max=4 max=2"}, {"B", "map[string max=5]int8 max=3"}, {"C", "map[uint8]bytes max=6 max=64"}, {"D", "set[string max=7] max=64"}}
	if got := mustPlan[s](t).Describe(); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// Go walks a map in another order every time; its bytes are always the same.
func TestMapsAreEncodedInTheOrderOfTheirKeys(t *testing.T) {
	type s struct {
		A map[int8]uint8
		B map[string]bool
		C map[uint64]struct{} `net:"max=3"`
	}
	p := mustPlan[s](t)
	in := s{A: map[int8]uint8{-3: 1, 5: 2, 0: 3, -128: 4}, B: map[string]bool{"b": true, "": false, "ab": true}, C: map[uint64]struct{}{1 << 63: {}, 9: {}, 2: {}, 300: {}}}
	for range 20 {
		v := p.newValues()
		if n := p.Capture(unsafe.Pointer(&in), v); n != 1 {
			t.Fatalf("%d values cut", n)
		}
		want := []string{"04" + "ff0104" + "0501" + "0003" + "0a02", "03" + "0000" + "02616201" + "016201", "03" + "02" + "09" + "ac02"}
		for i := range want {
			if got := fmt.Sprintf("%x", v.Blobs[i]); got != want[i] {
				t.Errorf("%s, want %s", got, want[i])
			}
		}
	}
	if _, err := p.Append(nil, unsafe.Pointer(&in)); err == nil || err.Error() != "field s.C: longer than its max of 3; raise max in its tag, or send less" {
		t.Error(err)
	}
	in = s{B: map[string]bool{string(make([]byte, 129)): true, "a": true}}
	v, out := p.newValues(), s{}
	if n := p.Capture(unsafe.Pointer(&in), v); n != 1 {
		t.Errorf("%d values cut", n)
	}
	if p.Restore(unsafe.Pointer(&out), v, nil); !reflect.DeepEqual(out, s{B: map[string]bool{"a": true}}) {
		t.Errorf("%+v", out)
	}
}

func TestDecoderRefusesMapsOutOfOrder(t *testing.T) {
	type s struct{ A map[int8]uint8 }
	p := mustPlan[s](t)
	for _, b := range [][]byte{{2, 2, 0, 2, 0}, {2, 2, 0, 0, 0}, {2, 0, 0, 1, 0}} {
		var v s
		if err := p.Decode(b, unsafe.Pointer(&v)); !errors.Is(err, ErrOrder) || v.A != nil {
			t.Errorf("% x: %v, %v", b, v, err)
		}
	}
}

func TestDecoderRefusesScriptsThatDoNotFit(t *testing.T) {
	type s struct {
		A []uint8Pair `net:"max=4"`
		B map[uint8]uint8
	}
	p := mustPlan[s](t)
	base := captured(p, s{A: []uint8Pair{{1, 2}, {3, 4}}, B: map[uint8]uint8{1: 1, 2: 2}})
	for name, c := range map[string]struct {
		leaf  byte
		bytes []byte
		err   error
	}{
		"keep of more":       {1, []byte{3 << 2, 0}, ErrScript},
		"drop of more":       {1, []byte{3<<2 | opDrop, 0}, ErrScript},
		"edit of more":       {1, []byte{1<<2 | opDrop, 2<<2 | opEdit, 1, 2, 1, 2, 0}, ErrScript},
		"no elements":        {1, []byte{0<<2 | opEdit, 0}, ErrScript},
		"whole inside":       {1, []byte{1 << 2, scriptWhole, 0}, ErrScript},
		"over the limit":     {1, []byte{3<<2 | opInsert, 1, 1, 2, 2, 3, 3, 0}, wire.ErrLimit},
		"far over the limit": {1, append(wire.AppendUvarint(nil, 1<<40|opInsert), 1, 1), ErrScript},
		"no end":             {1, []byte{1<<2 | opDrop}, wire.ErrShort},
		"insert cut short":   {1, []byte{1<<2 | opInsert, 1}, wire.ErrShort},
		"mask too long":      {1, []byte{1<<2 | opEdit, 4, 0}, ErrScript},
		"value out of range": {1, []byte{1<<2 | opEdit, 1, 3, 0}, ErrRange},
		"key twice":          {2, []byte{2 << 2, 1<<2 | opInsert, 2, 9, 0}, ErrOrder},
		"key falls":          {2, []byte{1<<2 | opEdit, 1, 2, 0}, ErrOrder},
		"whole over":         {1, []byte{scriptWhole, 5}, wire.ErrLimit},
	} {
		v := &Values{Blobs: append([][]byte(nil), base.Blobs...)}
		r := wire.NewReader(c.bytes)
		if p.readDiffs(&r, c.leaf, v); !errors.Is(r.Done(), c.err) {
			t.Errorf("%s: %v, want %v; %x", name, r.Err(), c.err, v.Blobs)
		}
	}
}

type uint8Pair struct{ A, B uint8 }

// For any baseline and difference: no panic, and an accepted state can be read, and the difference
// computed for it gives it again.
func FuzzReadScript(f *testing.F) {
	p := mustPlan[lists](f)
	s := lists{Index: inventory(2), Keyed: inventory(3), Map: map[string]slot{"a": {}}, Set: map[int64]struct{}{1: {}}, Bits: []bool{true}}
	base := p.AppendValues(nil, captured(p, s))
	f.Add(base, []byte{1 << 0, 1<<2 | opEdit, 2, 2, 0})
	f.Add(base, []byte{1 << 1, 1<<2 | opDrop, 1<<2 | opInsert, 1, 2, 1, 'x', 0, 0})
	f.Add(base, []byte{1<<2 | 1<<3, 1<<2 | opDrop, 0, 1<<2 | opInsert, 1, 0})
	f.Add(base, []byte{1 << 4, scriptWhole, 2, 1, 0})
	f.Fuzz(func(t *testing.T, base, diff []byte) {
		old, r := p.newValues(), wire.NewReader(base)
		if p.ReadSome(&r, old, nil); r.Done() != nil || len(diff) == 0 || diff[0]>>5 != 0 {
			return
		}
		now := &Values{Words: make([]uint64, 1), Blobs: append([][]byte(nil), old.Blobs...)}
		r = wire.NewReader(diff[1:])
		if p.readDiffs(&r, diff[0], now); r.Done() != nil {
			return
		}
		whole := p.AppendValues(nil, now)
		// Not every varint is the shortest.
		if size, _ := p.MaxSize(); len(whole) > size+10*(len(base)+len(diff)) {
			t.Fatalf("%d bytes, more than %d", len(whole), size)
		}
		r = wire.NewReader(whole)
		if p.ReadSome(&r, p.newValues(), nil); r.Done() != nil {
			t.Fatalf("% x became % x, which cannot be read: %v", base, whole, r.Err())
		}
		var live lists
		p.Restore(unsafe.Pointer(&live), now, nil)
		difference(t, p, captured(p, lists{}), captured(p, live))
		var was lists
		p.Restore(unsafe.Pointer(&was), old, nil)
		difference(t, p, captured(p, was), captured(p, live))
	})
}

func TestListsAreCapturedAndDiffedWithoutAllocating(t *testing.T) {
	p := mustPlan[lists](t)
	s := lists{Index: inventory(20), Keyed: inventory(20), Map: map[string]slot{"b": {}, "a": {}}, Set: map[int64]struct{}{3: {}, -1: {}}}
	old := captured(p, s)
	now, buf := p.newValues(), make([]byte, 0, 4096)
	s.Keyed = append(s.Keyed[1:], s.Keyed[0])
	s.Map["c"] = slot{Count: 1}
	p.Capture(unsafe.Pointer(&s), now)
	if n := testing.AllocsPerRun(100, func() {
		p.Capture(unsafe.Pointer(&s), now)
		buf = p.appendDiffs(buf[:0], now, old)
	}); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}
