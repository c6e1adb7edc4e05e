package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/cluster"
	"github.com/netloop/netloop/netlooptest"
)

// mailBed is a cluster of two servers, x with the room "a" and y with the room "b", whose rooms
// hear results.
type mailBed struct {
	*clusterBed
	x, y  *clusterServer
	heard []string // of both servers
	told  []string
}

func newMailBed(t *testing.T, o ...netlooptest.Option) *mailBed {
	b := &mailBed{clusterBed: newClusterBed(t)}
	b.x = b.serverOf("x", letters, b.fill("x"), o...)
	b.y = b.serverOf("y", letters, b.fill("y"))
	openRoom(t, b.x.World, table("a"))
	openRoom(t, b.y.World, table("b"))
	b.step(10)
	return b
}

func (b *mailBed) fill(server string) func(*netloop.Room) {
	return func(r *netloop.Room) {
		results.HandleRoom(r, func(tick *netloop.Tick, from *netloop.Sender, m result) error {
			sender := netloop.Sender{Kind: "the program"}
			if from != nil {
				sender = *from
			}
			b.heard = append(b.heard, fmt.Sprint(server, " ", r.Spec().Name, " at ", tick.Stage(), ": ", sender, m))
			return nil
		})
	}
}

// note returns a function that notes the outcome of a message by its name.
func (b *mailBed) note(name string) func(*netloop.Tick, error) {
	return func(_ *netloop.Tick, err error) {
		code := refusedAs(err)
		if err != nil && code == 0 {
			b.Errorf("%s: %v", name, err)
		}
		b.told = append(b.told, fmt.Sprint(name, " ", uint32(code)))
	}
}

// send sends from the room "a" of x, and waits for n outcomes.
func (b *mailBed) send(n int, fn func(*netloop.Tick)) {
	b.Helper()
	b.x.Room("a").Tick(fn)
	b.until("outcomes", func() bool { return len(b.told) >= n })
}

func code(c netloop.Code) string { return fmt.Sprint(" ", uint32(c)) }

// A message reaches a room of another server once, at its stage, with its sender, in the order of
// sending; the sender is told the outcome. Without a room, or a handler, it is refused.
func TestARoomMessageReachesAnotherServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newMailBed(t)
		b.send(4, func(tick *netloop.Tick) {
			results.SendRoom(tick, "b", result{"one", []int32{1, 2}}, b.note("one"))
			results.SendRoom(tick, "b", result{"two", nil}, b.note("two"), netloop.RunAt(netloop.PostLateUpdate))
			results.SendRoom(tick, "nowhere", result{}, b.note("no room"))
			pings.SendRoom(tick, "b", result{}, b.note("no handler"))
		})
		if got, want := strings.Join(b.heard, ","), "y b at PreUpdate: {a table} {one [1 2]},y b at PostLateUpdate: {a table} {two []}"; got != want {
			t.Errorf("heard %q, want %q", got, want)
		}
		slices.Sort(b.told)
		want := []string{"no handler" + code(netloop.CodeUnknownMethod), "no room" + code(netloop.CodeRoomUnknown), "one 0", "two 0"}
		if !slices.Equal(b.told, want) {
			t.Errorf("told %q, want %q", b.told, want)
		}
		b.heard, b.told = nil, nil
		const many = 800 // Several batches.
		b.send(many, func(tick *netloop.Tick) {
			for i := range many {
				results.SendRoom(tick, "b", result{fmt.Sprint(i), make([]int32, 100)}, b.note("many"))
				if i%100 == 0 {
					b.y.Step(1) // The receiver takes some meanwhile: 256 of one room may wait.
				}
			}
		})
		last := -1
		for _, h := range b.heard {
			var i int
			_, table, _ := strings.Cut(h, "} {")
			if _, err := fmt.Sscan(table, &i); err != nil || i <= last {
				t.Fatalf("%q after %d: %v", h, last, err)
			}
			last = i
		}
		ran := len(slices.DeleteFunc(slices.Clone(b.told), func(s string) bool { return s != "many 0" }))
		if ran != len(b.heard) || ran < 200 {
			t.Errorf("%d of %d messages have run, and %d are told so", len(b.heard), many, ran)
		}
	})
}

