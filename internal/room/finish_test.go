package room_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/room"
	"github.com/netloop/netloop/internal/transport"
)

// bubbleClock is the clock of a bubble of virtual time.
type bubbleClock struct{ base time.Time }

func (c bubbleClock) Now() time.Duration { return time.Since(c.base) }
func (c bubbleClock) Wall() time.Time    { return time.Now() }
func (c bubbleClock) WaitUntil(ctx context.Context, at time.Duration) error {
	return wait(ctx, at-c.Now())
}

// started runs a room in a bubble of virtual time, and returns a channel with its error.
func (b *bare) started(ctx context.Context) <-chan error {
	b.server.UseClock(bubbleClock{time.Now()})
	ends := make(chan error, 2)
	b.room.Supervisor.Start(ctx, func(err error) { ends <- err })
	return ends
}

// saving is a game that saves in its fifth tick, and then performs another action.
type saving struct {
	takes time.Duration
	also  func(*netloop.Room, *netloop.Tick)
	calls []string
}

func (g *saving) open(r *netloop.Room) {
	r.On(netloop.Update, "test.save", func(tick *netloop.Tick) {
		if tick.Number() != 5 {
			return
		}
		netloop.Go(tick, func(ctx context.Context) (string, error) { return "saved", wait(ctx, g.takes) },
			func(_ *netloop.Tick, s string, err error) { g.calls = append(g.calls, fmt.Sprint(s, " ", err)) })
		g.also(r, tick)
	})
	r.OnClose(func(context.Context, *netloop.Closed) error { g.calls = append(g.calls, "closed"); return nil })
}

// wait waits for a time, unless its context ends.
func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// For each kind of end, a running save is given up to five seconds to finish, its result is passed
// to the game, and then the room closes.
func TestASaveIsFinishedHoweverARoomEnds(t *testing.T) {
	never := netloop.RoomSpec{}
	ends := map[string]struct {
		spec netloop.RoomSpec
		do   func(b *bare, stop func(), r *netloop.Room, tick *netloop.Tick)
	}{
		"Close":      {never, func(_ *bare, _ func(), r *netloop.Room, t *netloop.Tick) { r.Close(t, netloop.CodeGame, "over") }},
		"CloseEmpty": {netloop.RoomSpec{CloseEmpty: 90 * time.Millisecond}, func(*bare, func(), *netloop.Room, *netloop.Tick) {}},
		"an operator": {never, func(b *bare, _ func(), _ *netloop.Room, _ *netloop.Tick) {
			b.room.Supervisor.End(room.End{Why: transport.Closed{Code: netloop.CodeClosing}})
		}},
		"an operator, later": {never, func(b *bare, _ func(), _ *netloop.Room, _ *netloop.Tick) {
			b.room.Supervisor.End(room.End{Why: transport.Closed{Code: netloop.CodeClosing}, Drain: 10 * time.Millisecond})
		}},
		"the server": {never, func(_ *bare, stop func(), _ *netloop.Room, _ *netloop.Tick) { stop() }},
		"a panic":    {never, func(*bare, func(), *netloop.Room, *netloop.Tick) { panic("ouch") }},
		"Goexit":     {never, func(*bare, func(), *netloop.Room, *netloop.Tick) { runtime.Goexit() }},
	}
	for name, end := range ends {
		for _, takes := range []time.Duration{0, room.WorkGrace - time.Second, room.WorkGrace + time.Minute} {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				g := &saving{takes: takes}
				b := newBareAs(t, netloop.Config{Room: end.spec}, func(r *netloop.Room) {
					g.open(r)
					if name == "a panic" {
						r.On(netloop.Update, "test.end", func(tick *netloop.Tick) {
							if tick.Number() == 5 {
								panic("ouch")
							}
						}, netloop.Critical(), netloop.Priority(netloop.PriorityLast))
					}
				})
				g.also = func(r *netloop.Room, tick *netloop.Tick) {
					if name != "a panic" {
						end.do(b, stop, r, tick)
					}
				}
				began := time.Now()
				if err := <-b.started(ctx); err != nil {
					t.Log(err) // Some of the ends are errors.
				}
				want := []string{"saved <nil>", "closed"}
				if takes > room.WorkGrace {
					want[0] = "saved " + context.Canceled.Error()
				}
				if !slices.Equal(g.calls, want) {
					t.Errorf("%s, %v: called %q, want %q", name, takes, g.calls, want)
				}
				if took, most := time.Since(began), min(takes, room.WorkGrace)+time.Second; took > most {
					t.Errorf("%s, %v: the room has ended after %v", name, takes, took)
				}
			})
		}
	}
}

