package codec

import (
	"reflect"
	"testing"
)

// Fields under one interval are held back together only if the same clients may read them.
func TestFieldsOfDifferentReadersAreHeldBackApart(t *testing.T) {
	type fields struct {
		All struct {
			A int32
			B int32 `net:"read=owner"`
			C int32
			D int32 `net:"read=owner"`
			E int32 `net:"read=team"`
		} `net:"interval=50ms"`
	}
	p, err := Compile(reflect.TypeFor[fields]())
	if err != nil {
		t.Fatal(err)
	}
	var got [][]int
	for i := range p.groups {
		if p.groups[i].at != i {
			t.Errorf("group %d has the place %d", i, p.groups[i].at)
		}
		got = append(got, p.groups[i].leaves)
	}
	if want := [][]int{{0, 2}, {1, 3}, {4}}; !reflect.DeepEqual(got, want) {
		t.Errorf("the groups are %v, want %v", got, want)
	}
}
