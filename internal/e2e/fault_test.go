package e2e_test

import (
	"errors"
	"slices"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	logtest "go.uber.org/zap/zaptest/observer"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/bridge"
	"github.com/netloop/netloop/internal/logging"
	"github.com/netloop/netloop/netlooptest"
)

// TestAFaultOfAHandlerIsLoggedEveryTenSeconds posts messages that make one handler panic and
// another fail in every tick of 11 s: the log has two lines for each, with the number of
// repetitions.
func TestAFaultOfAHandlerIsLoggedEveryTenSeconds(t *testing.T) {
	core, logs := logtest.New(zapcore.ErrorLevel)
	var room *netloop.Room
	s, err := netloop.New(netloop.Config{Log: logging.Slog(zap.New(core))}, script(func(r *netloop.Room) {
		room = r
		echo.Handle(r, func(*netloop.Tick, *netloop.Client, text) error { panic("as ever") })
		told.Handle(r, func(*netloop.Tick, *netloop.Client, text) error { return errors.New("refused") })
	}))
	if err != nil {
		t.Fatal(err)
	}
	m := bridge.Netloop.Server(s).Room
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

func TestAPanicOfAHandlerLosesOneMessage(t *testing.T) {
	var got []uint64
	w := open(t, func(r *netloop.Room) {
		echo.Handle(r, func(_ *netloop.Tick, _ *netloop.Client, m text) error {
			if m.N%3 == 1 {
				panic(m.N)
			}
			got = append(got, m.N)
			return nil
		})
	}, netlooptest.AllowPanics())
	c := play(t, w, perfect)
	for n := range uint64(9) {
		client.Send(c, echo, text{N: n})
	}
	w.Step(3)
	if want := []uint64{0, 2, 3, 5, 6, 8}; !slices.Equal(got, want) {
		t.Errorf("handled %v, want %v", got, want)
	}
}

func TestAPanicOfASystemDoesNotStopOtherSystems(t *testing.T) {
	ran := 0
	w := open(t, func(r *netloop.Room) {
		r.On(netloop.Update, "test.panic", func(*netloop.Tick) { panic("no") }, netloop.Priority(netloop.PriorityFirst))
		r.On(netloop.Update, "test.after", func(*netloop.Tick) { ran++ })
	}, netlooptest.AllowPanics())
	w.Step(10)
	if ran != 10 {
		t.Errorf("the next system ran %d times of 10", ran)
	}
}
