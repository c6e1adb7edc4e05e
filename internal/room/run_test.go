package room_test

import (
	"context"
	"slices"
	"testing"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/transport"
)

// TestWorkOfTheLastLeaveIsFinished saves a player from OnLeave while the room
// ends.
func TestWorkOfTheLastLeaveIsFinished(t *testing.T) {
	var calls []string
	b := newBare(t, func(r *netloop.Room) {
		r.OnLeave(func(tick *netloop.Tick, _ *netloop.Client, _ *netloop.Closed) {
			netloop.Go(tick, func(ctx context.Context) (string, error) { return "saved", ctx.Err() },
				func(_ *netloop.Tick, s string, err error) {
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
	if err := b.room.Finish(transport.CodeClosing, "bye"); err != nil {
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
	system := func(r *netloop.Room, name string, o ...netloop.SystemOption) *netloop.System {
		return r.On(netloop.Update, name, func(*netloop.Tick) {}, append(o, netloop.OnRemove(func() {
			if calls = append(calls, name); name == "panics" {
				panic("at the end")
			}
		}))...)
	}
	b := newBare(t, func(r *netloop.Room) {
		gone := system(r, "gone")
		system(r, "late", netloop.Priority(netloop.Last))
		system(r, "panics")
		system(r, "early", netloop.Priority(netloop.First))
		r.OnStart(func(*netloop.Tick) { gone.Remove() })
		r.OnLeave(func(*netloop.Tick, *netloop.Client, *netloop.Closed) {
			calls = append(calls, "left")
			system(r, "waits")
		})
		r.OnClose(func(context.Context) error { calls = append(calls, "closed"); return nil })
	})
	b.join()
	b.step()
	if err := b.room.Finish(transport.CodeClosing, "bye"); err != nil {
		t.Error(err)
	}
	if want := []string{"gone", "left", "late", "panics", "early", "waits", "closed"}; !slices.Equal(calls, want) {
		t.Errorf("called %v, want %v", calls, want)
	}
	if !b.scraped(`netloop_system_panics_total{system="panics"} 1`) {
		t.Error("the panic is not counted")
	}
}
