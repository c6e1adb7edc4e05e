package client

import (
	"slices"
	"testing"

	"github.com/netloop/netloop/internal/rpcqueue"
)

func TestWhatIsHeldIsBoundedInTicks(t *testing.T) {
	var h held
	var ran []int
	run := func(it rpcqueue.Item) { ran = append(ran, it.Msg.(int)) }
	for i := range 3 {
		came := uint64(1000 + 50*i)
		if !h.hold(heldMessage{item: rpcqueue.Item{Msg: i}, tick: 1010, came: came}, run) {
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

func TestWhatIsHeldRunsInTheOrderInWhichItCame(t *testing.T) {
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
