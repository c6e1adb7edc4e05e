package room_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/room"
)

// handClock is moved by the test.
type handClock struct{ now time.Duration }

func (c *handClock) Now() time.Duration                             { return c.now }
func (c *handClock) Wall() time.Time                                { return time.Unix(0, 0).Add(c.now) }
func (c *handClock) WaitUntil(context.Context, time.Duration) error { panic("nobody waits here") }

// The watchdog reports a closing hook that does not return: each after its own limit. A hook that
// returns in time is no hang, and a hang ends once its hook has returned.
func TestTheWatchdogSeesTheHooksOfTheEnd(t *testing.T) {
	for _, slow := range []bool{false, true} {
		clock := new(handClock)
		var b *bare
		var seen []string
		results := 0
		look := func(allowed time.Duration) {
			if clock.now += (10 * time.Second) + allowed; slow {
				clock.now++
			}
			if h, hung := b.room.Watchdog().Check(clock.now); hung {
				seen = append(seen, h.Hook)
			}
		}
		b = newBare(t, func(r *netloop.Room) {
			r.OnDrain(func(*netloop.Tick, time.Duration) { look(0) })
			r.OnLeave(func(tick *netloop.Tick, _ *netloop.Client, _ *netloop.Closed) {
				look(0)
				if results++; results == 1 {
					netloop.Go(tick, func(context.Context) (int, error) { return 1, nil }, func(*netloop.Tick, int, error) { look(0) })
				}
			})
			r.OnClose(func(context.Context, *netloop.Closed) error { look(room.SaveTimeout); return nil })
			r.OnClose(func(context.Context, *netloop.Closed) error { look(room.SaveTimeout); return nil })
		})
		b.server.UseClock(clock)
		b.join()
		b.join()
		b.step()
		if err := b.room.Shutdown.Drain(0); err != nil {
			t.Fatal(err)
		}
		b.step() // Ticks continue while clients may finish.
		clock.now += time.Hour
		look(0)
		if err := b.room.Shutdown.Finish(netloop.CodeClosing, "the end"); err != nil {
			t.Fatal(err)
		}
		var want []string
		if slow {
			want = []string{"OnDrain", "OnLeave", "OnLeave", "Go", "OnClose", "OnClose"}
		}
		if !slices.Equal(seen, want) || b.room.Watchdog().Err() != nil || b.room.Watchdog().Hangs() != uint64(len(want)) {
			t.Errorf("slow %v: hangs seen in %v, want %v; %d counted, %v is left", slow, seen, want, b.room.Watchdog().Hangs(), b.room.Watchdog().Err())
		}
	}
}

func TestOnCloseFunctionsShareSixtySeconds(t *testing.T) {
	var ends []time.Time
	c := newClosing(t, func(r *netloop.Room) {
		for range 2 {
			r.OnClose(func(ctx context.Context, _ *netloop.Closed) error {
				end, _ := ctx.Deadline()
				ends = append(ends, end)
				return nil
			})
		}
	})
	before := time.Now()
	c.finish()
	if len(ends) != 2 || ends[0] != ends[1] || ends[0].Before(before.Add(60*time.Second)) || ends[0].After(before.Add(90*time.Second)) {
		t.Errorf("at %v it had until %v", before, ends)
	}
}

func TestTheWatchdogLooksTenTimesWithinItsLimitAndOnceASecond(t *testing.T) {
	for limit, want := range map[time.Duration]time.Duration{
		100 * time.Millisecond: 10 * time.Millisecond, 10 * time.Second: time.Second, time.Hour: time.Second,
	} {
		if every := room.WatchEvery(limit); every != want {
			t.Errorf("with a limit of %v it looks every %v, want %v", limit, every, want)
		}
	}
}
