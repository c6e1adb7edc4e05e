package e2e_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/bridge"
	"github.com/netloop/netloop/internal/testing/seeds"
	"github.com/netloop/netloop/netlooptest"
)

func TestTimersFollowGameTime(t *testing.T) {
	var fired []uint64
	w := open(t, func(r *netloop.Room) {
		r.OnStart(func(tick *netloop.Tick) { // Tick 1, 16.7 ms of game time.
			tick.AfterFunc(100*time.Millisecond, func(tick *netloop.Tick) { fired = append(fired, tick.Number()) })
			stopped := tick.AfterFunc(50*time.Millisecond, func(*netloop.Tick) { t.Error("a stopped timer fired") })
			if !stopped.Stop() || stopped.Stop() {
				t.Error("Stop does not say whether it was in time")
			}
			tick.AfterFunc(0, func(tick *netloop.Tick) {
				fired = append(fired, tick.Number())
				tick.AfterFunc(0, func(tick *netloop.Tick) { fired = append(fired, tick.Number()) })
			})
		})
	})
	w.Step(20)
	// 7 ticks are 116.67 ms; the timers were set at 16.67 ms.
	if want := []uint64{2, 3, 8}; !slices.Equal(fired, want) && !slices.Equal(fired, []uint64{2, 3, 7}) {
		t.Errorf("fired at ticks %v, want %v", fired, want)
	}
}

func TestDeadlineCountsDownOnBothSides(t *testing.T) {
	w := open(t, func(r *netloop.Room) {
		r.On(netloop.Update, "test.once", func(tick *netloop.Tick) {
			if tick.Number() == 120 {
				things.Spawn(tick, thing{Until: tick.In(2 * time.Second)})
			}
		})
	})
	c := play(t, w, netlooptest.Link{Delay: 20 * time.Millisecond})
	w.Until(200, func() bool { return len(look(w, c, things)) == 1 })
	w.Step(30)
	var onServer, onClient time.Duration
	w.Tick(func(tick *netloop.Tick) {
		for o := range things.All(tick) {
			onServer = o.State().Until.Left(tick)
		}
	})
	w.Look(c, func(tick *netloop.Tick) {
		for o := range things.All(tick) {
			onClient = o.State().Until.Left(tick)
		}
	})
	if onServer == 0 || onClient-onServer > 40*time.Millisecond || onServer-onClient > 40*time.Millisecond {
		t.Errorf("remaining on the server %v, on the client %v", onServer, onClient)
	}
}

// TestWelcomeHasTheCurrentEpoch admits a client between two ticks: the welcome must have the
// epoch even if the room has never dropped a tick. If the machine stalls meanwhile, the room
// drops ticks, and the epoch is that of a later tick.
func TestWelcomeHasTheCurrentEpoch(t *testing.T) {
	ticked := make(chan struct{})
	s, _ := serve(t, script(func(r *netloop.Room) {
		r.OnStart(func(tick *netloop.Tick) { tick.AfterFunc(0, func(*netloop.Tick) { close(ticked) }) })
	}), 60)
	<-ticked
	adm, err := bridge.Netloop.Server(s).Handler.Admit(context.Background(), bridge.Netloop.Schema(schema).Hello(), "here")
	if err != nil {
		t.Fatal(err)
	}
	w := adm.Welcome
	if e := w.GetEpoch(); e.GetTick() == 0 || e.GetServerNs() == 0 || w.GetServerNs() <= e.GetServerNs() {
		t.Errorf("at %d ns the welcome names the epoch %v", w.GetServerNs(), e)
	}
}

// TestClientKnowsTheServersTickAtOnce reads the estimate before the time synchronisation has its
// samples.
func TestClientKnowsTheServersTickAtOnce(t *testing.T) {
	const delay = 30 * time.Millisecond
	w := open(t, func(*netloop.Room) {})
	w.Step(600)
	c := play(t, w, netlooptest.Link{Delay: delay})
	if c.Stats().Synced {
		t.Fatal("it is synchronised already: the test looks too late")
	}
	var onServer uint64
	w.Tick(func(tick *netloop.Tick) { onServer = tick.Number() })
	if onClient := c.Stats().ServerTick; onClient+3 < onServer || onClient > onServer+1 {
		t.Errorf("at tick %d the client estimates %d", onServer, onClient)
	}
}

