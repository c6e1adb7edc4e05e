package netlooptest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/netlooptest"
)

// match is a game that records its end.
type match struct {
	game
	calls *[]string
	room  func(*netloop.Room)
}

func (m match) Open(r *netloop.Room) error {
	note := func(format string, a ...any) { *m.calls = append(*m.calls, fmt.Sprintf(format, a...)) }
	r.OnDrain(func(_ *netloop.Tick, left time.Duration) { note("drain %v", left) })
	r.OnLeave(func(_ *netloop.Tick, _ *netloop.Client, why *netloop.Closed) { note("leave %s", why.Text) })
	r.OnClose(func(context.Context, *netloop.Closed) error { note("close"); return nil })
	if m.room != nil {
		m.room(r)
	}
	return nil
}

// Fatalf records the failure, and ends the goroutine like that of a test.
func (l *failureRecorder) Fatalf(format string, a ...any) {
	l.Errorf(format, a...)
	panic(l)
}

// fails runs fn, which fails the test.
func (l *failureRecorder) fails(t *testing.T, fn func(), want string) {
	t.Helper()
	defer func() {
		if recover() != any(l) {
			t.Error("it did not fail")
		}
		l.want(t, want)
	}()
	fn()
}

// A room closed by the game has ended in order: the test continues, and gets the close reason of
// the clients.
func TestARoomThatClosesItselfHasEnded(t *testing.T) {
	var calls []string
	l := &failureRecorder{TB: t}
	w := netlooptest.New(l, match{calls: &calls, room: func(r *netloop.Room) {
		r.On(netloop.Update, "over", func(tick *netloop.Tick) {
			if tick.Number() == 30 {
				r.Close(tick, netloop.CodeGame, "red has won")
			}
		})
	}})
	c := w.Join("", nil, netlooptest.Link{})
	w.Step(29)
	if w.Ended() != nil || c.State().Phase != client.Playing {
		t.Fatalf("before its end: %v, %v", w.Ended(), c.State().Phase)
	}
	w.Step(10)
	if e := w.Ended(); e == nil || e.Code != netloop.CodeGame || e.Text != "red has won" {
		t.Errorf("it ended with %v", e)
	}
	if why := c.Closed(); why == nil || why.Text != "red has won" {
		t.Errorf("the client got %v", why)
	}
	late := w.Join("", nil, netlooptest.Link{})
	w.Step(10)
	if late.Closed() == nil {
		t.Error("a room that has ended let a client in")
	}
	l.fails(t, func() { w.Room("none") }, `netlooptest: there is no room "none", and never was`)
	w.Drain(time.Second) // All rooms have ended.
	w.Room("").Drain(time.Second, netloop.CodeGame, "blue has won")
	w.Step(10)
	if e := w.Ended(); e.Text != "red has won" {
		t.Errorf("it ended again with %v", e)
	}
	if want := []string{"leave red has won", "close"}; !slices.Equal(calls, want) {
		t.Errorf("called %q, want %q", calls, want)
	}
	l.want(t)
}

// A room that fails still fails the test.
func TestACriticalPanicFailsTheTest(t *testing.T) {
	var calls []string
	l := &failureRecorder{TB: t}
	w := netlooptest.New(l, match{calls: &calls, room: func(r *netloop.Room) {
		r.On(netloop.Update, "heart", func(*netloop.Tick) { panic("stops") }, netloop.Critical())
	}}, netlooptest.AllowPanics())
	l.fails(t, func() { w.Step(1) }, `netlooptest: tick 1: netloop: closed: internal error: system "heart" panicked in Update: stops`)
}

func TestDrainEndsTheServerLikeTheEndOfRun(t *testing.T) {
	var calls []string
	w := netlooptest.New(t, match{calls: &calls})
	stays, goes := w.Join("", nil, netlooptest.Link{}), w.Join("", nil, netlooptest.Link{})
	w.Step(20)
	if err := goes.Close(); err != nil {
		t.Fatal(err)
	}
	start := w.Now()
	w.Drain(time.Second)
	if took := w.Now() - start; took < time.Second || took > 1100*time.Millisecond {
		t.Errorf("with a client in the room the drain took %v", took)
	}
	w.Step(2)
	if why := stays.Closed(); why == nil || why.Code != netloop.CodeClosing || w.Ended() == nil || w.Ended().Code != netloop.CodeClosing {
		t.Errorf("the client got %v, the room ended with %v", why, w.Ended())
	}
	if want := []string{"drain 1s", "leave ", "leave the server is closing", "close"}; !slices.Equal(calls, want) {
		t.Errorf("called %q, want %q", calls, want)
	}

	calls = nil
	w = netlooptest.New(t, match{calls: &calls})
	w.Step(5)
	w.Drain(time.Minute)
	if w.Now() > time.Second || w.Ended() == nil {
		t.Errorf("without clients the drain lasted until %v", w.Now())
	}
}

// The server ends with the test, as if its Run had ended.
func TestTheServerEndsWithTheTest(t *testing.T) {
	var calls []string
	t.Run("", func(t *testing.T) {
		w := netlooptest.New(t, match{calls: &calls})
		w.Join("", nil, netlooptest.Link{})
		w.Step(20)
	})
	if want := []string{"leave the test has ended", "close"}; !slices.Equal(calls, want) {
		t.Errorf("called %q, want %q", calls, want)
	}
}

// hosting is a match with its server.
type hosting struct {
	match
	server *netloop.Server
}