// If the result of a save starts another save, both finish: the newest state is saved last.
func TestTheResultOfASaveMaySaveAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var saved []int
		b := newBare(t, func(r *netloop.Room) {
			var save func(tick *netloop.Tick, n int)
			save = func(tick *netloop.Tick, n int) {
				netloop.Go(tick, func(ctx context.Context) (int, error) { return n, wait(ctx, time.Second) }, func(tick *netloop.Tick, n int, err error) {
					if err != nil {
						t.Error(err)
					}
					if saved = append(saved, n); n < 4 {
						save(tick, n+1)
					}
				})
			}
			r.OnLeave(func(tick *netloop.Tick, _ *netloop.Client, _ *netloop.Closed) { save(tick, 1) })
		})
		b.join()
		b.step()
		if err := b.room.Shutdown.Finish(netloop.CodeClosing, "bye"); err != nil {
			t.Fatal(err)
		}
		if want := []int{1, 2, 3, 4}; !slices.Equal(saved, want) {
			t.Errorf("saved %v, want %v", saved, want)
		}
	})
}

// Work that ignores the end of its context is abandoned, counted and logged; the game gets an
// error as its result before it closes, and a later result is dropped. Work that is started by a
// result then fails at once.
func TestWorkThatIgnoresItsContextIsLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls []string
		var log strings.Builder
		release := make(chan struct{})
		b := newBareAs(t, netloop.Config{Log: slog.New(slog.NewTextHandler(&log, nil))}, func(r *netloop.Room) {
			r.OnStart(func(tick *netloop.Tick) {
				netloop.Go(tick, func(context.Context) (int, error) { <-release; return 1, nil }, func(_ *netloop.Tick, n int, err error) {
					calls = append(calls, fmt.Sprint(n, " ", err))
				})
				netloop.Go(tick, func(ctx context.Context) (int, error) { <-ctx.Done(); return 2, ctx.Err() }, func(tick *netloop.Tick, n int, err error) {
					calls = append(calls, fmt.Sprint(n, " ", err))
					netloop.Go(tick, func(context.Context) (int, error) { return 3, nil }, func(_ *netloop.Tick, n int, err error) {
						calls = append(calls, fmt.Sprint("again ", n, " ", err))
					})
				})
			})
			r.OnClose(func(context.Context, *netloop.Closed) error { calls = append(calls, "closed"); return nil })
		})
		b.step()
		began := time.Now()
		if err := b.room.Shutdown.Finish(netloop.CodeClosing, "bye"); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took != room.WorkGrace+time.Second {
			t.Errorf("the end took %v", took)
		}
		want := []string{"2 context canceled", "again 0 context canceled", "0 " + room.ErrLeftBehind.Error(), "closed"}
		if !slices.Equal(calls, want) {
			t.Errorf("called %q, want %q", calls, want)
		}
		if !b.scraped(`netloop_left_behind_total{hook="Go"} 1`) || !strings.Contains(log.String(), "works=1") {
			t.Errorf("it is not counted, or not said: %s", &log)
		}
		close(release)
		synctest.Wait()
		if len(calls) != 4 {
			t.Errorf("a late result is handed over: %q", calls)
		}
	})
}

