package e2e_test

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	logtest "go.uber.org/zap/zaptest/observer"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/bridge"
	"github.com/netloop/netloop/internal/logging"
	"github.com/netloop/netloop/internal/testing/seeds"
	"github.com/netloop/netloop/netlooptest"
)

// heavy makes a world with the busy game and ticks as long as load.
func heavy(t *testing.T, load *time.Duration, spec netloop.RoomSpec) *netlooptest.World {
	t.Helper()
	var w *netlooptest.World
	w = open(t, func(r *netloop.Room) {
		busy(r)
		r.On(netloop.Update, "test.load", func(*netloop.Tick) { w.Spend(*load) })
	}, netlooptest.Room(spec))
	return w
}

// sent counts the snapshots that reach a client during n ticks.
func sent(w *netlooptest.World, c *client.Client, n int) uint64 {
	before := c.Stats().Snapshots
	w.Step(n)
	return c.Stats().Snapshots - before
}

// TestOverloadedServerClimbsAndRecovers makes ticks longer than their period and then short
// again: snapshots are halved and joins refused until the load ends.
func TestOverloadedServerClimbsAndRecovers(t *testing.T) {
	seeds.OneGoroutine(t)
	for _, every := range []int{1, 2} {
		var load time.Duration
		w := heavy(t, &load, netloop.RoomSpec{SendEvery: every})
		c := play(t, w, perfect)
		var told []netloop.Overload
		c.OnOverload(func(o netloop.Overload) { told = append(told, o) })
		w.Step(60)
		if n := sent(w, c, 60); n != uint64(60/every) {
			t.Errorf("every %d: %d snapshots in 60 ticks before", every, n)
		}

		load = 20 * time.Millisecond // The period is 16.7 ms.
		w.Step(120)
		if got := c.Overload(); got != netloop.OverloadRefusing {
			t.Fatalf("after two seconds of overload the client gets %v", got)
		}
		if n := sent(w, c, 60); n != uint64(30/every) {
			t.Errorf("every %d: %d snapshots in 60 ticks under overload", every, n)
		}
		late := w.Join("", nil, perfect)
		w.Step(10)
		if why := late.Closed(); why == nil || why.Code != netloop.CodeBusy || why.Text == "" {
			t.Errorf("a late client was refused with %v", why)
		}

		var why string
		w.Room("").Tick(func(t *netloop.Tick) { why = bridge.Netloop.Room(t.Room()).Load.Facts().String() })
		if !strings.HasPrefix(why, "Refusing for ") || !strings.Contains(why, "Cause: tick time 120 %") {
			t.Errorf("the reason is %s", why)
		}

		load = 0
		w.Until(20*60, func() bool { return c.Overload() == netloop.OverloadNone })
		w.Step(60)
		if n := sent(w, c, 60); n != uint64(60/every) {
			t.Errorf("every %d: %d snapshots in 60 ticks afterwards", every, n)
		}
		play(t, w, perfect)
		want := []netloop.Overload{
			netloop.OverloadHalved, netloop.OverloadShedding, netloop.OverloadRefusing,
			netloop.OverloadShedding, netloop.OverloadHalved, netloop.OverloadNone,
		}
		if !slices.Equal(told, want) {
			t.Errorf("the client got %v", told)
		}
	}
}

// TestASingleStallIsNoOverload: a long tick drops ticks and has no other effect.
func TestASingleStallIsNoOverload(t *testing.T) {
	var load time.Duration
	w := heavy(t, &load, netloop.RoomSpec{})
	c := play(t, w, perfect)
	c.OnOverload(func(o netloop.Overload) { t.Errorf("the server is %v", o) })
	for range 10 {
		load = 700 * time.Millisecond
		w.Step(1)
		load = 0
		w.Step(60)
	}
}

// TestSleepSeparatesTicks: a room that sleeps between long ticks is not overloaded.
func TestSleepSeparatesTicks(t *testing.T) {
	var w *netlooptest.World
	ticks, worst := 0, netloop.OverloadNone
	w = open(t, func(r *netloop.Room) {
		r.On(netloop.Update, "test.load", func(tick *netloop.Tick) {
			ticks, worst = ticks+1, max(worst, r.Overload())
			w.Spend(50 * time.Millisecond)
			tick.AfterFunc(time.Minute, func(*netloop.Tick) {})
		})
	}, netlooptest.Room(netloop.RoomSpec{Sleep: true}))
	if w.Advance(time.Hour); worst != netloop.OverloadNone || ticks < 60 || ticks > 600 {
		t.Errorf("level %v after %d ticks", worst, ticks)
	}
}

// TestJoinersReceiveTheOverloadLevel: a client that joins during overload gets the level and the
// snapshot rate of the others.
func TestJoinersReceiveTheOverloadLevel(t *testing.T) {
	var load time.Duration
	w := heavy(t, &load, netloop.RoomSpec{})
	load = 20 * time.Millisecond
	w.Step(31) // A window, and the tick in which the level takes effect.
	load = 14 * time.Millisecond
	c := play(t, w, perfect)
	if got := c.Overload(); got != netloop.OverloadHalved {
		t.Errorf("the joiner gets %v", got)
	}
	if n := sent(w, c, 20); n != 10 {
		t.Errorf("%d snapshots in 20 ticks", n)
	}
}

