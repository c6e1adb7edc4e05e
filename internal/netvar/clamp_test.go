package netvar

import (
	"reflect"
	"slices"
	"testing"
	"unsafe"

	"github.com/netloop/netloop/internal/netvar/state"
)

func TestClampedFieldsAreNamedOnce(t *testing.T) {
	type clampState struct {
		Pos  struct{ X, Y float32 } `net:"quant=1,range=0:10"`
		Tags []struct {
			Name string `net:"max=2"`
		}
	}
	c, err := state.NewClass("c", reflect.TypeFor[clampState]())
	if err != nil {
		t.Fatal(err)
	}
	w := NewWorld(state.NewTable(c))
	var told []string
	w.OnClamp(func(class, field string) { told = append(told, class+"."+field) })
	s := new(clampState)
	o := w.Spawn(c, unsafe.Pointer(s), 0, 1)
	for tick := range uint64(200) {
		w.Edit(o)
		if s.Pos.X = 11; tick > 2 {
			s.Tags = []struct {
				Name string `net:"max=2"`
			}{{"long"}}
		}
		w.Capture(tick + 1)
	}
	if want := []string{"c.Pos.X", "c.Tags"}; !slices.Equal(told, want) {
		t.Errorf("told of %v, want %v", told, want)
	}
	if want := uint64(200 + 197); w.Stats().Clamped != want {
		t.Errorf("%d values clamped, want %d", w.Stats().Clamped, want)
	}
	if looks := w.clamps[0].asked; looks != maxClampLooks {
		t.Errorf("asked %d times", looks)
	}
}
