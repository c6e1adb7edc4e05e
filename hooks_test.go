package netloop

import (
	"context"
	"slices"
	"testing"
	"time"
)

// handClock is moved by the test.
type handClock struct{ now time.Duration }

func (c *handClock) Now() time.Duration                             { return c.now }
func (c *handClock) Wall() time.Time                                { return time.Unix(0, 0).Add(c.now) }
func (c *handClock) WaitUntil(context.Context, time.Duration) error { panic("nobody waits here") }

// The watchdog sees which hook of a room's end does not return: each beyond the time that it
// has. What returns in time is no hang, and a hook that hung is over once it has returned.
func TestTheWatchdogSeesTheHooksOfTheEnd(t *testing.T) {
	for _, slow := range []bool{false, true} {
		clock := new(handClock)
		var b *bare
		var seen []string
		results := 0
		look := func(allowed time.Duration) {
			if clock.now += b.s.cfg.Watchdog + allowed; slow {
				clock.now++
			}
			if h, hung := b.s.room.watchdog.Check(clock.now); hung {
				seen = append(seen, h.Hook)
			}
		}
		b = newBare(t, func(r *Room) {
			r.OnDrain(func(*Tick, time.Duration) { look(0) })
			r.OnLeave(func(tick *Tick, _ *Client, _ LeaveReason) {
				look(0)
				if results++; results == 1 { // They have their time together.
					Go(tick, func(context.Context) (int, error) { return 1, nil }, func(*Tick, int, error) { look(workGrace) })
				}
			})
			r.OnClose(func(context.Context) error { look(saveTimeout); return nil })
			r.OnClose(func(context.Context) error { look(saveTimeout); return nil })
		})
		b.s.clock = clock
		b.join()
		b.join()
		b.step()
		if err := b.s.room.tellDrain(0); err != nil {
			t.Fatal(err)
		}
		b.step() // Ticks go on while clients may finish.
		clock.now += time.Hour
		look(0)
		if err := b.s.room.finish(LeaveReason{CodeClosing, "the end"}); err != nil {
			t.Fatal(err)
		}
		var want []string
		if slow {
			want = []string{"OnDrain", "OnLeave", "OnLeave", "Go", "OnClose", "OnClose"}
		}
		if !slices.Equal(seen, want) || b.s.room.watchdog.Err() != nil || b.s.room.watchdog.Hangs() != uint64(len(want)) {
			t.Errorf("slow %v: hangs seen in %v, want %v; %d counted, %v is left", slow, seen, want, b.s.room.watchdog.Hangs(), b.s.room.watchdog.Err())
		}
	}
}
