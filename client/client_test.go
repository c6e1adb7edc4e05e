package client

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/bridge"
	"github.com/netloop/netloop/internal/clock"
	"github.com/netloop/netloop/internal/transport"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// The hello contains all that the server needs, and Join as JSON if it is set.
func TestAClientIntroducesItself(t *testing.T) {
	greet := func(join any) (*netloopv1.Hello, error) {
		c, err := newClient(Config{Schema: rigSchema, Room: "attic", Token: "secret", Join: join}, clock.NewVirtual())
		if err != nil {
			return nil, err
		}
		return c.conn.newAttempt().hello, nil
	}
	h, err := greet(nil)
	if err != nil || h.GetRoom() != "attic" || h.GetToken() != "secret" || h.GetParams() != nil || h.GetBuild() == "" {
		t.Errorf("%v, %v", h, err)
	}
	if h, err = greet(struct{ Team string }{"red"}); err != nil || string(h.GetParams()) != `{"Team":"red"}` {
		t.Errorf("with params: %s, %v", h.GetParams(), err)
	}
	var unsupported *json.UnsupportedTypeError
	if _, err = greet(make(chan int)); !errors.As(err, &unsupported) {
		t.Errorf("with what is no JSON: %v", err)
	}
	if _, err := newClient(Config{}, clock.NewVirtual()); err == nil || !strings.Contains(err.Error(), "Schema") {
		t.Errorf("without a schema: %v", err)
	}
}

// The client leaves a server with invalid rates at once.
func TestAWelcomeThatMakesNoSenseEndsTheConnection(t *testing.T) {
	r := newRig(t)
	e := r.conn.newAttempt()
	s, _ := transport.NewSession(e.config)
	e.finish(s, &netloopv1.Welcome{Protocol: 1, ClientId: 1}, nil)
	r.connected(e)
	if why, ok := s.Cause(); !ok || why.Code != transport.CodeProtocol {
		t.Errorf("the server is told %+v", why)
	}
	if r.Closed() == nil || r.Closed().Code != transport.CodeProtocol || r.ID() != 0 || r.State().Phase != Closed {
		t.Errorf("%v, client %d is %v", r.Closed(), r.ID(), r.State().Phase)
	}
	r.frame(0)
	if j := newJoined(t); j.ID() != 1 || j.Minor() != 3 || j.State().Phase != Loading || j.TickRate() != netloop.Hz(10) {
		t.Errorf("with sound rates client %d is %v, at %v", j.ID(), j.State().Phase, j.TickRate())
	}
}

// Close ends a client once: waiting calls fail, with a live tick, and a panic in OnRemove is logged
// in one line, both between two frames and within one.
func TestACloseIsToldOnceAndInALiveTick(t *testing.T) {
	for _, inStep := range []bool{false, true} {
		r := newJoined(t)
		var heard []string
		r.OnState(func(s State) { heard = append(heard, s.Phase.String()) })
		r.On(netloop.PreUpdate, "panics", func(*netloop.Tick) {}, netloop.OnRemove(func() { panic("at the end") }))
		Call(r.Client, rigAsk, rigWord{}, func(tick *netloop.Tick, _ rigWord, err error) {
			if heard = append(heard, tick.Stage().String()); !errors.As(err, new(*netloop.Closed)) {
				t.Errorf("the call failed with %v", err)
			}
		})
		closing := func() {
			for range 2 {
				if err := r.Close(); err != nil {
					t.Error(err)
				}
			}
		}
		r.On(netloop.PreLateUpdate, "closes", func(tick *netloop.Tick) {
			if inStep && tick.Number() == 2 {
				closing()
				heard = append(heard, "still at "+tick.Stage().String())
			}
		})
		r.frame(0)
		r.frame(100 * ms)
		if !inStep {
			closing()
		}
		want := []string{"Update", "closed"}
		if inStep {
			want = []string{"PreLateUpdate", "closed", "still at PreLateUpdate"}
		}
		if !slices.Equal(heard, want) {
			t.Errorf("in a Step %v: heard %q, want %q", inStep, heard, want)
		}
		if n := strings.Count(r.said.String(), "a system panicked"); n != 1 {
			t.Errorf("in a Step %v: %d lines say that a system panicked", inStep, n)
		}
		if why, ok := r.conn.session.Cause(); !ok || why.Code != netloop.CodeLeft {
			t.Errorf("in a Step %v: the server is told %+v", inStep, why)
		}
		ticks := r.time.tick
		r.frame(time.Second)
		if r.time.tick != ticks {
			t.Errorf("in a Step %v: it goes on", inStep)
		}
	}
}

// The first end counts: a client that the server has thrown out did not leave.
func TestTheFirstEndCounts(t *testing.T) {
	r := newJoined(t)
	r.arrives(transport.Arrival{Kind: transport.Gone, Closed: &transport.Closed{Code: netloop.CodeGame, Text: "out"}})
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if c := r.Closed(); c.Code != netloop.CodeGame || c.Text != "out" || r.State().Code != netloop.CodeGame || r.State().Text != "out" {
		t.Errorf("closed with %v, its state is %+v", c, r.State())
	}
}

