package schema

import (
	"reflect"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/wrapperspb"
	"pgregory.net/rapid"
)

type tableRules struct {
	Name   string
	Seats  uint8
	Packs  []uint16
	Scores map[string]int32
}

// tableRulesToo has the same layout, and so is the same on the way.
type tableRulesToo tableRules

type otherRules struct{ Name string }

// Opening a parcel gives the packed value without shared memory; it cannot be opened as another
// type.
func TestAParcelIsACopy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := tableRules{
			Name: rapid.StringN(0, 20, -1).Draw(t, "name"), Seats: rapid.Uint8().Draw(t, "seats"),
			Packs:  rapid.SliceOfN(rapid.Uint16(), 1, 8).Draw(t, "packs"),
			Scores: rapid.MapOfN(rapid.StringN(1, 5, -1), rapid.Int32(), 1, 4).Draw(t, "scores"),
		}
		for _, v := range []any{want, &want} {
			p, err := Pack(v)
			if err != nil {
				t.Fatal(err)
			}
			var a, b tableRules
			if err := p.Into(&a); err != nil || !reflect.DeepEqual(a, want) {
				t.Fatalf("opened %+v, %v, want %+v", a, err, want)
			}
			a.Packs[0]++
			if v, ok, err := p.OpenAs(reflect.TypeFor[tableRulesToo]()); !ok || err != nil || v.(*tableRulesToo).Packs[0] != want.Packs[0] {
				t.Fatalf("opened again %+v, %v, %v", b, ok, err)
			}
			var other otherRules
			if err := p.Into(&other); err == nil {
				t.Fatal("it opens as another type")
			}
		}
	})
	m := wrapperspb.String("hi")
	p, err := Pack(m)
	if err != nil {
		t.Fatal(err)
	}
	got := wrapperspb.String("before")
	if err := p.Into(got); err != nil || got.Value != "hi" {
		t.Errorf("a protobuf message: %v, %v", got, err)
	}
	if err := p.Into(wrapperspb.Int32(1)); err == nil {
		t.Error("it opens as another message")
	}
}

// A value that cannot be packed or opened is an error and no panic.
func TestInvalidParcels(t *testing.T) {
	for _, v := range []any{7, "text", (*tableRules)(nil), struct{ C chan int }{}, func() {}, []tableRules{}} {
		if p, err := Pack(v); err == nil {
			t.Errorf("%T packs as %q", v, p)
		}
	}
	if p, err := Pack(nil); p != "" || err != nil {
		t.Errorf("nothing packs as %q, %v", p, err)
	}
	p, _ := Pack(tableRules{Name: "a"})
	if v, ok, err := p.OpenAs(reflect.TypeFor[struct{ C chan int }]()); v != nil || ok || err == nil {
		t.Errorf("it opens as a channel, %v, %v, %v", v, ok, err)
	}
	for name, to := range map[string]any{"nothing": nil, "a value": tableRules{}, "a nil pointer": (*tableRules)(nil), "a number": new(int)} {
		if err := p.Into(to); err == nil {
			t.Errorf("it opens into %s", name)
		}
	}
	var r tableRules
	for n := range len(p) {
		if err := p[:n].Into(&r); err == nil {
			t.Errorf("%d of %d bytes open", n, len(p))
		}
	}
	if err := (p + "x").Into(&r); err == nil || strings.Contains(err.Error(), "they are no") {
		t.Errorf("with a byte more: %v", err)
	}
}