func (h *hosting) OpenServer(s *netloop.Server) error { h.server = s; return nil }

func (*hosting) CloseServer(context.Context) error { return nil }

// A room that was opened and has run no tick ends with the test, and with the server.
func TestARoomWithoutATickEndsWithTheServer(t *testing.T) {
	var calls []string
	open := func(t *testing.T) *netlooptest.World {
		calls = nil
		h := &hosting{match: match{calls: &calls}}
		w := netlooptest.New(t, h)
		w.Step(1)
		if _, err := h.server.OpenRoom(t.Context(), netloop.RoomSpec{Name: "late"}); err != nil {
			t.Fatal(err)
		}
		return w
	}
	t.Run("", func(t *testing.T) { open(t) })
	if want := []string{"close", "drain 0s", "close"}; !slices.Equal(calls, want) {
		t.Errorf("with the test: called %q, want %q", calls, want)
	}
	w := open(t)
	w.Drain(time.Second)
	if want := []string{"drain 1s", "drain 1s", "close", "close"}; !slices.Equal(calls, want) || w.Room("late").Ended() == nil {
		t.Errorf("with the server: called %q, want %q", calls, want)
	}
}

// A room that is told to end while its tick runs drains in its next tick.
func TestARoomEndsDuringATickOfAnother(t *testing.T) {
	var calls []string
	var w *netlooptest.World
	w = netlooptest.New(t, match{calls: &calls, room: func(r *netloop.Room) {
		r.On(netloop.Update, "spend", func(tick *netloop.Tick) {
			switch name := r.Spec().Name; {
			case name == "slow" && tick.Number() == 5:
				w.Spend(100 * time.Millisecond)
				calls = append(calls, fmt.Sprintf("tick %d", tick.Number()))
			case name == "" && tick.Number() == 8:
				r.Close(tick, netloop.CodeGame, "the day is over")
			}
		})
	}})
	slow, err := w.OpenRoom(netloop.RoomSpec{Name: "slow"})
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		w.Advance(20 * time.Millisecond)
	}
	if want := []string{"close", "tick 5", "drain 0s", "close"}; !slices.Equal(calls, want) || slow.Ended() == nil {
		t.Errorf("called %q, want %q", calls, want)
	}
}

// A name is in use while its room exists, and free after the room's end.
func TestARoomCannotBeOpenedUnderAUsedName(t *testing.T) {
	var calls []string
	w := netlooptest.New(t, match{calls: &calls})
	open := func(want error) *netlooptest.PlayedRoom {
		t.Helper()
		r, err := w.OpenRoom(netloop.RoomSpec{Name: "table"})
		if !errors.Is(err, want) || want != nil && r != nil {
			t.Fatalf("opened %v, %v, want %v", r, err, want)
		}
		return r
	}
	first := open(nil)
	w.Step(1)
	open(netloop.ErrRoomExists)
	first.Drain(0, netloop.CodeGame, "the round is over")
	w.Step(2)
	if why := first.Ended(); why == nil || why.Text != "the round is over" || w.Room("table") != first {
		t.Errorf("the last room ended with %v", why)
	}
	second, ticks := open(nil), 0
	if w.Room("table") != second || second == first {
		t.Error("another room has the name")
	}
	second.Tick(func(tick *netloop.Tick) { ticks = int(tick.Number()) })
	w.Step(10)
	second.Tick(func(tick *netloop.Tick) { ticks = int(tick.Number()) - ticks })
	if ticks < 9 {
		t.Errorf("it has run %d ticks of 10", ticks)
	}
}

// A recording is of one server: a recording world cannot restart it.
func TestARecordedServerIsNotStartedAgain(t *testing.T) {
	var calls []string
	l := &failureRecorder{TB: t}
	w := netlooptest.New(l, match{calls: &calls}, netlooptest.Record(io.Discard))
	l.fails(t, func() { w.Restart(match{calls: &calls}) }, "netlooptest: Restart: a recording is of one server")
}

func TestUntilReportsTheStateOfClients(t *testing.T) {
	var calls []string
	l := &failureRecorder{TB: t}
	w := netlooptest.New(l, match{calls: &calls, room: func(r *netloop.Room) {
		r.OnAdmit(func(_ context.Context, j *netloop.Join) error {
			if j.Token == "cheat" {
				return netloop.Refuse(netloop.CodeRefused, "not you")
			}
			return nil
		})
	}})
	w.Join("cheat", nil, netlooptest.Link{})
	w.Join("", nil, netlooptest.Link{})
	never := func() bool { return false }
	l.fails(t, func() { w.Until(20, never) }, "netlooptest: not done after 20 ticks: the room runs; client 1 was closed: netloop: closed: refused: not you; client 2 is playing")
	w.Drain(0)
	for range 6 {
		w.Join("", nil, netlooptest.Link{})
	}
	eight := "netlooptest: not done after 0 ticks: the room has ended: netloop: closed: the server is closing; " +
		"client 1 was closed: netloop: closed: refused: not you; client 2 was closed: netloop: closed: the server is closing; client 3 is connecting; client 4 is connecting; " +
		"client 5 is connecting; client 6 is connecting; client 7 is connecting; client 8 is connecting"
	l.fails(t, func() { w.Until(0, never) }, eight)
	w.Join("", nil, netlooptest.Link{})
	l.fails(t, func() { w.Until(0, never) }, eight+"; and 1 more")
}