// TestStepsKeepTheirPhaseAcrossDroppedTicks runs 50 Hz steps at 60 Hz in a room with repeated
// stalls: dropped ticks are no game time, so ticks remain contiguous, and the steps with them.
func TestStepsKeepTheirPhaseAcrossDroppedTicks(t *testing.T) {
	var w *netlooptest.World
	var steps, ticks, stalls uint64
	var game time.Duration
	w = open(t, func(r *netloop.Room) {
		r.On(netloop.FixedUpdate, "test.step", func(tick *netloop.Tick) {
			steps++
			game += tick.Delta()
		})
		r.On(netloop.PostLateUpdate, "test.tick", func(tick *netloop.Tick) {
			ticks++
			if tick.Number() != ticks {
				t.Fatalf("tick %d follows tick %d", tick.Number(), ticks-1)
			}
			if want := ticks * 50 / 60; steps != want {
				t.Fatalf("%d steps were run by tick %d, want %d", steps, ticks, want)
			}
			if ahead := tick.GameTime() - game; ahead < 0 || ahead >= time.Second/50 {
				t.Fatalf("tick %d: game time is %v and the steps are at %v", ticks, tick.GameTime(), game)
			}
			if ticks%40 == 0 {
				stalls++
				w.Spend(time.Duration(stalls) * 70 * time.Millisecond)
			}
		})
	}, netlooptest.Room(netloop.RoomSpec{Rate: netloop.Hz(60), FixedRate: netloop.Hz(50)}))
	w.Step(1200)
	// 30 stalls of 70, 140 … ms: most of them drop ticks, while real time continues.
	if behind := w.Now() - 20*time.Second; stalls != 30 || behind < 20*time.Second {
		t.Fatalf("%d stalls, and real time is only %v ahead: nothing was dropped", stalls, behind)
	}
}

// TestClientsReceiveTheEpochAfterAStall: a client does not count the ticks that the server dropped
// after a stall. Otherwise the client's clock would remain ahead of the server.
func TestClientsReceiveTheEpochAfterAStall(t *testing.T) {
	stall := time.Duration(0)
	var tick uint64
	var w *netlooptest.World
	w = open(t, func(r *netloop.Room) {
		r.On(netloop.Update, "test.stall", func(now *netloop.Tick) {
			tick = now.Number()
			w.Spend(stall)
			stall = 0
		})
	})
	c := play(t, w, perfect)
	w.Step(120)
	distance := func() int64 { return int64(c.Stats().ServerTick) - int64(tick) }
	before := distance()
	stall = 2 * time.Second
	w.Step(180) // The client's ticks never go back: they wait for the server's.
	if after, age := distance(), c.Stats().Age; max(after-before, before-after) > 2 || age > 100*time.Millisecond {
		t.Errorf("three seconds after a stall of 2 s the client is %d ticks ahead, before it was %d; the age is %v", after, before, age)
	}
}

// TestAnHourInARoomDropsNothing runs an hour of virtual time in which no tick is too long.
func TestAnHourInARoomDropsNothing(t *testing.T) {
	seeds.OneGoroutine(t)
	minutes := 60
	if testing.Short() {
		minutes = 5
	}
	ticks := 0
	var w *netlooptest.World
	w = open(t, func(r *netloop.Room) {
		r.On(netloop.Update, "test.work", func(t *netloop.Tick) {
			ticks++
			// Each tick fits into its period, some barely.
			w.Spend(time.Duration(t.Rand().Int64N(int64(16 * time.Millisecond))))
		})
	})
	w.Step(minutes * 60 * 60)
	// The last tick began at its deadline, one period before its game time ends; a client's frame
	// is half a period later.
	if want := time.Duration(minutes) * time.Minute; ticks != minutes*3600 || w.Now() > want || w.Now() < want-time.Second/60 {
		t.Errorf("%d ticks, and it is %v; want %v", ticks, w.Now(), want)
	}
}
