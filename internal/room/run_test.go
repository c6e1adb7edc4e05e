package room_test

import (
	"context"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/clock"
	"github.com/netloop/netloop/internal/overload"
	"github.com/netloop/netloop/internal/room"
	"github.com/netloop/netloop/internal/transport"
)

// TestWorkOfTheLastLeaveIsFinished saves a player from OnLeave while the room ends.
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
		r.OnClose(func(context.Context, *netloop.Closed) error { calls = append(calls, "closed"); return nil })
	})
	s := b.join()
	b.step()
	if err := b.room.Shutdown.Finish(transport.CodeClosing, "bye"); err != nil {
		t.Fatal(err)
	}
	if len(calls) != 2 || calls[0] != "saved" || calls[1] != "closed" {
		t.Errorf("called: %v", calls)
	}
	if c, closing := s.Cause(); !closing || c.Text != "bye" {
		t.Errorf("the client was told %v", c)
	}
}

// TestSystemsAreToldOfTheEnd ends a room with running, waiting and removed systems.
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
		system(r, "late", netloop.Priority(netloop.PriorityLast))
		system(r, "panics")
		system(r, "early", netloop.Priority(netloop.PriorityFirst))
		r.OnStart(func(*netloop.Tick) { gone.Remove() })
		r.OnLeave(func(*netloop.Tick, *netloop.Client, *netloop.Closed) {
			calls = append(calls, "left")
			system(r, "waits")
		})
		r.OnClose(func(context.Context, *netloop.Closed) error { calls = append(calls, "closed"); return nil })
	})
	b.join()
	b.step()
	if err := b.room.Shutdown.Finish(transport.CodeClosing, "bye"); err != nil {
		t.Error(err)
	}
	if want := []string{"gone", "left", "late", "panics", "early", "waits", "closed"}; !slices.Equal(calls, want) {
		t.Errorf("called %v, want %v", calls, want)
	}
	if !b.scraped(`netloop_system_panics_total{system="panics"} 1`) {
		t.Error("the panic is not counted")
	}
}

// The level of overload after a tick enters the next one.
func TestAPacedTickRunsAtTheLevelOfOverload(t *testing.T) {
	clock := new(handClock)
	b := newBare(t, func(r *netloop.Room) {
		r.On(netloop.Update, "test.slow", func(*netloop.Tick) { clock.now += 20 * time.Millisecond })
	})
	b.server.UseClock(clock)
	for b.room.Load.Next() == 0 && b.tick < 600 {
		b.step()
	}
	next := overload.Level(b.room.Load.Next())
	if next == overload.Normal || b.room.Load.Level() != overload.Normal {
		t.Fatalf("%v after %d ticks that take too long, and %v is next", b.room.Load.Level(), b.tick, next)
	}
	if err := b.room.Paced(b.room.Timeline().Input(b.tick + 1)); err != nil || b.room.Load.Level() != next {
		t.Errorf("the next tick runs at %v, want %v: %v", b.room.Load.Level(), next, err)
	}
}

// An overloaded room sends a client each second snapshot, and the windows of present and new
// clients use that period.
func TestTheWindowGoesByTheTimeBetweenSnapshots(t *testing.T) {
	b := newBareAs(t, netloop.Config{Room: netloop.RoomSpec{Rate: netloop.Hz(50), SendEvery: 3}}, func(*netloop.Room) {})
	for _, c := range []struct {
		level overload.Level
		want  time.Duration
	}{{overload.Normal, 60 * time.Millisecond}, {overload.Halved, 120 * time.Millisecond}, {overload.Normal, 60 * time.Millisecond}} {
		b.join()
		b.tick++
		in := b.room.Timeline().Input(b.tick)
		in.Overload = uint8(c.level)
		if err := b.room.Step(in); err != nil {
			t.Fatal(err)
		}
		for _, client := range b.room.Clients() {
			if got := client.SendPeriod(); got != c.want {
				t.Errorf("%v: client %d is to get a snapshot every %v, want %v", c.level, client.ID(), got, c.want)
			}
		}
	}
}

