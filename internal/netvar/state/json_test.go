package state

import (
	"reflect"
	"slices"
	"testing"

	"github.com/netloop/netloop/internal/codec"
)

func TestWithheldLeavesAreNull(t *testing.T) {
	c, err := NewClass("c", reflect.TypeFor[struct {
		Pos  struct{ X, Y int16 }
		Aim  int8   `net:"read=owner"`
		Name string `net:"max=8"`
	}]())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := c.LeafNames(), []string{"Pos.X", "Pos.Y", "Aim", "Name"}; !slices.Equal(got, want) {
		t.Errorf("leaves %q, want %q", got, want)
	}
	v := codec.Values{Words: []uint64{1, 2, 3, 99}, Blobs: [][]byte{[]byte("\x03ann")}}
	for withheld, want := range map[Rules]string{0: `[1,2,3,"ann"]`, c.AllRules(): `[1,2,null,"ann"]`} {
		if got := string(c.AppendJSON(nil, &v, withheld)); got != want {
			t.Errorf("withheld %b: %s, want %s", withheld, got, want)
		}
	}
}
