package room_test

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/bridge"
	"github.com/netloop/netloop/internal/input"
	"github.com/netloop/netloop/internal/room"
	"github.com/netloop/netloop/internal/schema"
	"github.com/netloop/netloop/internal/transport"
)

var (
	hangSchema = netloop.NewSchema("hang", 1, 0)
	hangRepeat func() // the body of repeat and Validate in the running test
	hangInput  = netloop.NewInput(hangSchema, func(last steer, _ int) steer { hangRepeat(); return last })
	hangWords  = netloop.NewRPC[word](hangSchema, "words", netloop.Validate(func(word) error { hangRepeat(); return nil }))
	hangRooms  = netloop.NewRPC[word](hangSchema, "rooms", netloop.ServerOnly())
)

type hangGame func(*netloop.Room)

func (hangGame) Schema() *netloop.Schema      { return hangSchema }
func (g hangGame) Open(r *netloop.Room) error { g(r); return nil }

// hangs are functions of a game that others would follow on the same stack: open registers one
// that hangs, and a second one; act lets two clients act.
type hangs struct {
	open func(r *netloop.Room, hang, next func())
	act  func(b *bare, conns [2]*testConn)
}

var allHangs = map[string]hangs{
	"OnStart": {open: func(r *netloop.Room, hang, next func()) {
		r.OnStart(func(*netloop.Tick) { hang() })
		r.OnStart(func(*netloop.Tick) { next() })
	}},
	"OnJoin": {open: func(r *netloop.Room, hang, next func()) {
		r.OnJoin(func(*netloop.Tick, *netloop.Client) error { next(); hang(); return nil })
	}},
	"OnClose": {open: func(r *netloop.Room, hang, next func()) {
		r.OnClose(func(context.Context, *netloop.Closed) error { hang(); return nil })
		r.OnClose(func(context.Context, *netloop.Closed) error { next(); return nil })
	}},
	"RunIf": {open: func(r *netloop.Room, hang, next func()) {
		r.On(netloop.Update, "test.system", func(*netloop.Tick) { next() },
			netloop.RunIf(func(*netloop.Tick) bool { hang(); return true }))
	}},
	"OnRemove": {open: func(r *netloop.Room, hang, next func()) {
		r.On(netloop.Update, "test.first", func(*netloop.Tick) {}, netloop.OnRemove(hang))
		r.On(netloop.Update, "test.second", func(*netloop.Tick) {}, netloop.OnRemove(next))
	}},
	"Validate": {
		open: func(r *netloop.Room, hang, next func()) {
			hangRepeat = hang
			hangWords.Handle(r, func(*netloop.Tick, *netloop.Client, word) error { next(); return nil })
		},
		act: func(b *bare, conns [2]*testConn) {
			b.push(conns[0], transport.Arrival{
				Kind: transport.MessageArrived, Decoded: new(word), Message: transport.Message{Method: idOf(hangWords), Reliable: true},
			})
		},
	},
	"a message": {
		open: func(r *netloop.Room, hang, next func()) {
			hangRepeat = func() {}
			hangWords.Handle(r, func(*netloop.Tick, *netloop.Client, word) error { next(); hang(); return nil })
		},
		act: func(b *bare, _ [2]*testConn) {
			for range 2 {
				if err := hangWords.Post(b.played, word{}); err != nil {
					b.t.Error(err)
				}
			}
		},
	},
	"a message of a room": {
		open: func(r *netloop.Room, hang, next func()) {
			hangRooms.HandleRoom(r, func(*netloop.Tick, *netloop.Sender, word) error { next(); hang(); return nil })
		},
		act: func(b *bare, _ [2]*testConn) {
			for range 2 {
				if err := hangRooms.Post(b.played, word{}); err != nil {
					b.t.Error(err)
				}
			}
		},
	},
	"an input": {
		open: func(r *netloop.Room, hang, next func()) {
			hangRepeat = func() {}
			hangInput.Handle(r, func(*netloop.Tick, *netloop.Client, steer) { next(); hang() })
		},
		act: steerBoth,
	},
	"repeat": {
		open: func(r *netloop.Room, hang, next func()) {
			hangRepeat = hang
			hangInput.Handle(r, func(*netloop.Tick, *netloop.Client, steer) { next() })
		},
		act: steerBoth,
	},
}

