package input

import (
	"testing"
	"unsafe"

	"github.com/netloop/netloop/internal/testing/golden"
)

// wireExample is the input of the examples in the description of the wire.
type wireExample struct {
	Turn int8
	Aim  float32 `net:"quant=1/64"`
	Fire bool
}

// TestGoldenVectorsOfTheDescription compares the examples in docs/ with the output of the code.
func TestGoldenVectorsOfTheDescription(t *testing.T) {
	f := formOf(t, wireExample{})
	ring := NewRing(f, hz60)
	add := func(step uint64, in wireExample, view View) {
		f.plan.Capture(unsafe.Pointer(&in), ring.Add(step, view))
	}
	add(297, wireExample{Turn: -1}, View{})
	add(299, wireExample{Turn: 1, Aim: 0.5}, View{288, 289, 0.25})
	add(300, wireExample{Turn: 1, Aim: 0.75, Fire: true}, View{289, 290, 0.25})
	add(301, wireExample{Turn: 1, Aim: 1, Fire: true}, View{290, 291, 0.5})
	for name, want := range map[string][]byte{"inputs": ring.AppendPacket(nil, MaxPacket)} {
		if got := golden.Example(t, "../../docs/WIRE.md", name); string(got) != string(want) {
			t.Errorf("docs/WIRE.md: %s\nthere % x\nhere  % x", name, got, want)
		}
	}
}
