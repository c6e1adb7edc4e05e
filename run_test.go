package netloop

import (
	"context"
	"slices"
	"testing"

	"github.com/netloop/netloop/internal/transport"
)

// TestWorkOfTheLastLeaveIsFinished saves a player from OnLeave while the room
// ends.
func TestWorkOfTheLastLeaveIsFinished(t *testing.T) {
	var calls []string
	b := newBare(t, func(r *Room) {
		r.OnLeave(func(tick *Tick, _ *Client, _ LeaveReason) {
			Go(tick, func(ctx context.Context) (string, error) { return "saved", ctx.Err() },
				func(_ *Tick, s string, err error) {
					if err != nil {
						t.Errorf("saving: %v", err)
					}
					calls = append(calls, s)
				})
		})
		r.OnClose(func(context.Context) error { calls = append(calls, "closed"); return nil })
	})
	s := b.join()
	b.step()
	if err := b.s.room.finish(LeaveReason{transport.CodeClosing, "bye"}); err != nil {
		t.Fatal(err)
	}
	if len(calls) != 2 || calls[0] != "saved" || calls[1] != "closed" {
		t.Errorf("called: %v", calls)
	}
	if c, closing := s.Cause(); !closing || c.Text != "bye" {
		t.Errorf("the client was told %v", c)
	}
}

// TestSystemsAreToldOfTheEnd ends a room with systems that run, that wait and that have
// been removed.
func TestSystemsAreToldOfTheEnd(t *testing.T) {
	var calls []string
	system := func(r *Room, name string, o ...SystemOption) *System {
		return r.On(Update, name, func(*Tick) {}, append(o, OnRemove(func() {
			if calls = append(calls, name); name == "panics" {
				panic("at the end")
			}
		}))...)
	}
	b := newBare(t, func(r *Room) {
		gone := system(r, "gone")
		system(r, "late", Priority(Last))
		system(r, "panics")
		system(r, "early", Priority(First))
		r.OnStart(func(*Tick) { gone.Remove() })
		r.OnLeave(func(*Tick, *Client, LeaveReason) {
			calls = append(calls, "left")
			system(r, "waits")
		})
		r.OnClose(func(context.Context) error { calls = append(calls, "closed"); return nil })
	})
	b.join()
	b.step()
	if err := b.s.room.finish(LeaveReason{transport.CodeClosing, "bye"}); err != nil {
		t.Error(err)
	}
	if want := []string{"gone", "left", "late", "panics", "early", "waits", "closed"}; !slices.Equal(calls, want) {
		t.Errorf("called %v, want %v", calls, want)
	}
	if !b.scraped(`netloop_system_panics_total{system="panics"} 1`) {
		t.Error("the panic is not counted")
	}
}
