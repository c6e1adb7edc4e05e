package client

import (
	"math"
	"slices"
	"testing"

	"github.com/netloop/netloop/internal/rpcqueue"
)

func TestHeldMessagesAreBoundedInTicks(t *testing.T) {
	var h held
	var ran []int
	run := func(it rpcqueue.Item) { ran = append(ran, it.Msg.(int)) }
	for i := range 3 {
		came := uint64(1000 + 50*i)
		if !h.hold(heldMessage{item: rpcqueue.Item{Msg: i}, tick: 1010, arrived: came}, run) {
			t.Fatal("its state cannot be there")
		}
	}
	h.reached(1009, run)
	h.expire(1119, run)
	if len(ran) != 0 {
		t.Errorf("ran %v before its time", ran)
	}
	h.expire(1120, run)
	if !slices.Equal(ran, []int{0}) || h.early != 1 {
		t.Errorf("after 120 ticks ran %v, %d early", ran, h.early)
	}
	h.reached(1010, run)
	if !slices.Equal(ran, []int{0, 1, 2}) || h.early != 1 || h.bytes != 0 {
		t.Errorf("with its state ran %v, %d early, %d bytes are left", ran, h.early, h.bytes)
	}
	if h.hold(heldMessage{tick: 1010}, run) {
		t.Error("held although its state is there")
	}
}

// Beyond its bounds the oldest run without their state, and no more of them than must.
func TestHeldMessagesAreBoundedInNumberAndBytes(t *testing.T) {
	var h held
	ran := 0
	run := func(rpcqueue.Item) { ran++ }
	hold := func(n, size, wantRan, wantBytes int) {
		t.Helper()
		for range n {
			h.hold(heldMessage{tick: 5, size: size}, run)
		}
		if ran != wantRan || h.bytes != wantBytes || h.early != uint64(ran) {
			t.Fatalf("%d ran, %d counted as early, %d bytes wait, want %d and %d", ran, h.early, h.bytes, wantRan, wantBytes)
		}
	}
	hold(256, 1, 0, 256)
	hold(1, 1, 1, 256)
	hold(1, 1<<16-255, 2, 1<<16)
	hold(1, 0, 3, 1<<16-1)
	hold(1, 2, 4, 1<<16)
	hold(1, 1<<16+1, 260, 1<<16+1) // A message larger than the limit waits alone.
	if h.expire(math.MaxUint64, run); ran != 261 || h.bytes != 0 || h.early != 261 {
		t.Errorf("at the end %d ran, %d bytes are left, %d early", ran, h.bytes, h.early)
	}
}

func TestHeldMessagesRunInOrderOfArrival(t *testing.T) {
	var h held
	var ran []int
	run := func(it rpcqueue.Item) { ran = append(ran, it.Msg.(int)) }
	for i, tick := range []uint64{7, 5, 6} { // Datagrams overtake each other.
		h.hold(heldMessage{item: rpcqueue.Item{Msg: i}, tick: tick}, run)
	}
	h.reached(6, run)
	h.reached(5, run)
	if len(ran) != 0 {
		t.Errorf("ran %v, the first still waits", ran)
	}
	h.reached(9, run)
	if !slices.Equal(ran, []int{0, 1, 2}) {
		t.Errorf("ran %v", ran)
	}
}
