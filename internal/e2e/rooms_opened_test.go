package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/netlooptest"
)

// privateOpener is a game that opens a private room for each requested name.
type privateOpener struct{ netloop.Game }

func (privateOpener) OpenFor(context.Context, string, *netloop.Join) (netloop.RoomSpec, error) {
	return netloop.RoomSpec{Private: true, Code: "friend", MaxSpectators: 1}, nil
}

// A client for which the game opens a private room joins it, as a player or spectator. The next
// client that requests the name needs the room's code.
func TestAClientJoinsThePrivateRoomOpenedForIt(t *testing.T) {
	for _, watch := range []bool{false, true} {
		var watches []bool
		w := netlooptest.New(t, privateOpener{script(func(r *netloop.Room) {
			r.OnJoin(func(_ *netloop.Tick, c *netloop.Client) error { watches = append(watches, c.Spectator()); return nil })
		})})
		link := netlooptest.Link{Delay: 5 * time.Millisecond}
		first := w.JoinAs(client.Config{Room: "a", Spectate: watch}, link)
		second := w.JoinAs(client.Config{Room: "a"}, link)
		w.Step(30)
		plays(t, "the first client", first, "a")
		wasRefused(t, "a client without the code", second, netloop.CodeRoomUnknown)
		friend := w.JoinAs(client.Config{Ticket: "friend"}, link)
		w.Step(30)
		plays(t, "a client with the code", friend, "a")
		if !slices.Equal(watches, []bool{watch, false}) {
			t.Errorf("the clients are spectators: %v", watches)
		}
	}
}

// A room can be closed at any time during its opening, also before the server runs.
func TestARoomMayBeClosedWhileItIsOpened(t *testing.T) {
	s, err := netloop.New(netloop.Config{Offline: true}, script(func(*netloop.Room) {}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.OpenRoom(t.Context(), netloop.RoomSpec{Name: "before"}); err != nil {
		t.Fatal(err)
	}
	if err := s.CloseRoom("before", 0, netloop.CodeGame, "over"); err != nil {
		t.Error(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	for i := range 20 {
		name := fmt.Sprint("room ", i)
		opened := make(chan error, 1)
		go func() {
			_, err := s.OpenRoom(t.Context(), netloop.RoomSpec{Name: name})
			opened <- err
		}()
		for s.CloseRoom(name, 0, netloop.CodeGame, "over") != nil { // It is not open yet.
			runtime.Gosched()
		}
		if err := <-opened; err != nil {
			t.Error(err)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	for info := range s.Rooms() {
		t.Errorf("room %q is still open", info.Spec.Name)
	}
}

// OnLeave and OnClose of a game get the reason of the end of the room.
func TestHooksReceiveTheReasonOfTheRoomsEnd(t *testing.T) {
	for name, tt := range map[string]struct {
		end  func(w *netlooptest.World, r *netlooptest.PlayedRoom)
		want netloop.Closed
	}{
		"the game": {func(_ *netlooptest.World, r *netlooptest.PlayedRoom) {
			r.Tick(func(tick *netloop.Tick) { tick.Room().Close(tick, netloop.CodeGame+1, "won") })
		}, netloop.Closed{Code: netloop.CodeGame + 1, Text: "won"}},
		"the program": {func(w *netlooptest.World, _ *netlooptest.PlayedRoom) {
			_ = serverOf(w).CloseRoom("a", 0, netloop.CodeGame, "over")
		}, netloop.Closed{Code: netloop.CodeGame, Text: "over"}},
		"empty": {func(w *netlooptest.World, _ *netlooptest.PlayedRoom) {
			w.Step(120)
		}, netloop.Closed{Code: netloop.CodeClosing, Text: "nobody is in the room"}},
	} {
		t.Run(name, func(t *testing.T) {
			var left, closed *netloop.Closed
			w := netlooptest.New(t, script(func(r *netloop.Room) {
				if r.Spec().Name != "a" {
					return
				}
				r.OnLeave(func(_ *netloop.Tick, _ *netloop.Client, why *netloop.Closed) { left = why })
				r.OnClose(func(_ context.Context, why *netloop.Closed) error { closed = why; return nil })
			}))
			spec := table("a")
			spec.CloseEmpty = time.Second
			room := openRoom(t, w, spec)
			stays := name != "empty"
			if stays {
				joinRoom(w, "a")
				w.Step(30)
			}
			tt.end(w, room)
			w.Step(30)
			if closed == nil || *closed != tt.want || stays && (left == nil || *left != tt.want) {
				t.Errorf("OnClose got %v and OnLeave %v, want %v", closed, left, &tt.want)
			}
		})
	}
}

// A panic of the game's Open is an error of the replay.
func TestAReplayReportsAPanicOfOpen(t *testing.T) {
	var file bytes.Buffer
	w := netlooptest.New(t, script(func(*netloop.Room) {}), netlooptest.Record(&file))
	w.Step(3)
	_, err := netloop.NewReplay(netloop.Config{}, script(func(*netloop.Room) { panic("no database") }), &file)
	if err == nil || !strings.Contains(err.Error(), "Open panicked: no database") {
		t.Errorf("the error is %v", err)
	}
}
