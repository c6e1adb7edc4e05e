package room_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/clock"
	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/room"
	"github.com/netloop/netloop/internal/transport"
)

// scraped reports whether a scrape of the server has the line.
func (b *bare) scraped(line string) bool {
	b.t.Helper()
	return slices.Contains(strings.Split(b.scrape(), "\n"), line)
}

// scrape returns the server's metrics.
func (b *bare) scrape() string {
	b.t.Helper()
	w := httptest.NewRecorder()
	b.room.Metrics().Handler(slog.New(slog.DiscardHandler)).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	text, err := io.ReadAll(w.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return string(text)
}

func TestPostIsBoundedAndCounted(t *testing.T) {
	ran := 0
	b := newBareAs(t, netloop.Config{RPC: netloop.RPCLimits{Share: -1}}, func(r *netloop.Room) {
		bareWords.Handle(r, func(*netloop.Tick, *netloop.Client, struct{ N uint64 }) error { ran++; return nil })
	})
	for round := range 2 {
		for n := range room.MaxPosts + 3 {
			err := bareWords.Post(b.played, struct{ N uint64 }{})
			if (n < room.MaxPosts) != (err == nil) || err != nil && !errors.Is(err, netloop.ErrBusy) {
				t.Fatalf("post %d: %v", n, err)
			}
		}
		b.step()
		if want := room.MaxPosts * (round + 1); ran != want {
			t.Errorf("%d ran, want %d", ran, want)
		}
	}
	if line := `netloop_queue_drops_total{queue="post",reason="full"} 6`; !b.scraped(line) {
		t.Errorf("the scrape lacks %s", line)
	}
}

func TestWorkIsBoundedAndCounted(t *testing.T) {
	release := make(chan struct{})
	done, refused := 0, 0
	b := newBare(t, func(r *netloop.Room) {
		r.OnStart(func(tick *netloop.Tick) {
			for range room.MaxAsync + 5 {
				netloop.Go(tick, func(context.Context) (int, error) { <-release; return 0, nil }, func(_ *netloop.Tick, _ int, err error) {
					switch {
					case err == nil:
						done++
					case errors.Is(err, netloop.ErrTooMuchWork):
						refused++
					}
				})
			}
		})
	})
	b.step()
	b.step()
	if refused != 5 || done != 0 {
		t.Errorf("%d were refused, %d done", refused, done)
	}
	close(release)
	b.room.WaitForWork()
	b.step()
	if done != room.MaxAsync {
		t.Errorf("%d of %d are done", done, room.MaxAsync)
	}
	if line := `netloop_queue_drops_total{queue="async",reason="full"} 5`; !b.scraped(line) {
		t.Errorf("the scrape lacks %s", line)
	}
}

// TestALeaverCancelsNoWork: the context of work is the room's, not that of the client with the
// message that started it.
func TestALeaverCancelsNoWork(t *testing.T) {
	release := make(chan struct{})
	var result string
	b := newBare(t, func(r *netloop.Room) {
		bareWords.Handle(r, func(tick *netloop.Tick, from *netloop.Client, _ struct{ N uint64 }) error {
			netloop.Go(tick, func(ctx context.Context) (string, error) { <-release; return "saved", ctx.Err() },
				func(tick *netloop.Tick, s string, err error) {
					_, here := tick.Client(from.ID())
					result = fmt.Sprint(s, " ", err, " ", here)
				})
			return nil
		})
	})
	s := b.join()
	b.push(s, transport.Arrival{Kind: transport.MessageArrived, Message: transport.Message{Method: idOf(bareWords)}, Decoded: &struct{ N uint64 }{}})
	b.step()
	s.End(transport.Closed{Code: netloop.CodeLost})
	b.step()
	close(release)
	b.room.WaitForWork()
	b.step()
	if result != "saved <nil> false" {
		t.Errorf("the work came to %q", result)
	}
}

// closing is a room on a virtual clock that is told to drain after its first tick.
type closing struct {
	*bare
	clock *clock.Virtual
	pacer *loop.Pacer
}

func newClosing(t *testing.T, g bareGame) *closing {
	t.Helper()
	c := &closing{bare: newBare(t, g), clock: clock.NewVirtual()}
	c.server.UseClock(c.clock)
	c.pacer = &loop.Pacer{Timeline: c.room.Timeline()}
	c.pacer.Start(0, room.FirstTick)
	in, due, _ := c.pacer.Next(0)
	if !due {
		t.Fatal("the first tick is not due")
	}
	if err := c.room.Step(in); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *closing) drain() {
	c.t.Helper()
	if err := c.room.DrainWith(c.pacer); err != nil {
		c.t.Fatal(err)
	}
}

func (c *closing) finish() {
	c.t.Helper()
	if err := c.room.Shutdown.Finish(netloop.CodeClosing, "bye"); err != nil {
		c.t.Fatal(err)
	}
}

func TestADrainEndsWhenItsWorkIsDone(t *testing.T) {
	release := make(chan struct{})
	result := ""
	var c *closing
	c = newClosing(t, func(r *netloop.Room) {
		r.OnStart(func(tick *netloop.Tick) {
			netloop.Go(tick, func(ctx context.Context) (string, error) { <-release; return "saved", ctx.Err() },
				func(_ *netloop.Tick, s string, err error) { result = fmt.Sprint(s, " ", err) })
		})
		r.On(netloop.Update, "test.release", func(tick *netloop.Tick) {
			if tick.Number() == 61 {
				close(release)
				c.room.WaitForWork()
			}
		})
	})
	c.room.Supervisor.End(room.End{Drain: time.Minute})
	c.drain()
	if waited := c.clock.Now().Round(time.Second); waited != time.Second || result != "saved <nil>" {
		t.Errorf("the drain waited for %v, the work came to %q", waited, result)
	}
	c.finish()
}

func TestAPanicInOnDrainDoesNotEndTheDrain(t *testing.T) {
	var calls []string
	c := newClosing(t, func(r *netloop.Room) {
		r.OnDrain(func(*netloop.Tick, time.Duration) { panic("in OnDrain") })
		r.OnDrain(func(*netloop.Tick, time.Duration) { calls = append(calls, "told") })
	})
	c.room.Supervisor.End(room.End{Drain: time.Second})
	c.join()
	c.drain()
	if waited := c.clock.Now(); waited < time.Second || len(calls) != 1 {
		t.Errorf("the drain waited for %v, and told %v", waited, calls)
	}
	c.finish()
}

func TestARoomThatHasEndedTakesNoPosts(t *testing.T) {
	c := newClosing(t, func(r *netloop.Room) {
		bareWords.Handle(r, func(*netloop.Tick, *netloop.Client, struct{ N uint64 }) error { return nil })
	})
	post := func() error { return bareWords.Post(c.played, struct{ N uint64 }{}) }
	if err := post(); err != nil {
		t.Fatal(err)
	}
	c.finish()
	var closed *netloop.Closed
	if err := post(); !errors.As(err, &closed) || closed.Code != netloop.CodeClosing {
		t.Errorf("after the end: %v", err)
	}
	if line := `netloop_queue_drops_total{queue="post",reason="closed"} 2`; !c.scraped(line) {
		t.Errorf("the scrape lacks %s", line)
	}
}