// An operator's drain is shortened to that of the server when the server ends; game and clients
// are told again, and the operator's reason is kept.
func TestTheEndOfTheServerShortensADrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var told []string
		b := newBareAs(t, netloop.Config{DrainTimeout: time.Second}, func(r *netloop.Room) {
			r.OnDrain(func(_ *netloop.Tick, left time.Duration) {
				told = append(told, "drain "+left.Round(time.Second).String())
			})
			r.OnLeave(func(_ *netloop.Tick, _ *netloop.Client, why *netloop.Closed) { told = append(told, "leave "+why.Text) })
			r.OnClose(func(context.Context, *netloop.Closed) error { told = append(told, "closed"); return nil })
		})
		b.join()
		b.join()
		ends := b.started(ctx)
		time.Sleep(time.Second)
		b.room.Supervisor.End(room.End{Why: transport.Closed{Code: netloop.CodeClosing, Text: "maintenance"}, Drain: time.Hour})
		time.Sleep(time.Minute)
		if want := []string{"drain 1h0m0s"}; !slices.Equal(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
		stop()
		began := time.Now()
		if err := <-ends; err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > 2*time.Second || took < time.Second {
			t.Errorf("the room has ended %v after its server, want 1s", took)
		}
		if want := []string{"drain 1h0m0s", "drain 1s", "leave maintenance", "leave maintenance", "closed"}; !slices.Equal(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
	})
}

// If the server has ended before a room starts, the room runs no tick.
func TestARoomOfAServerThatHasEndedRunsNoTick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		stop()
		b := newBare(t, func(r *netloop.Room) {
			r.OnStart(func(*netloop.Tick) { t.Error("it has started") })
		})
		if err := <-b.started(ctx); err != nil {
			t.Error(err)
		}
	})
}

// If a closing hook ends its goroutine, only the remainder of its own step is skipped: clients are
// told, work is finished, and the game saves.
func TestAnEndGoesOnAfterGoexit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls []string
		b := newBare(t, func(r *netloop.Room) {
			r.OnLeave(func(tick *netloop.Tick, _ *netloop.Client, _ *netloop.Closed) {
				netloop.Go(tick, func(ctx context.Context) (int, error) { return 1, wait(ctx, time.Second) },
					func(_ *netloop.Tick, n int, err error) { calls = append(calls, fmt.Sprint(n, " ", err)) })
				runtime.Goexit()
			})
			r.OnClose(func(context.Context, *netloop.Closed) error { calls = append(calls, "closed"); return nil })
		})
		g := b.join()
		ends := b.started(t.Context())
		time.Sleep(time.Second)
		b.room.Supervisor.End(room.End{Why: transport.Closed{Code: netloop.CodeGame, Text: "over"}})
		if err := <-ends; err == nil || !strings.Contains(err.Error(), "Goexit") {
			t.Errorf("the room has ended with %v", err)
		}
		if want := []string{"1 <nil>", "closed"}; !slices.Equal(calls, want) {
			t.Errorf("called %q, want %q", calls, want)
		}
		wasTold(t, "the client", g, netloop.CodeGame, "over")
	})
}

// hung is a room that was given up while one of its systems waits for a channel; it counts the
// later calls of the game.
type hung struct {
	*bare
	may   chan struct{}
	calls []string
	ends  <-chan error
	save  chan error // the end of the running save
	asks  int        // results
}

