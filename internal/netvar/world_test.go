package netvar

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/netloop/netloop/internal/netvar/packet"
	"github.com/netloop/netloop/internal/netvar/state"
)

// The largest class for packets fits one in the worst case, and fills it except for the heads: with
// one byte more its records need the stream.
func TestClassesThatFitAPacketAreNotLarge(t *testing.T) {
	spawn := func(n int) (large bool, data []byte, waited uint64) {
		typ := reflect.StructOf([]reflect.StructField{{
			Name: "B", Type: reflect.TypeFor[string](), Tag: reflect.StructTag(fmt.Sprintf(`net:"max=%d"`, n)),
		}})
		c, err := state.NewClass("c", typ)
		if err != nil {
			t.Fatal(err)
		}
		w := NewWorld(state.NewTable(c))
		v := reflect.New(typ)
		v.Elem().Field(0).SetString(strings.Repeat("x", n))
		w.Spawn(c, v.UnsafePointer(), math.MaxUint64, 1)
		w.Capture(1 << 60)
		packets, _ := snap(w.NewPeer(1<<60), 1<<62, Limit{Packets: 1, PacketSize: packet.MaxSize})
		return c.Large, packets[0], w.stats.Waited
	}
	n := 900
	for large := false; !large; n++ {
		var bytes []byte
		var waited uint64
		if large, bytes, waited = spawn(n); large {
			break
		}
		if waited != 0 || len(bytes) > packet.MaxSize {
			t.Fatalf("%d bytes: %d waited, the packet has %d", n, waited, len(bytes))
		}
	}
	if _, bytes, _ := spawn(n - 1); len(bytes) < packet.MaxSize-packet.MaxHeader-packet.MaxHead {
		t.Errorf("the largest that goes in packets has %d bytes, and its packet %d", n-1, len(bytes))
	}
}

// Of fields that have changed in one tick LastChanged returns the first, and the owner only if it
// is alone.
func TestTheFirstOfTheLastChangedFieldsIsNamed(t *testing.T) {
	for _, c := range []struct {
		changed []uint64 // by field; the owner first
		among   []int
		want    int
	}{
		{[]uint64{5, 5, 5}, []int{0, 1, 2}, 1},
		{[]uint64{5, 5, 5}, []int{2, 1}, 2},
		{[]uint64{5, 4, 4}, []int{0, 1, 2}, 0},
		{[]uint64{5, 4, 6}, []int{0, 1, 2}, 2},
		{[]uint64{9, 4, 4}, []int{1, 2}, 1},
	} {
		if got := (&state.Object{Fields: c.changed}).LastChanged(c.among); got != c.want {
			t.Errorf("%v among %v: field %d, want %d", c.changed, c.among, got, c.want)
		}
	}
}
