package netloop

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/netloop/netloop/internal/rpcqueue"
)

// TestTheEndsOfRangesAreAllowed: what the documentation calls a range has its ends in it.
func TestTheEndsOfRangesAreAllowed(t *testing.T) {
	sc := NewSchema("ends", 1, 0)
	for name, o := range map[string]RPCOption{
		"one":  LimitPerTick(1),
		"most": LimitPerTick(rpcqueue.MaxBurst),
		"ms":   Timeout(time.Millisecond),
		"hour": Timeout(time.Hour),
	} {
		NewCall[struct{ N uint64 }, struct{ N uint64 }](sc, name, o)
	}
	if k := NewCall[struct{ N uint64 }, struct{ N uint64 }](sc, "none"); k.m.Timeout != 10*time.Second {
		t.Errorf("a call without a timeout waits for %v", k.m.Timeout)
	}
}

// TestTheFirstReasonToCloseARoomCounts: a game that closes its room twice has said the first.
func TestTheFirstReasonToCloseARoomCounts(t *testing.T) {
	b := newBare(t, func(r *Room) {
		r.On(Update, "test.close", func(tick *Tick) {
			r.Close(tick, CodeGame, "first")
			r.Close(tick, CodeGame+1, "second")
		})
	})
	in := b.s.room.timeline().Input(1)
	var closed *Closed
	if err := b.s.room.step(in); !errors.As(err, &closed) || closed.Code != CodeGame || closed.Text != "first" {
		t.Errorf("closed with %v", err)
	}
}

// TestAJoinWithoutParamsLeavesThemAlone: a client need not give any.
func TestAJoinWithoutParamsLeavesThemAlone(t *testing.T) {
	params := struct{ Team string }{"red"}
	if err := new(Join).Params(&params); err != nil || params.Team != "red" {
		t.Errorf("%v, %+v", err, params)
	}
}

// TestADrainingServerTurnsAwayAtBothDoors: before the tables of its schema are read, and after.
func TestADrainingServerTurnsAwayAtBothDoors(t *testing.T) {
	b := newBare(t, func(*Room) {})
	b.s.draining.Store(true)
	if _, err := (admission{b.s}).Tables(bareSchema.s.Hello()); !errors.Is(err, errDraining) {
		t.Errorf("the tables: %v", err)
	}
	if _, err := b.s.admit(context.Background(), bareSchema.s.Hello(), "here"); !errors.Is(err, errDraining) {
		t.Errorf("the admission: %v", err)
	}
}
