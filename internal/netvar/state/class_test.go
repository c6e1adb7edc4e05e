package state

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// wordsClass makes a class of a text of at most so many bytes and of so many flags.
func wordsClass(text, flags int) (*Class, error) {
	fields := []reflect.StructField{{
		Name: "Text", Type: reflect.TypeFor[string](), Tag: reflect.StructTag(fmt.Sprintf(`net:"max=%d"`, text)),
	}}
	for i := range flags {
		fields = append(fields, reflect.StructField{Name: fmt.Sprint("F", i), Type: reflect.TypeFor[bool]()})
	}
	return NewClass("c", reflect.StructOf(fields))
}

// The maximum size of a class is compared exactly with the room in a packet and in a frame: each
// flag takes one or two bits, so the longest text that fits shrinks by a byte with every few flags.
func TestLimitsOfClassesGoByTheBit(t *testing.T) {
	longest := func(from int, fits func(*Class, error) bool) (all []int) {
		for flags := range 12 {
			n := from
			for ; !fits(wordsClass(n, flags)); n-- {
			}
			all = append(all, n)
		}
		return all
	}
	small := longest(1010, func(c *Class, err error) bool { return err == nil && !c.Large })
	if want := []int{1003, 1002, 1002, 1002, 1002, 1002, 1002, 1002, 1000, 1000, 1000, 1000}; !slices.Equal(small, want) {
		t.Errorf("in packets go texts of %v bytes, want %v", small, want)
	}
	large := longest(15300, func(_ *Class, err error) bool { return err == nil })
	if want := []int{15292, 15292, 15292, 15292, 15292, 15291, 15291, 15291, 15290, 15290, 15290, 15290}; !slices.Equal(large, want) {
		t.Errorf("at all go texts of %v bytes, want %v", large, want)
	}
	light := longest(3010, func(c *Class, err error) bool { return err == nil && !c.Heavy })
	if want := []int{3006, 2997, 2988, 2979, 2970, 2961, 2952, 2943, 2934, 2925, 2916, 2907}; !slices.Equal(light, want) {
		t.Errorf("all of the horizon is kept of texts of %v bytes, want %v", light, want)
	}
	_, err := wordsClass(15400, 3)
	if err == nil || !strings.Contains(err.Error(), "a value may take 15415 bytes and there is room for 15307; the largest field is Text: ") {
		t.Errorf("error %v", err)
	}
}

// Fields inside a list cannot have intervals, because a list is captured as a whole.
func TestAFieldInAListHasNoInterval(t *testing.T) {
	_, err := NewClass("c", reflect.TypeFor[struct {
		List []struct {
			X int32 `net:"interval=100ms"`
		}
	}]())
	if err == nil || !strings.HasPrefix(err.Error(), "field List[].X is in a slice or map") {
		t.Errorf("error %v", err)
	}
}
