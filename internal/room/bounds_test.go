package room_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/golden"
	"github.com/netloop/netloop/internal/input"
	"github.com/netloop/netloop/internal/inside"
	"github.com/netloop/netloop/internal/room"
	"github.com/netloop/netloop/internal/rpcqueue"
	"github.com/netloop/netloop/internal/transport"
)

// TestTheEndsOfRangesAreAllowed: what the documentation calls a range has its ends in it.
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
	if k := netloop.NewCall[struct{ N uint64 }, struct{ N uint64 }](sc, "none"); inside.Netloop.Method(k).Timeout != 10*time.Second {
		t.Errorf("a call without a timeout waits for %v", inside.Netloop.Method(k).Timeout)
	}
}

// TestTheFirstReasonToCloseARoomCounts: a game that closes its room twice has said the first.
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

// TestAJoinWithoutParamsLeavesThemAlone: a client need not give any.
func TestAJoinWithoutParamsLeavesThemAlone(t *testing.T) {
	params := struct{ Team string }{"red"}
	if err := new(netloop.Join).Params(&params); err != nil || params.Team != "red" {
		t.Errorf("%v, %+v", err, params)
	}
}

// TestADrainingServerTurnsAwayAtBothDoors: before the tables of its schema are read, and after.
func TestADrainingServerTurnsAwayAtBothDoors(t *testing.T) {
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

// TestTheBoundsAreThoseOfTheTable: what docs/ARCHITECTURE.md says of a limit is so.
func TestTheBoundsAreThoseOfTheTable(t *testing.T) {
	row := func(subject, says string, bounds ...any) {
		t.Helper()
		golden.Row(t, "../../docs/ARCHITECTURE.md", subject, says, bounds...)
	}
	row("work given to `Go`", "%v |", room.MaxAsync)
	row("posted messages", "%v;", room.MaxPosts)
	row("answers to calls that reach no handler", "%v per client and tick", room.MaxRefusals)
	row("players thrown out with `CODE_FLOOD`", "none for %v |", room.FloodPenalty)
	row("joins from an address where somebody was, without a subject, for 10 s",
		"each waits %v, and %v after the one before; %v at most", room.FloodWait, room.FloodSpacing, room.MaxFloodWait)
	row("such players and addresses", "%v |", room.MaxPenalties)
	row("acknowledgements of what was never sent, per client", "%v ranges", room.MaxUnsentAcks)
	row("digests, per client", "one request a second, of %v snapshots", room.MaxDigests)
	row("full states, all clients", "%v a tick |", room.MaxFulls)
	row("joins and returns, all clients", "%v a tick |", room.MaxEntering)
	row("inputs that wait for their step, per client", "one for each of the %v steps after the newest that has run, %v bytes each, %v in all |",
		input.Window, input.MaxSize, golden.Bytes(input.MaxMemory))
	row("inputs in a datagram", "%v, in %v bytes |", input.Repeats, input.MaxPacket)
	row("inputs that a client keeps", "its %v newest |", input.Kept)
	row("lines about stalls", "one per stall, one in %v while it lasts; %v clients by name", room.StallLongest, room.StallNames)
	row("questions for `/loop` and `/explain`", "%v at once", room.MaxQuestions)
}