func newHung(t *testing.T, saves time.Duration) *hung {
	h := &hung{may: make(chan struct{}), save: make(chan error, 1)}
	call := func(name string) { h.calls = append(h.calls, name) }
	h.bare = newBareAs(t, netloop.Config{Log: slog.New(slog.NewTextHandler(io.Discard, nil))}, func(r *netloop.Room) {
		r.OnStart(func(tick *netloop.Tick) {
			tick.AfterFunc(100*time.Millisecond, func(tick *netloop.Tick) {
				netloop.Go(tick, func(ctx context.Context) (int, error) {
					err := wait(ctx, saves)
					h.save <- err
					return 0, err
				}, func(*netloop.Tick, int, error) { call("Go") })
				<-h.may
				bareWords.SendRoom(tick, "", struct{ N uint64 }{}, func(*netloop.Tick, error) { call("SendRoom") })
				netloop.Go(tick, func(context.Context) (int, error) { h.asks++; return 0, nil }, func(*netloop.Tick, int, error) { call("late Go") })
			})
			tick.AfterFunc(100*time.Millisecond, func(*netloop.Tick) { call("timer") })
		})
		bareWords.HandleRoom(r, func(*netloop.Tick, *netloop.Sender, struct{ N uint64 }) error { call("handler"); return nil })
		for stage := range 7 {
			r.On(netloop.Stage(1+stage), fmt.Sprint("test.", stage), func(tick *netloop.Tick) {
				if tick.GameTime() > 110*time.Millisecond {
					call("system")
				}
			}, netloop.OnRemove(func() { call("OnRemove") }))
		}
		r.OnDrain(func(*netloop.Tick, time.Duration) { call("OnDrain") })
		r.OnLeave(func(*netloop.Tick, *netloop.Client, *netloop.Closed) { call("OnLeave") })
		r.OnClose(func(context.Context, *netloop.Closed) error { call("OnClose"); return nil })
	})
	h.join()
	h.ends = h.started(t.Context())
	time.Sleep(time.Second)
	h.room.Watchdog().Check(time.Hour)
	return h
}

// A room that was given up calls no function of the game when its goroutine returns, and refuses
// work and messages.
func TestARoomThatWasGivenUpRunsNothingMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHung(t, 0)
		h.calls = nil
		h.room.Supervisor.GiveUp(h.room.Watchdog().Err())
		if err := <-h.ends; err == nil || !strings.Contains(err.Error(), "hangs") {
			t.Errorf("the room has ended with %v", err)
		}
		close(h.may)
		synctest.Wait()
		time.Sleep(time.Minute)
		if len(h.calls) > 0 || h.asks > 0 {
			t.Errorf("called %q, and did the work %d times", h.calls, h.asks)
		}
		for _, line := range []string{`{queue="async",reason="room_gone"} 1`, `{queue="room_message",reason="sender_gone"} 1`} {
			if !h.scraped("netloop_queue_drops_total" + line) {
				t.Errorf("the scrape lacks %s", line)
			}
		}
		h.room.Supervisor.GiveUp(errors.New("again"))
		synctest.Wait()
		if len(h.ends) > 0 {
			t.Error("it has ended twice")
		}
	})
}

// The name of a room that was given up is free once its saves are finished, so that its successor
// loads them; at the latest when the grace time of Go has expired. The same holds if its goroutine
// returns earlier; it saves no more.
func TestARoomThatIsGivenUpFinishesItsSaves(t *testing.T) {
	for _, takes := range []time.Duration{3 * time.Second, time.Hour} {
		for _, back := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				h := newHung(t, takes)
				began := time.Now()
				h.room.Supervisor.GiveUp(h.room.Watchdog().Err())
				if back {
					close(h.may)
				}
				if err := <-h.ends; err == nil || !strings.Contains(err.Error(), "hangs") {
					t.Errorf("the room has ended with %v", err)
				}
				if took := time.Since(began); took > room.WorkGrace+time.Second {
					t.Errorf("its name was free after %v", took)
				}
				select {
				case err := <-h.save:
					if (err == nil) != (takes < room.WorkGrace) {
						t.Errorf("the save has ended with %v", err)
					}
				default:
					t.Error("its name is free, and the save is under way")
				}
				if h.asks > 0 || len(h.ends) > 0 {
					t.Errorf("it has begun %d saves since, and ended again %d times", h.asks, len(h.ends))
				}
				if !back {
					close(h.may)
				}
			})
		}
	}
}
