package codec

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"unsafe"
)

type secrets struct {
	A    int32
	Own  int32 `net:"read=owner"`
	Side struct {
		Text string `net:"max=8"`
		Free bool   `net:"read=all"`
		Mine [2]uint8
		Two  [2]struct{ P, Q int16 }
		Own  float32 `net:"quant=1,range=5:9,read=owner"`
	} `net:"read=team"`
	Open struct{ X int8 } `net:"read=all"`
	Bag  map[string]int8  `net:"max=4,read=team"`
}

func TestReadRulesApplyToInnerFields(t *testing.T) {
	p := mustPlan[secrets](t)
	want := map[string]string{
		"A": "", "Own": "owner", "Side.Text": "team", "Side.Free": "", "Side.Mine": "team", "Side.Own": "owner", "Open.X": "", "Bag": "team",
		"Side.Two[0].P": "team", "Side.Two[0].Q": "team", "Side.Two[1].P": "team", "Side.Two[1].Q": "team",
	}
	for i := range p.Leaves() {
		if rule, ok := want[p.LeafName(i)]; !ok || p.ReadRule(i) != rule {
			t.Errorf("%s is read by %q, want %q", p.LeafName(i), p.ReadRule(i), rule)
		}
	}
	if p.Leaves() != len(want) {
		t.Errorf("%d leaves", p.Leaves())
	}
	for i, f := range p.Describe() { // Rules are the server's own: the layout does not tell.
		if strings.Contains(f.Type, "read") || strings.Contains(f.Type, "team") {
			t.Errorf("field %d: %s", i, f.Type)
		}
	}
}

func TestReadTagsThatMakeNoSenseAreRefused(t *testing.T) {
	for want, v := range map[string]any{
		"read= is not all": struct {
			A int8 `net:"read="`
		}{},
		"read=a b is not all": struct {
			A int8 `net:"read=a b"`
		}{},
		".S[].A: read=owner inside a slice or map": struct {
			S []struct {
				A int8 `net:"read=owner"`
			}
		}{},
		".M[].Value.A: read=team inside a slice or map": struct {
			M map[int8]struct {
				A int8 `net:"read=team"`
			}
		}{},
	} {
		refused(t, v, want)
	}
}

// A leaf that is left out is zero for the reader, as after Withhold.
func TestSomeLeavesAreWrittenAndTheOthersAreZero(t *testing.T) {
	p := mustPlan[secrets](t)
	var s secrets
	s.A, s.Own, s.Side.Text, s.Side.Free, s.Side.Mine, s.Side.Own, s.Open.X, s.Bag = 1, 2, "abc", true, [2]uint8{3, 4}, 7, 5, map[string]int8{"x": 1}
	s.Side.Two[1].Q = 6
	now := Values{Words: make([]uint64, p.Words()+1), Blobs: make([][]byte, p.Blobs())}
	p.Capture(unsafe.Pointer(&s), &now)
	zero := p.Zero()
	zero.Words = append(zero.Words, 0)
	var none secrets
	none.Side.Own = 5
	mask := make([]byte, (p.Leaves()+7)/8)
	for round := range 1 << p.Leaves() {
		mask[0], mask[1] = byte(round), byte(round>>8)
		held := Values{Words: append([]uint64(nil), now.Words...), Blobs: append([][]byte(nil), now.Blobs...)}
		var without []uint16
		for i := range uint16(p.Leaves()) {
			if round>>i&1 == 0 {
				without = append(without, i)
			}
		}
		p.Withhold(&held, without, &zero)
		back := deltaOf(t, p, &held, &zero, Trend{})
		if !p.Equal(back, &held) {
			t.Fatalf("mask %x: %v became %v", mask, held, back)
		}
		if round == 0 {
			var got secrets
			p.Restore(unsafe.Pointer(&got), back, nil)
			if n := len(p.AppendSome(nil, &now, mask)); !reflect.DeepEqual(got, none) || n > 0 {
				t.Errorf("nothing became %+v in %d bytes", got, n)
			}
		}
	}
	if b := p.AppendSome(nil, &now, bytes.Repeat([]byte{255}, len(mask))); !bytes.Equal(b, p.AppendValues(nil, &now)) {
		t.Error("all leaves are not the whole value")
	}
}
