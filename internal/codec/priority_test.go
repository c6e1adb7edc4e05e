package codec

import (
	"reflect"
	"testing"
)

func TestPriorityIsCheckedAtDeclaration(t *testing.T) {
	type elem struct {
		N int32 `net:"priority=2"`
	}
	const bounds = " is not a number from 1/64 to 64"
	for _, c := range []struct {
		of   any
		want string
	}{
		{struct {
			A int32 `net:"priority=0"`
		}{}, "struct.A: priority=0" + bounds},
		{struct {
			A int32 `net:"priority=-1"`
		}{}, "struct.A: priority=-1" + bounds},
		{struct {
			A int32 `net:"priority=64.001"`
		}{}, "struct.A: priority=64.001" + bounds},
		{struct {
			A int32 `net:"priority=1/65"`
		}{}, "struct.A: priority=1/65" + bounds},
		{struct {
			A int32 `net:"priority=1e400"`
		}{}, "struct.A: priority=1e400" + bounds},
		{struct {
			A int32 `net:"priority=NaN"`
		}{}, "struct.A: priority=NaN" + bounds},
		{struct {
			A int32 `net:"priority=Inf"`
		}{}, "struct.A: priority=Inf" + bounds},
		{struct {
			A int32 `net:"priority=1/0"`
		}{}, "struct.A: priority=1/0" + bounds},
		{struct {
			A int32 `net:"priority=high"`
		}{}, "struct.A: priority=high" + bounds},
		{struct {
			A int32 `net:"priority"`
		}{}, "struct.A: priority=" + bounds},
		{struct {
			A struct {
				B [2]int32 `net:"priority=65"`
			}
		}{}, "struct.A.B: priority=65" + bounds},
		{struct{ A []elem }{}, "A[].N"},
		{struct{ A map[int32]elem }{}, "A[].Value.N"},
		{struct {
			A []struct{ B elem } `net:"priority=3"`
		}{}, "A[].B.N"},
	} {
		refused(t, c.of, c.want)
	}
}

// TestPriorityHoldsForWhatIsInside: of structs, arrays and what else is several values; a tag further in
// stands for itself, and a slice or map is one value.
func TestPriorityHoldsForWhatIsInside(t *testing.T) {
	type vec struct{ X, Y float32 }
	type part struct {
		Own   int32 `net:"priority=1/64"`
		Outer int32
		At    vec
	}
	p, err := Compile(reflect.TypeFor[struct {
		None int32
		Most string           `net:"priority=64"`
		Deep [2]part          `net:"priority=8"`
		Back struct{ V vec }  `net:"priority=1"`
		Grid [2][2]int8       `net:"priority=1/4"`
		Turn [4]float32       `net:"quat=10,priority=0.5"`
		Bag  []plain          `net:"priority=3"`
		Held map[string]plain `net:"priority=5"`
		Foe  Ref              `net:"priority=7"`
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
	all := p.Priorities()
	if len(all) != len(want) || len(all) != p.Leaves() {
		t.Fatalf("%d priorities of %d values, want %d", len(all), p.Leaves(), len(want))
	}
	for i, l := range p.DescribeLeaves() {
		if l.Priority != want[l.Name] || all[i] != l.Priority {
			t.Errorf("%s has priority %v and is described with %v, want %v", l.Name, all[i], l.Priority, want[l.Name])
		}
	}
}

type plain struct{ N int32 }

// TestPriorityIsNoMatterOfTheWire: two builds that differ in it have one fingerprint, and a plan of which nothing is
// said, or only what holds anyway, has none.
func TestPriorityIsNoMatterOfTheWire(t *testing.T) {
	a, err := Compile(reflect.TypeFor[struct {
		A int32 `net:"priority=1"`
		B int32
	}]())
	b, other := Compile(reflect.TypeFor[struct {
		A int32
		B int32 `net:"priority=5"`
	}]())
	if err != nil || other != nil || !reflect.DeepEqual(a.Layout(), b.Layout()) {
		t.Fatalf("%v, %v: the layouts differ: %v and %v", err, other, a.Layout(), b.Layout())
	}
	if a.Priorities() != nil || b.Priorities() == nil {
		t.Errorf("priorities %v and %v", a.Priorities(), b.Priorities())
	}
	bound, err := Bind(b.Type(), a.Layout(), new(Budget))
	if err != nil || bound.Priorities() != nil {
		t.Errorf("what is read in the layout of a server has priorities %v (%v)", bound.Priorities(), err)
	}
}
