package room_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/bridge"
	"github.com/netloop/netloop/internal/rpcqueue"
	"github.com/netloop/netloop/internal/transport"
)

// TestTheEndsOfRangesAreAllowed: a documented range includes its ends.
func TestTheEndsOfRangesAreAllowed(t *testing.T) {
	sc := netloop.NewSchema("ends", 1, 0)
	for name, o := range map[string]netloop.RPCOption{
		"one":  netloop.LimitPerTick(1),
		"most": netloop.LimitPerTick(rpcqueue.MaxBurst),
		"ms":   netloop.Timeout(time.Millisecond),
		"hour": netloop.Timeout(time.Hour),
	} {
		netloop.NewCall[struct{ N uint64 }, struct{ N uint64 }](sc, name, o)
	}
	if k := netloop.NewCall[struct{ N uint64 }, struct{ N uint64 }](sc, "none"); bridge.Netloop.Method(k).Timeout != 10*time.Second {
		t.Errorf("a call without a timeout waits for %v", bridge.Netloop.Method(k).Timeout)
	}
}

// TestTheFirstReasonToCloseARoomCounts: if a game closes its room twice, the first reason counts.
func TestTheFirstReasonToCloseARoomCounts(t *testing.T) {
	b := newBare(t, func(r *netloop.Room) {
		r.On(netloop.Update, "test.close", func(tick *netloop.Tick) {
			r.Close(tick, netloop.CodeGame, "first")
			r.Close(tick, netloop.CodeGame+1, "second")
		})
	})
	in := b.room.Timeline().Input(1)
	var closed *netloop.Closed
	if err := b.room.Step(in); !errors.As(err, &closed) || closed.Code != netloop.CodeGame || closed.Text != "first" {
		t.Errorf("closed with %v", err)
	}
}

// TestAJoinWithoutParamsLeavesThemAlone: params are optional.
func TestAJoinWithoutParamsLeavesThemAlone(t *testing.T) {
	params := struct{ Team string }{"red"}
	if err := new(netloop.Join).Params(&params); err != nil || params.Team != "red" {
		t.Errorf("%v, %+v", err, params)
	}
}

// TestADrainingServerRefusesBeforeAndAfterTheTables: before the tables of its schema are read, and
// after.
func TestADrainingServerRefusesBeforeAndAfterTheTables(t *testing.T) {
	closing := func(err error) bool {
		var refused *transport.Refusal
		return errors.As(err, &refused) && refused.Code == netloop.CodeClosing
	}
	b := newBare(t, func(*netloop.Room) {})
	b.server.EndAdmission(netloop.CodeClosing, "the end")
	if _, err := b.server.Handler.Tables(hello(bareSchema)); !closing(err) {
		t.Errorf("the tables: %v", err)
	}
	if _, err := b.server.Handler.Admit(context.Background(), hello(bareSchema), "here"); !closing(err) {
		t.Errorf("the admission: %v", err)
	}
}