// A room that has failed is closed, with the reason, and no drain is announced before: no tick
// follows in which the game could react.
func TestARoomThatHasFailedIsNotDrained(t *testing.T) {
	var calls []string
	b := newBare(t, func(r *netloop.Room) {
		r.On(netloop.Update, "heart", func(*netloop.Tick) { panic("stops") }, netloop.Critical())
		r.OnDrain(func(*netloop.Tick, time.Duration) { calls = append(calls, "drain") })
		r.OnLeave(func(_ *netloop.Tick, _ *netloop.Client, why *netloop.Closed) {
			calls = append(calls, "leave: "+why.Code.String())
		})
		r.OnClose(func(context.Context, *netloop.Closed) error { calls = append(calls, "close"); return nil })
	})
	b.server.UseClock(clock.NewVirtual())
	b.join()
	err := b.room.Play(t.Context())
	if want := []string{"leave: " + netloop.CodeInternal.String(), "close"}; err == nil || !slices.Equal(calls, want) {
		t.Errorf("called %q, want %q: %v", calls, want, err)
	}
}

// A drain lingers while clients are in the room until its limit, which a later End only shortens.
func TestADrainLingersForClientsUntilItsLimit(t *testing.T) {
	b := newBare(t, func(*netloop.Room) {})
	b.server.UseClock(new(handClock))
	b.room.Supervisor.End(room.End{Drain: time.Hour})
	if b.room.Shutdown.Lingers(0) {
		t.Error("a drain waits for nobody")
	}
	b.join()
	b.step()
	if !b.room.Shutdown.Lingers(time.Hour-1) || b.room.Shutdown.Lingers(time.Hour) {
		t.Error("a drain does not wait for a client until its limit")
	}
	b.room.Supervisor.End(room.End{Drain: 2 * time.Hour})
	if !b.room.Shutdown.Lingers(time.Hour-1) || b.room.Shutdown.Lingers(time.Hour) {
		t.Error("a drain becomes longer")
	}
	b.room.Supervisor.End(room.End{Drain: time.Minute, Why: transport.Closed{Text: "other"}})
	if !b.room.Shutdown.Lingers(time.Minute-1) || b.room.Shutdown.Lingers(time.Minute) || b.room.Supervisor.Ending().Why.Text != "" {
		t.Errorf("a drain that was shortened ends by %v, %q", b.room.Supervisor.Ending().By, b.room.Supervisor.Ending().Why.Text)
	}
	b.room.Supervisor.End(room.End{Drain: -1})
	if b.room.Shutdown.Lingers(0) {
		t.Error("a drain without any time waits")
	}
}

// A drain of the maximum duration does not end at once.
func TestAnEndlessDrainLingers(t *testing.T) {
	b := newBare(t, func(*netloop.Room) {})
	b.join()
	b.step()
	b.room.Supervisor.End(room.End{Drain: math.MaxInt64})
	if !b.room.Shutdown.Lingers(time.Hour) {
		t.Errorf("it ends by %v", b.room.Supervisor.Ending().By)
	}
}

// The time limit of a room's end is measured on the room's clock from the start of the end,
// whatever that clock shows.
func TestTheEndOfARoomIsTimed(t *testing.T) {
	var b *bare
	clock := new(handClock)
	b = newBare(t, func(r *netloop.Room) {
		r.OnClose(func(context.Context, *netloop.Closed) error {
			clock.now += 7
			return nil
		})
	})
	b.server.UseClock(clock)
	if since, ends := b.room.Shutdown.Finishing(); ends || since != 0 {
		t.Errorf("before its end it has been ending for %v, %v", since, ends)
	}
	if err := b.room.Shutdown.Finish(transport.CodeClosing, "bye"); err != nil {
		t.Fatal(err)
	}
	if since, ends := b.room.Shutdown.Finishing(); !ends || since != 7 {
		t.Errorf("it has been ending for %v, %v", since, ends)
	}
}
