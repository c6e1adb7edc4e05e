package codec

import (
	"reflect"
	"testing"
)

func TestWeightIsCheckedAtDeclaration(t *testing.T) {
	type elem struct {
		N int32 `net:"weight=2"`
	}
	const bounds = " is not a number from 1/64 to 64"
	for _, c := range []struct {
		of   any
		want string
	}{
		{struct {
			A int32 `net:"weight=0"`
		}{}, "struct.A: weight=0" + bounds},
		{struct {
			A int32 `net:"weight=-1"`
		}{}, "struct.A: weight=-1" + bounds},
		{struct {
			A int32 `net:"weight=64.001"`
		}{}, "struct.A: weight=64.001" + bounds},
		{struct {
			A int32 `net:"weight=1/65"`
		}{}, "struct.A: weight=1/65" + bounds},
		{struct {
			A int32 `net:"weight=1e400"`
		}{}, "struct.A: weight=1e400" + bounds},
		{struct {
			A int32 `net:"weight=NaN"`
		}{}, "struct.A: weight=NaN" + bounds},
		{struct {
			A int32 `net:"weight=Inf"`
		}{}, "struct.A: weight=Inf" + bounds},
		{struct {
			A int32 `net:"weight=1/0"`
		}{}, "struct.A: weight=1/0" + bounds},
		{struct {
			A int32 `net:"weight=high"`
		}{}, "struct.A: weight=high" + bounds},
		{struct {
			A int32 `net:"weight"`
		}{}, "struct.A: weight=" + bounds},
		{struct {
			A struct {
				B [2]int32 `net:"weight=65"`
			}
		}{}, "struct.A.B: weight=65" + bounds},
		{struct{ A []elem }{}, "A[].N"},
		{struct{ A map[int32]elem }{}, "A[].Value.N"},
		{struct {
			A []struct{ B elem } `net:"weight=3"`
		}{}, "A[].B.N"},
	} {
		refused(t, c.of, c.want)
	}
}

// A weight applies to the parts of structs, arrays and other composite fields; an inner tag
// replaces it, and a slice or map is one value.
func TestWeightsApplyToInnerFields(t *testing.T) {
	type vec struct{ X, Y float32 }
	type part struct {
		Own   int32 `net:"weight=1/64"`
		Outer int32
		At    vec
	}
	p, err := Compile(reflect.TypeFor[struct {
		None int32
		Most string           `net:"weight=64"`
		Deep [2]part          `net:"weight=8"`
		Back struct{ V vec }  `net:"weight=1"`
		Grid [2][2]int8       `net:"weight=1/4"`
		Turn [4]float32       `net:"quat=10,weight=0.5"`
		Bag  []plain          `net:"weight=3"`
		Held map[string]plain `net:"weight=5"`
		Foe  Ref              `net:"weight=7"`
		Skip int32            `net:"-"`
		Last bool
	}]())
	if err != nil || p.Misplaced() != "" {
		t.Fatal(err, p.Misplaced())
	}
	want := map[string]float64{
		"None": 1, "Most": 64, "Back.V.X": 1, "Back.V.Y": 1, "Turn": 0.5, "Bag": 3, "Held": 5, "Foe": 7, "Last": 1,
		"Deep[0].Own": 1.0 / 64, "Deep[0].Outer": 8, "Deep[0].At.X": 8, "Deep[0].At.Y": 8,
		"Deep[1].Own": 1.0 / 64, "Deep[1].Outer": 8, "Deep[1].At.X": 8, "Deep[1].At.Y": 8,
		"Grid[0][0]": 0.25, "Grid[0][1]": 0.25, "Grid[1][0]": 0.25, "Grid[1][1]": 0.25,
	}
	all := p.Weights()
	if len(all) != len(want) || len(all) != p.Leaves() {
		t.Fatalf("%d weights of %d values, want %d", len(all), p.Leaves(), len(want))
	}
	for i, l := range p.DescribeLeaves() {
		if l.Weight != want[l.Name] || all[i] != l.Weight {
			t.Errorf("%s has weight %v and is described with %v, want %v", l.Name, all[i], l.Weight, want[l.Name])
		}
	}
}

type plain struct{ N int32 }

// Two builds that differ in weights have the same fingerprint, and a plan without weights, or with
// the default ones only, has none.
func TestWeightIsNoMatterOfTheWire(t *testing.T) {
	a, err := Compile(reflect.TypeFor[struct {
		A int32 `net:"weight=1"`
		B int32
	}]())
	b, other := Compile(reflect.TypeFor[struct {
		A int32
		B int32 `net:"weight=5"`
	}]())
	if err != nil || other != nil || !reflect.DeepEqual(a.Layout(), b.Layout()) {
		t.Fatalf("%v, %v: the layouts differ: %v and %v", err, other, a.Layout(), b.Layout())
	}
	if a.Weights() != nil || b.Weights() == nil {
		t.Errorf("weights %v and %v", a.Weights(), b.Weights())
	}
	bound, err := Bind(b.Type(), a.Layout(), new(Budget))
	if err != nil || bound.Weights() != nil {
		t.Errorf("what is read in the layout of a server has weights %v (%v)", bound.Weights(), err)
	}
}
