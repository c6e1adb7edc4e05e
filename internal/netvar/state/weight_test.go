package state

import (
	"reflect"
	"slices"
	"testing"
)

func TestFieldWeightsMatchTheTags(t *testing.T) {
	type weighted struct {
		A int32   `net:"weight=0.1"`
		B [2]int8 `net:"weight=10"`
		C int32   `net:"weight=64"`
		D bool
	}
	c, err := NewClass("c", reflect.TypeFor[weighted]())
	if err != nil {
		t.Fatal(err)
	}
	if want := []uint32{102, 10 << 10, 10 << 10, 64 << 10, 1 << 10}; !slices.Equal(c.fieldWeights, want) {
		t.Errorf("the weights are %v, want %v", c.fieldWeights, want)
	}
}
