package client

import (
	"errors"
	"log/slog"
	"reflect"
	"testing"
	"time"
	"unsafe"

	"github.com/netloop/netloop/internal/clock"
	"github.com/netloop/netloop/internal/netvar"
	"github.com/netloop/netloop/internal/netvar/packet"
	"github.com/netloop/netloop/internal/netvar/replica"
	"github.com/netloop/netloop/internal/netvar/state"
	"github.com/netloop/netloop/internal/transport"
)

// Every third refusal requests the full state, but each request waits twice as long as the one
// before, up to a minute: a fault that the full state does not repair must not cost the server one
// each second.
func TestRefusalsAskLessAndLess(t *testing.T) {
	var r refusals
	var asked []time.Duration
	for now := time.Duration(0); now < 5*time.Minute; now += 100 * time.Millisecond {
		if r.refused(now) {
			asked = append(asked, now)
		}
	}
	want := []int64{200, 1200, 3200, 7200, 15200, 31200, 63200, 123200, 183200, 243200}
	if len(asked) != len(want) {
		t.Fatalf("asked at %v", asked)
	}
	for i := range want {
		if asked[i].Milliseconds() != want[i] {
			t.Errorf("asked at %v, want %v ms", asked, want)
		}
	}
	if !r.refused(20*time.Minute) || r.wait != time.Second {
		t.Errorf("after a long quiet it waits %v", r.wait)
	}
	for n := range 3 {
		if ask := r.refused(20*time.Minute + 61*time.Second); ask != (n == 2) || ask && r.wait != 2*time.Second {
			t.Errorf("a minute after it might: refusal %d asks %v, and waits %v", n, ask, r.wait)
		}
	}
	for n := range 3 {
		if ask := r.refused(20*time.Minute + 123*time.Second + 1); ask != (n == 2) || ask && r.wait != time.Second {
			t.Errorf("a moment more than a minute: refusal %d asks %v, and waits %v", n, ask, r.wait)
		}
	}
}

// Only a state that does not fit makes the client drop its baselines, since the full state repairs
// all other cases.
func TestNoRoomLetsGoOfBaselines(t *testing.T) {
	type buoy struct{ X int32 }
	class, err := state.NewClass("buoy", reflect.TypeFor[buoy]())
	if err != nil {
		t.Fatal(err)
	}
	for _, cause := range []error{replica.ErrMemory, replica.ErrBaseline} {
		world := netvar.NewWorld(state.NewTable(class))
		peer := world.NewPeer(1)
		at := new(buoy)
		o := world.Spawn(class, unsafe.Pointer(at), 0, 1)
		core := &core{log: slog.New(slog.DiscardHandler), clock: clock.NewSystem(), replica: replica.New(state.NewTable(class))}
		r := receiver{core: core, conn: &connection{core: core}}
		r.conn.session, _ = transport.NewSession(transport.SessionConfig{
			Client: true, Inbox: transport.NewInbox(0, nil), Clock: func() time.Duration { return 0 },
		})
		apply := func(tick uint64) error {
			at.X++
			world.Edit(o)
			world.Capture(tick)
			packets, _ := peer.AppendSnapshot(nil, tick, netvar.Limit{Packets: 1, PacketSize: packet.MaxSize})
			_, err := r.replica.Apply(packets[0])
			return err
		}
		if err := apply(1); err != nil {
			t.Fatal(err)
		}
		peer.Ack([]netvar.Range{{First: 1, Last: 1}})
		if err := apply(2); err != nil {
			t.Fatal(err)
		}
		for range refusedBeforeFull {
			r.refuse(cause)
		}
		if err, lost := apply(3), errors.Is(cause, replica.ErrMemory); errors.Is(err, replica.ErrBaseline) != lost || r.stats.FullStates != 1 {
			t.Errorf("after %v a delta from a baseline: %v", cause, err)
		}
	}
}

// No packet of a server raises the progress above 1, or lowers it below 0.
func TestTheProgressIsAShareOfTheTotal(t *testing.T) {
	r := receiver{conn: &connection{state: State{Phase: Loading}}}
	for i, step := range []struct {
		total, left int
		want        float64
	}{{256, 64, 0.75}, {256, 128, 0.75}, {1, 1, 1}, {4, 9, 0.25}, {400, 100, 0.75}} {
		r.progress(&replica.Applied{Total: step.total, Left: step.left})
		if got := r.conn.state.Progress(); got != step.want {
			t.Errorf("packet %d, %d left of %d: %v, want %v", i, step.left, step.total, got, step.want)
		}
	}
}
