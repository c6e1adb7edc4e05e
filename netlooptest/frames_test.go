package netlooptest_test

import (
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/netlooptest"
)

// A client of 144 frames per second runs each at its time, also between ticks and during a long
// tick. A hanging client skips frames, and its next one has the whole time.
func TestFramesComeAtTheirRate(t *testing.T) {
	w := netlooptest.New(t, game{})
	c := w.Join("", nil, netlooptest.Link{}, netlooptest.FPS(144))
	frames, missed, last := 0, 0, time.Duration(0)
	c.On(netloop.Update, "test.frame", func(tick *netloop.Tick) {
		frames++
		if want := time.Duration(frames+missed) * time.Second / 144; w.Now() != want || tick.Delta() != want-last {
			t.Errorf("frame %d at %v, of %v, want it at %v", frames, w.Now(), tick.Delta(), want)
		}
		last = w.Now()
	})
	w.Step(30)
	w.Spend(40 * time.Millisecond)
	if frames != int(w.Now()*144/time.Second) {
		t.Errorf("%d frames by %v", frames, w.Now())
	}
	w.Freeze(c)
	w.Step(60)
	missed = int(w.Now()*144/time.Second) - frames
	w.Thaw(c)
	w.Step(10)
	if total := frames + missed; missed < 130 || total != int(w.Now()*144/time.Second) {
		t.Errorf("%d frames by %v, %d of them missed", total, w.Now(), missed)
	}
}

// A client without a frame rate runs one frame in each tick. The frame after dropped ticks is
// longer by their time.
func TestFramesContainTheTimeOfDroppedTicks(t *testing.T) {
	w := netlooptest.New(t, game{})
	c := w.Join("", nil, netlooptest.Link{})
	frames := time.Duration(0)
	c.On(netloop.Update, "test.frame", func(tick *netloop.Tick) { frames += tick.Delta() })
	w.Step(30)
	behind := w.Now() - frames
	w.Spend(time.Second)
	w.Step(30)
	// A period is no whole number of nanoseconds.
	if got := w.Now() - frames; (got - behind).Abs() > time.Microsecond {
		t.Errorf("by %v the frames have %v, want %v", w.Now(), frames, w.Now()-behind)
	}
	w.Room("").Tick(func(tick *netloop.Tick) {
		if since := w.GameTime() - tick.GameTime(); since < 0 || since > time.Second/30 {
			t.Errorf("the game time is %v, %v after tick %d", w.GameTime(), since, tick.Number())
		}
	})
}

// A client's clock has an offset and a drift, and its frames follow its own clock; its estimate
// of the server's time is still right.
func TestAClientHasItsOwnClock(t *testing.T) {
	w := netlooptest.New(t, game{})
	c := w.Join("", nil, netlooptest.Link{}, netlooptest.FPS(100), netlooptest.ClientClock(time.Hour, 200))
	frames := 0
	c.On(netloop.Update, "test.frame", func(tick *netloop.Tick) {
		frames++
		if c.Now() != time.Hour+time.Duration(frames)*10*time.Millisecond {
			t.Errorf("frame %d at %v by the client's clock", frames, c.Now())
		}
		if off := tick.GameTime() - w.GameTime(); tick.Number() > 0 && off.Abs() > 3*time.Millisecond {
			t.Errorf("at %v the client is off by %v", w.GameTime(), off)
		}
	})
	w.Step(600)
	if ahead := c.Now() - time.Hour - w.Now(); (ahead-w.Now()/5000).Abs() > 10 || frames != int((c.Now()-time.Hour)/(10*time.Millisecond)) {
		t.Errorf("%v ahead after %v, %d frames", ahead, w.Now(), frames)
	}
}

func TestInvalidFrameRatesAreRefused(t *testing.T) {
	w := netlooptest.New(t, game{})
	for _, ppm := range []int{10_000, -10_000} {
		w.Join("", nil, netlooptest.Link{}, netlooptest.ClientClock(0, ppm))
	}
	for _, o := range []netlooptest.ClientOption{
		netlooptest.FPS(0), netlooptest.FPS(-1), netlooptest.ClientClock(-1, 0), netlooptest.ClientClock(0, 10_001), netlooptest.ClientClock(0, -10_001),
	} {
		l := &failureRecorder{TB: t}
		w := netlooptest.New(l, game{})
		func() {
			defer func() { _ = recover() }()
			w.Join("", nil, netlooptest.Link{}, o)
		}()
		if len(l.failures) == 0 {
			t.Error("the test continues")
		}
	}
}

// Advance runs to a time between two ticks, and a faster room runs all its ticks until then.
func TestAdvanceRunsToATime(t *testing.T) {
	ticks := map[string]uint64{}
	w := netlooptest.New(t, game{}, netlooptest.Configure(func(c *netloop.Config) { c.Room.Rate = netloop.Hz(5) }))
	fast, err := w.OpenRoom(netloop.RoomSpec{Name: "fast", Rate: netloop.Hz(1000)})
	if err != nil {
		t.Fatal(err)
	}
	w.Advance(1050*time.Millisecond + 1)
	w.Tick(func(tick *netloop.Tick) { ticks[""] = tick.Number() })
	fast.Tick(func(tick *netloop.Tick) { ticks["fast"] = tick.Number() })
	if w.Now() != 1050*time.Millisecond+1 || ticks[""] != 6 || ticks["fast"] != 1051 {
		t.Errorf("at %v the rooms are at ticks %v", w.Now(), ticks)
	}
}

// A link that is dead in one direction is lost for both sides, and works again after Heal.
func TestALinkMayBeDeadInOneDirection(t *testing.T) {
	for name, cut := range map[string]func(*netlooptest.World, *client.Client){"up": (*netlooptest.World).CutUp, "down": (*netlooptest.World).CutDown} {
		t.Run(name, func(t *testing.T) {
			w := netlooptest.New(t, game{})
			c := w.Join("", nil, netlooptest.Link{})
			w.Until(60, func() bool { return c.State().Phase == client.Playing })
			cut(w, c)
			w.Advance(15 * time.Second)
			if c.State().Phase != client.Reconnecting {
				t.Errorf("the client is %v", c.State().Phase)
			}
			w.Heal(c)
			w.Until(600, func() bool { return c.State().Phase == client.Playing })
		})
	}
}

// A client's clock that jumps does not disturb its frames, and its estimate of the server's time is
// right again soon.
func TestAClientsClockJumps(t *testing.T) {
	w := netlooptest.New(t, game{})
	c := w.Join("", nil, netlooptest.Link{}, netlooptest.FPS(100))
	frames := 0
	c.On(netloop.Update, "test.frame", func(*netloop.Tick) { frames++ })
	w.Step(300)
	w.JumpClock(c, time.Second)
	w.Step(300)
	if frames != int(w.Now()*100/time.Second) || c.Now() != w.Now()+time.Second {
		t.Errorf("%d frames by %v, at %v by the client's clock", frames, w.Now(), c.Now())
	}
	w.Look(c, func(tick *netloop.Tick) {
		if off := tick.GameTime() - w.GameTime(); off.Abs() > 30*time.Millisecond {
			t.Errorf("the client is off by %v", off)
		}
	})
}