// A system that panics again and again is told of twice: at first, and when it is quarantined.
func TestASystemThatPanicsIsToldOfTwice(t *testing.T) {
	r := newJoined(t)
	r.On(netloop.Update, "bad", func(*netloop.Tick) { panic("again") })
	for range 60 {
		r.frame(100 * ms)
	}
	said := r.said.String()
	if strings.Count(said, "a system panicked") != 1 || strings.Count(said, "a system is quarantined") != 1 {
		t.Errorf("the log says %s", said)
	}
}

// stepping is a clock that does not wait, but records the requested times, and ends after some
// calls.
type stepping struct {
	clock.Virtual
	waits []time.Duration
	stop  int
}

func (s *stepping) WaitUntil(ctx context.Context, at time.Duration) error {
	if s.waits = append(s.waits, at); len(s.waits) == s.stop {
		return context.Canceled
	}
	return s.Virtual.WaitUntil(ctx, at)
}

// Run has a frame per tick. After a frame that took too long one is made up for, not all.
func TestRunHasAFramePerTick(t *testing.T) {
	clk := &stepping{stop: 6}
	c, err := newClient(Config{Schema: rigSchema}, clk)
	if err != nil {
		t.Fatal(err)
	}
	hz := &netloopv1.Rate{Num: 10, Den: 1}
	welcome := &netloopv1.Welcome{Protocol: 1, ClientId: 1, TickRate: hz, FixedRate: hz, SendEvery: 1, Epoch: &netloopv1.Epoch{Tick: 1}}
	welcomed(c, welcome)
	var frames []time.Duration
	c.On(netloop.Update, "frame", func(tick *netloop.Tick) {
		if frames = append(frames, tick.Delta()); len(frames) == 3 {
			clk.Advance(550 * ms)
		}
	})
	clk.Advance(40 * ms)
	if err := c.Run(t.Context()); err != nil {
		t.Error(err)
	}
	if want := []time.Duration{0, 100 * ms, 100 * ms, 550 * ms, 0, 100 * ms}; !slices.Equal(frames, want) {
		t.Errorf("the frames took %v, want %v", frames, want)
	}
	if want := []time.Duration{140 * ms, 240 * ms, 340 * ms, 790 * ms, 890 * ms, 990 * ms}; !slices.Equal(clk.waits, want) {
		t.Errorf("it waited until %v, want %v", clk.waits, want)
	}
	clk.stop = 0
	c.On(netloop.Update, "closes", func(*netloop.Tick) { _ = c.Close() })
	var closed *netloop.Closed
	if err := c.Run(t.Context()); !errors.As(err, &closed) || closed.Code != netloop.CodeLeft {
		t.Errorf("of a client that was closed Run returns %v", err)
	}
}

// Run of a client that is not connected has frames all the same, sixty a second.
func TestRunBeforeTheConnection(t *testing.T) {
	clk := &stepping{stop: 3}
	c, err := newClient(Config{Schema: rigSchema}, clk)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Run(t.Context()); err != nil || clk.waits[2] != 3*(time.Second/60) {
		t.Errorf("%v, it waited until %v", err, clk.waits)
	}
}

// A client that is not connected can be closed, also without a log.
func TestACloseBeforeTheConnection(t *testing.T) {
	c, err := newClient(Config{Schema: rigSchema}, clock.NewVirtual())
	if err != nil {
		t.Fatal(err)
	}
	if s := c.On(netloop.Update, "bad", nil); s.Err() == nil {
		t.Error("a system without a function was accepted")
	}
	if err := c.Close(); err != nil || c.Closed() == nil || c.Closed().Code != netloop.CodeLeft {
		t.Errorf("%v, closed with %v", err, c.Closed())
	}
}

// Progress is the arrived share of the first state.
func TestProgressIsAShare(t *testing.T) {
	for s, want := range map[State]float64{
		{}:                                      0,
		{Phase: Loading}:                        0,
		{Phase: Loading, Loaded: 1, Objects: 4}: 0.25,
		{Phase: Loading, Loaded: 1, Objects: 1}: 1,
		{Phase: Playing}:                        1,
		{Phase: Closed}:                         0,
	} {
		if got := s.Progress(); got != want {
			t.Errorf("%+v: %v, want %v", s, got, want)
		}
	}
}

// An error in a Config is returned before any dial, and an expired context fails the dial.
func TestDialReturnsConfigErrors(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for want, cfg := range map[string]Config{
		"client: Config.Schema: ":                {},
		"client: Config.Join: ":                  {Schema: rigSchema, Join: make(chan int)},
		"client: dialing 127.0.0.1:9: ":          {Schema: rigSchema},
		"client: dialing 127.0.0.1:9: context c": {Schema: rigSchema, Room: "attic"},
	} {
		if c, err := Dial(ended, "127.0.0.1:9", cfg); c != nil || err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	if _, err := bridge.Client.New(Config{}, bridge.Memory{Clock: clock.NewVirtual()}); err == nil || !strings.Contains(err.Error(), "Schema") {
		t.Errorf("in memory: %v", err)
	}
}

// A client that draws no views counts no frames, and has no view delay.
func TestWithoutViewsNothingIsDrawn(t *testing.T) {
	r := newJoined(t)
	for range 20 {
		r.frame(100 * time.Millisecond)
	}
	if s := r.Stats(); s.Drawn != 0 || s.Starved != 0 || s.ViewDelay != 0 {
		t.Errorf("%d frames drawn, %d starved, %v behind", s.Drawn, s.Starved, s.ViewDelay)
	}
}
