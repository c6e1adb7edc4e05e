package codec

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
	"unsafe"
)

func TestIntervalAndThresholdAreCheckedAtDeclaration(t *testing.T) {
	type elem struct {
		N int32 `net:"threshold=2"`
	}
	for _, c := range []struct{ of, want any }{
		{struct {
			A int32 `net:"interval=0s"`
		}{}, "struct.A: interval=0s is not a time above 0 and of at most 1m0s"},
		{struct {
			A int32 `net:"interval=61s"`
		}{}, "struct.A: interval=61s is not a time"},
		{struct {
			A int32 `net:"interval=6"`
		}{}, "struct.A: interval=6 is not a time"},
		{struct {
			A int32 `net:"threshold=-1"`
		}{}, "struct.A: threshold=-1 is not a positive number"},
		{struct {
			A int32 `net:"threshold=x"`
		}{}, "struct.A: threshold=x is not a positive number"},
		{struct {
			A int32 `net:"threshold=1"`
		}{}, "struct.A: threshold of 1 for a field in steps of 1"},
		{struct {
			A uint8 `net:"threshold=256"`
		}{}, "struct.A: threshold of 256, which is further than the field can change"},
		{struct {
			A float32 `net:"quant=1/4,threshold=1/4"`
		}{}, "struct.A: threshold of 1/4 for a field in steps of 1/4"},
		{struct {
			A float32 `net:"quant=1/4,range=0:10,threshold=11"`
		}{}, "struct.A: threshold of 11, which is further"},
		{struct {
			A [4]float32 `net:"quat=10,threshold=181"`
		}{}, "struct.A: threshold of 181 for a quaternion, whose angles are of at most 180 degrees"},
		{struct {
			A float64 `net:"threshold=1e400"`
		}{}, "struct.A: threshold is outside the range of a float"},
		{struct {
			A string `net:"threshold=2"`
		}{}, "struct.A: threshold on a field without numbers"},
		{struct {
			A bool `net:"threshold=2"`
		}{}, "struct.A: threshold on a field without numbers"},
		{struct {
			A []int32 `net:"threshold=2"`
		}{}, "struct.A: threshold on a field without numbers"},
		{struct {
			A struct{ B Ref } `net:"threshold=2"`
		}{}, "struct.A: threshold on a field without numbers"},
		{struct{ A []elem }{}, "A[].N"},
		{struct{ A map[int32]elem }{}, "A[].Value.N"},
		{struct {
			A []struct {
				S string `net:"interval=1s"`
			}
		}{}, "A[].S"},
	} {
		refused(t, c.of, c.want.(string))
	}
}

// refused fails unless a type is refused with these words, or has such a field where no tag like
// that may be.
func refused(t *testing.T, of any, want string) {
	t.Helper()
	p, err := Compile(reflect.TypeOf(of))
	var said string
	if err != nil {
		said = err.Error()
	} else {
		said = p.Misplaced()
	}
	if !strings.Contains(said, want) {
		t.Errorf("%T: %q, want %q", of, said, want)
	}
}

// A change smaller than the threshold is held back and an equal one is not, in both directions, and
// at the limits of the kind.
func TestThresholdOfEveryKindOfNumber(t *testing.T) {
	type all struct {
		I8  int8    `net:"threshold=3"`
		I64 int64   `net:"threshold=3"`
		U8  uint8   `net:"threshold=2.5"` // rounded up: 3
		U64 uint64  `net:"threshold=3"`
		F32 float32 `net:"threshold=3"`
		F64 float64 `net:"threshold=3"`
		Q32 float32 `net:"quant=1/2,threshold=3"`
		R64 float64 `net:"quant=1/2,range=-100:100,threshold=3"`
		Vec struct {
			X, Y float32
			N    int32
			On   bool
		} `net:"threshold=3"`
	}
	p, err := Compile(reflect.TypeFor[all]())
	if err != nil {
		t.Fatal(err)
	}
	capture := func(a all) Values {
		v := Values{Words: make([]uint64, p.Words())}
		p.Capture(unsafe.Pointer(&a), &v)
		return v
	}
	set := func(by float64) (a all) {
		a.I8, a.I64, a.U8, a.U64 = int8(by), int64(by), uint8(100+by), uint64(100+by)
		a.F32, a.F64, a.Q32, a.R64 = float32(by), by, float32(by), by
		a.Vec.X, a.Vec.Y, a.Vec.N = float32(by), float32(by), int32(by)
		return a
	}
	ticks := make([]uint64, p.Leaves())
	for _, by := range []float64{2, -2, 3, -3} {
		want := p.Leaves() - 1 // the bool has none
		if math.Abs(by) >= 3 {
			want = 0
		}
		now, last := capture(set(by)), capture(set(0))
		if held := p.Hold(&now, &last, ticks, 1, nil); held.Small != want || held.Early != 0 {
			t.Errorf("a change by %v: %d held, want %d", by, held.Small, want)
		}
	}
	least, most := set(0), set(0)
	least.I64, most.I64, least.U64, most.U64 = math.MinInt64, math.MaxInt64, 0, math.MaxUint64
	least.F32, most.F32 = float32(math.Inf(-1)), float32(math.Inf(1))
	now, last := capture(most), capture(least)
	if held := p.Hold(&now, &last, ticks, 1, nil); held.Small != 0 {
		t.Errorf("%d held of what changed as far as it can", held.Small)
	}
	on := set(0)
	on.Vec.On = true
	now, last = capture(on), capture(set(0))
	if held := p.Hold(&now, &last, ticks, 1, nil); held.Small != 0 || p.Equal(&now, &last) {
		t.Error("a bool beside numbers with a threshold is held")
	}
}

func TestAnInnerIntervalReplacesTheOuter(t *testing.T) {
	type both struct {
		A int32 `net:"interval=1s"`
		B struct {
			C int32
			D int32 `net:"interval=2s"`
			E [2]int32
		} `net:"interval=3s"`
	}
	p, err := Compile(reflect.TypeFor[both]())
	if err != nil {
		t.Fatal(err)
	}
	want := []time.Duration{time.Second, 2 * time.Second, 3 * time.Second}
	if got := p.Intervals(); !reflect.DeepEqual(got, want) || !reflect.DeepEqual(p.groups[2].leaves, []int{1, 3, 4}) {
		t.Errorf("intervals %v, the outer one of leaves %v", got, p.groups[2].leaves)
	}
}

// TestHoldingBackIsNoMatterOfTheWire: two builds that differ in it have one fingerprint.
func TestHoldingBackIsNoMatterOfTheWire(t *testing.T) {
	type plain struct{ A, B int32 }
	type held struct {
		A int32 `net:"interval=1s"`
		B int32 `net:"threshold=5"`
	}
	a, err := Compile(reflect.TypeFor[plain]())
	b, other := Compile(reflect.TypeFor[held]())
	if err != nil || other != nil || !reflect.DeepEqual(a.Layout(), b.Layout()) {
		t.Errorf("%v, %v: the layouts differ: %v and %v", err, other, a.Layout(), b.Layout())
	}
	if a.Holds() || !b.Holds() {
		t.Error("the wrong one holds back")
	}
}

// TestARotationMayHoldHalfATurn has the largest threshold of a quaternion.
func TestARotationMayHoldHalfATurn(t *testing.T) {
	mustPlan[struct {
		A [4]float32 `net:"quat=10,threshold=180"`
	}](t)
}