// TestVanishedClientIsNoOverload: clients behind black holes do not change the overload level.
func TestVanishedClientIsNoOverload(t *testing.T) {
	var load time.Duration
	w := heavy(t, &load, netloop.RoomSpec{})
	healthy := play(t, w, perfect)
	healthy.OnOverload(func(o netloop.Overload) { t.Errorf("the server is %v", o) })
	for range 4 {
		w.Cut(play(t, w, perfect))
	}
	if n := sent(w, healthy, 600); n != 600 {
		t.Errorf("the healthy client got %d of 600 snapshots", n)
	}
}

// TestFlushLagOfTheMedianClientCounts delays the packets of some of five clients until the end of
// each window: two slow clients do not count, three do.
func TestFlushLagOfTheMedianClientCounts(t *testing.T) {
	seeds.OneGoroutine(t)
	for held := range 6 {
		var load time.Duration
		w := heavy(t, &load, netloop.RoomSpec{})
		var room *netloop.Room
		w.Tick(func(tick *netloop.Tick) { room = tick.Room() })
		var all []*client.Client
		for range 5 {
			all = append(all, w.Join("", nil, perfect))
		}
		w.Step(30) // The first window, with the joins.
		for range 3 {
			for _, c := range all[:held] {
				w.Stall(c, true)
			}
			w.Step(29)
			for _, c := range all[:held] {
				w.Stall(c, false)
			}
			w.Step(1)
		}
		w.Step(1) // The level takes effect in the next tick.
		want := netloop.OverloadNone
		if held >= 3 {
			want = netloop.OverloadRefusing
		}
		if got := room.Overload(); got != want {
			t.Errorf("%d of 5 held back: %v, want %v", held, got, want)
		}
	}
}

// TestOverloadIsAnInputThatIsLoggedAndMeasured sets levels directly.
func TestOverloadIsAnInputThatIsLoggedAndMeasured(t *testing.T) {
	core, logs := logtest.New(zapcore.InfoLevel)
	registry := prometheus.NewRegistry()
	var room *netloop.Room
	var seen []netloop.Overload
	s, err := netloop.New(netloop.Config{Log: logging.Slog(zap.New(core)), Registerer: registry}, script(func(r *netloop.Room) {
		room = r
		r.On(netloop.Initialization, "test.look", func(*netloop.Tick) { seen = append(seen, room.Overload()) })
	}))
	if err != nil {
		t.Fatal(err)
	}
	m := bridge.Netloop.Server(s).Room
	levels := []netloop.Overload{netloop.OverloadNone, netloop.OverloadHalved, netloop.OverloadHalved, netloop.OverloadRefusing, netloop.OverloadNone}
	for i, level := range levels {
		in := m.Timeline().Input(uint64(i + 1))
		in.Overload = uint8(level)
		if err := m.Step(in); err != nil {
			t.Fatal(err)
		}
		if got := gauge(t, registry, "netloop_overload_level"); got != float64(level) {
			t.Errorf("the gauge shows %v at level %v", got, level)
		}
	}
	if !slices.Equal(seen, levels) {
		t.Errorf("the first systems of the ticks saw %v", seen)
	}
	var lines []string
	for _, e := range logs.All() {
		lines = append(lines, e.ContextMap()["was"].(string)+" to "+e.ContextMap()["level"].(string))
	}
	if want := []string{"normal to halved", "halved to refusing", "refusing to normal"}; !slices.Equal(lines, want) {
		t.Errorf("logged %q", lines)
	}
}

// TestOverloadReplays records a server with rising and falling overload, and replays it without
// load: the same levels act in the same ticks.
func TestOverloadReplays(t *testing.T) {
	seeds.OneGoroutine(t)
	var file bytes.Buffer
	var w *netlooptest.World
	var load time.Duration
	highest := netloop.OverloadNone
	spend := func() { w.Spend(load) }
	game := func(r *netloop.Room) {
		busy(r)
		r.On(netloop.Update, "test.load", func(tick *netloop.Tick) {
			spend()
			highest = max(highest, r.Overload())
			for o := range things.All(tick) {
				o.Edit(tick).X += float32(r.Overload())
			}
			for c := range tick.Clients() {
				things.Spawn(tick, thing{N: int32(c.Link().InFlight)})
			}
		})
	}
	w = open(t, game, netlooptest.Record(&file), netlooptest.Room(netloop.RoomSpec{Rate: netloop.Hz(30)}))
	w.Join("", nil, netlooptest.Link{Delay: 50 * time.Millisecond})
	for n := range 700 {
		load = 0
		if n < 90 {
			load = 40 * time.Millisecond
		}
		w.Step(1)
	}
	if highest != netloop.OverloadRefusing {
		t.Fatalf("it reached %v only", highest)
	}
	spend = func() {}
	p, err := netloop.NewReplay(netloop.Config{}, script(game), &file)
	if err != nil {
		t.Fatal(err)
	}
	ticks := 0
	for ; err == nil; ticks++ {
		_, err = p.Step() // Compares the state's digest.
	}
	if !errors.Is(err, io.EOF) || ticks != 701 {
		t.Errorf("tick %d: %v", ticks, err)
	}
}

// gauge reads a metric without labels.
func gauge(t *testing.T, g prometheus.Gatherer, name string) float64 {
	t.Helper()
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatalf("there is no %s", name)
	return 0
}