// The program posts to a room of another server, and is told that the handler has returned.
func TestAPostReachesAnotherServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newMailBed(t)
		post := func(name string) error {
			done := make(chan error, 1)
			go func() { done <- results.PostRoom(context.Background(), b.x.Server, name, result{Table: "post"}) }()
			var err error
			b.until("the post has an outcome", func() bool {
				select {
				case err = <-done:
					return true
				default:
					return false
				}
			})
			return err
		}
		if err := post("b"); err != nil || strings.Join(b.heard, "") != "y b at PreUpdate: { the program} {post []}" {
			t.Errorf("%v, heard %q", err, b.heard)
		}
		if err := post("nowhere"); refusedAs(err) != netloop.CodeRoomUnknown {
			t.Errorf("a room that does not exist: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		b.hub.Partition("y", 1)
		if err := results.PostRoom(ctx, b.x.Server, "b", result{}); !errors.Is(err, context.Canceled) {
			t.Errorf("with an ended context: %v", err)
		}
	})
}

// A message to a server that does not answer is refused as busy after the time of a call.
func TestARoomMessageToALostServerIsBusy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newMailBed(t)
		b.hub.Partition("y", 1)
		b.x.Room("a").Tick(func(tick *netloop.Tick) { results.SendRoom(tick, "b", result{}, b.note("lost")) })
		b.step(60 * int(cluster.StoreTime/time.Second) / 2)
		if len(b.told) > 0 {
			t.Errorf("told too early: %q", b.told)
		}
		b.step(60 * int(cluster.StoreTime/time.Second))
		b.until("an outcome", func() bool { return len(b.told) > 0 })
		if b.told[0] != "lost"+code(netloop.CodeBusy) || len(b.heard) > 0 {
			t.Errorf("told %q, heard %q", b.told, b.heard)
		}
	})
}

// A room that ends with waiting messages of another server refuses them.
func TestMessagesOfAnotherServerEndWithTheRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newMailBed(t)
		b.x.Room("a").Tick(func(tick *netloop.Tick) { results.SendRoom(tick, "b", result{}, b.note("late")) })
		b.y.Room("b").Drain(0, netloop.CodeClosing, "over")
		b.until("an outcome", func() bool { return len(b.told) > 0 })
		if got := b.told[0]; got != "late"+code(netloop.CodeRoomUnknown) && got != "late 0" {
			t.Errorf("told %q", got)
		}
		if (b.told[0] == "late 0") != (len(b.heard) == 1) {
			t.Errorf("told %q, heard %q", b.told, b.heard)
		}
	})
}

// A recording has the outcomes of messages to other servers, so that a replay needs no cluster and
// sends nothing.
func TestARecordingHasTheOutcomesOfOtherServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var record bytes.Buffer
		told := 0
		fill := func(r *netloop.Room) {
			results.HandleRoom(r, func(*netloop.Tick, *netloop.Sender, result) error { return nil })
			r.On(netloop.Update, "send", func(tick *netloop.Tick) {
				if tick.Number()%10 == 0 && r.Spec().Name == "" {
					results.SendRoom(tick, "b", result{Table: fmt.Sprint(tick.Number())}, func(tick *netloop.Tick, err error) { told++ })
				}
			})
		}
		b := newClusterBed(t)
		x := b.serverOf("x", letters, fill, netlooptest.Record(&record))
		y := b.serverOf("y", letters, still)
		openRoom(t, y.World, table("b"))
		b.until("outcomes", func() bool { return told >= 5 })
		x.Drain(0)
		was := told
		told = 0
		p, err := netloop.NewReplay(netloop.Config{}, game{letters, fill}, &record)
		for err == nil {
			_, err = p.Step()
		}
		if !errors.Is(err, io.EOF) || told != was {
			t.Errorf("the replay told %d outcomes of %d: %v", told, was, err)
		}
	})
}
