package e2e_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	logtest "go.uber.org/zap/zaptest/observer"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/inside"
	"github.com/netloop/netloop/internal/logging"
)

// TestAFaultOfAHandlerIsLoggedEveryTenSeconds posts what makes one handler panic and another
// fail in every tick of 11 s: the log hears of each twice, and how often it was.
func TestAFaultOfAHandlerIsLoggedEveryTenSeconds(t *testing.T) {
	core, logs := logtest.New(zapcore.ErrorLevel)
	var room *netloop.Room
	s, err := netloop.New(netloop.Config{Log: logging.Slog(zap.New(core))}, script(func(r *netloop.Room) {
		room = r
		echo.Handle(r, func(*netloop.Tick, *netloop.Client, text) error { panic("as ever") })
		told.Handle(r, func(*netloop.Tick, *netloop.Client, text) error { return errors.New("as ever") })
	}))
	if err != nil {
		t.Fatal(err)
	}
	m := inside.Netloop.Server(s).Room
	for tick := range uint64(11 * 60) {
		if err := errors.Join(echo.Post(room, text{}), told.Post(room, text{})); err != nil {
			t.Fatal(err)
		}
		if err := m.Step(m.Timeline().Input(tick + 1)); err != nil {
			t.Fatal(err)
		}
	}
	for _, line := range []string{"a handler panicked", "a handler failed"} {
		found := logs.FilterMessage(line).All()
		if len(found) != 2 {
			t.Fatalf("%q was logged %d times, want 2", line, len(found))
		}
		if first, second := found[0].ContextMap()["unlogged_before"], found[1].ContextMap()["unlogged_before"]; first != uint64(0) || second != uint64(599) {
			t.Errorf("%q: %v and then %v unlogged before, want 0 and 599", line, first, second)
		}
	}
}

// TestAnAdmissionThatEndsItsGoroutineIsRefused lets OnAdmit call runtime.Goexit, as the
// FailNow of a test does, more often than there are seats. They are few, and the rate is low:
// handshakes cost what a busy machine has not got, and an overloaded room refuses everybody.
func TestAnAdmissionThatEndsItsGoroutineIsRefused(t *testing.T) {
	const seats = 8
	asked := 0
	s, _ := serveAs(t, script(func(r *netloop.Room) {
		r.OnAdmit(func(context.Context, *netloop.Join) error {
			if asked++; asked <= 2*seats {
				runtime.Goexit()
			}
			return nil
		})
	}), netloop.Config{Room: netloop.RoomSpec{MaxClients: seats, Rate: netloop.Hz(10)}})
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for range 2 * seats {
		if _, err := client.Dial(ctx, s.Addr().String(), client.Config{Schema: schema}); err == nil {
			t.Fatal("a client was admitted by nobody")
		}
	}
	connect(t, s.Addr().String())
}