// steerBoth delivers an input of each client for an upcoming step.
func steerBoth(b *bare, conns [2]*testConn) {
	codec := &bridge.Netloop.Input(hangInput).InputCodec
	for _, g := range conns {
		ring := input.NewRing(codec.Form(), time.Second/60)
		_ = schema.CaptureInput(codec, &steer{Turn: 1}, ring.Add(100, input.View{From: 100, To: 101}))
		b.push(g, transport.Arrival{Kind: transport.Inputs, State: ring.AppendPacket(nil, transport.MaxInputs)})
	}
}

// When a function that hung returns after its room was given up, no other function of the game
// runs, wherever it was called.
func TestNothingFollowsAFunctionThatHung(t *testing.T) {
	for name, place := range allHangs {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { nothingFollows(t, place) })
		})
	}
}

// A panic on the goroutine of a room that was given up ends only that goroutine.
func TestAPanicAfterTheHangIsRecovered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		may := make(chan struct{})
		log := slog.New(panickyLog{slog.DiscardHandler})
		b := newBareAs(t, netloop.Config{Log: log}, func(r *netloop.Room) {
			r.On(netloop.Update, "test.system", func(*netloop.Tick) {}, netloop.OnRemove(func() { <-may }))
		})
		ends := b.started(t.Context())
		time.Sleep(time.Second)
		b.room.Supervisor.End(room.End{Why: transport.Closed{Code: netloop.CodeClosing}})
		time.Sleep(time.Second)
		b.room.Watchdog().Check(time.Hour)
		b.room.Supervisor.GiveUp(b.room.Watchdog().Err())
		if err := <-ends; err == nil || !strings.Contains(err.Error(), "hangs") {
			t.Errorf("the room has ended with %v", err)
		}
		close(may)
		synctest.Wait()
	})
}

// panickyLog panics when it logs that a hook has returned.
type panickyLog struct{ slog.Handler }

func (panickyLog) Enabled(context.Context, slog.Level) bool { return true }

func (panickyLog) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "a hook that hung has returned" {
		panic("the log is full")
	}
	return nil
}

func nothingFollows(t *testing.T, place hangs) {
	may := make(chan struct{})
	hung, followed := false, 0
	hang := func() {
		if !hung {
			hung = true
			<-may
		}
	}
	next := func() {
		if hung {
			followed++
		}
	}
	b := newBareOf(t, netloop.Config{Log: slog.New(slog.NewTextHandler(io.Discard, nil))},
		hangGame(func(r *netloop.Room) { place.open(r, hang, next) }))
	var conns [2]*testConn
	for i := range conns {
		adm, err := b.server.Handler.Admit(context.Background(), hello(hangSchema), "here")
		if err != nil {
			t.Fatal(err)
		}
		conns[i] = newTestConn(adm)
	}
	ends := b.started(t.Context())
	time.Sleep(time.Second)
	if place.act != nil {
		place.act(b, conns)
	}
	time.Sleep(10 * time.Second)
	b.room.Supervisor.End(room.End{Why: transport.Closed{Code: netloop.CodeClosing}})
	time.Sleep(10 * time.Second)
	b.room.Watchdog().Check(time.Hour)
	b.room.Supervisor.GiveUp(b.room.Watchdog().Err())
	if err := <-ends; err == nil {
		t.Error("a room that hangs ends without an error")
	}
	close(may)
	synctest.Wait()
	if !hung || followed > 0 {
		t.Errorf("it hangs: %v; functions that are called afterwards: %d", hung, followed)
	}
}
