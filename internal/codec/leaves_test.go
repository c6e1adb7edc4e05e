package codec

import (
	"reflect"
	"testing"
)

// TypeOf finds a leaf by its Go name, with any name on the wire and at any depth.
func TestTypeOfIsTheLeafsOwn(t *testing.T) {
	type inner struct {
		X    float32 `net:"quant=1/8,range=-2:2"`
		Name string  `net:"max=5,name=Title"`
	}
	p, err := Compile(reflect.TypeFor[struct {
		At   [2]inner
		Key  [4]byte
		Bag  []inner        `net:"max=3"`
		Hold map[string]int `net:"max=2,each=9"`
		Turn [4]float32     `net:"quat=10"`
		Seen map[int8]struct{}
		Last uint8
	}]())
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"At[0].X": "float32 quant=1/8 steps=-16:16", "At[1].X": "float32 quant=1/8 steps=-16:16", "At[1].Name": "string max=5",
		"Key": "[4]byte", "Bag": "[]{X float32 quant=1/8 steps=-16:16; Title string max=5} max=3", "Hold": "map[string max=9]int64 max=2",
		"Turn": "quat bits=10", "Seen": "set[int8] max=64", "Last": "uint8", "At": "", "Nothing": "",
	} {
		if got := p.TypeOf(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}
