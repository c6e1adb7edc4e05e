package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/netlooptest"
)

// at50 is a room with ticks of 20 ms and fixed steps of 10 ms.
func at50() netlooptest.Option {
	return netlooptest.Room(netloop.RoomSpec{Rate: netloop.Hz(50), FixedRate: netloop.Hz(100)})
}

// systemLog records the calls of systems with their time and delta.
type systemLog []string

func (j *systemLog) note(t *netloop.Tick) {
	*j = append(*j, fmt.Sprintf("%d %v %v", t.Number(), t.Stage(), t.Delta()))
}

func (j *systemLog) want(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(*j, want) {
		t.Errorf("ran %q, want %q", *j, want)
	}
	*j = nil
}

func TestTheDefaultStageIsUpdate(t *testing.T) {
	var ran systemLog
	w := open(t, func(r *netloop.Room) { r.On(0, "test.system", ran.note) }, at50())
	w.Step(1)
	ran.want(t, "1 Update 20ms")
}

func TestChangeTakesEffectAtTheNextTickAndKeepsTheTimer(t *testing.T) {
	var ran, others systemLog
	var s *netloop.System
	w := open(t, func(r *netloop.Room) {
		s = r.On(netloop.Update, "test.system", ran.note, netloop.Every(100*time.Millisecond))
		r.On(netloop.PreUpdate, "test.other", others.note)
		r.On(netloop.EarlyUpdate, "test.change", func(tick *netloop.Tick) {
			switch tick.Number() {
			case 3:
				s.Change(netloop.Every(60 * time.Millisecond))
			case 5:
				s.Change(netloop.Stages(netloop.PreUpdate, netloop.PostLateUpdate), netloop.Before("test.other"))
			case 8:
				s.Change(netloop.Every(0), netloop.Before(), netloop.RunIf(func(t *netloop.Tick) bool { return t.Number()%2 == 0 }))
			}
		})
	}, at50())
	w.Step(5)
	ran.want(t, "1 Update 20ms", "4 Update 60ms")
	w.Step(3)
	ran.want(t, "7 PreUpdate 60ms", "7 PostLateUpdate 60ms")
	w.Step(3)
	ran.want(t, "10 PreUpdate 60ms", "10 PostLateUpdate 60ms")
	if s.Err() != nil {
		t.Error(s.Err())
	}
}

// A change keeps the anchors that it does not name, both Before and After.
func TestAChangeKeepsTheAnchorsThatItDoesNotName(t *testing.T) {
	x, w := newTrees(t)
	l := x.room.Loop()
	after, before := x.system("after", netloop.After("c")), x.system("before", netloop.Before("a"))
	l.Append(after, before)
	set(t, l)
	x.tick(t, w, "before a b c after")
	after.Change(netloop.Priority(netloop.PriorityFirst))
	before.Change(netloop.Priority(netloop.PriorityLast))
	x.tick(t, w, "before a b c after")
	after.Change(netloop.After())
	before.Change(netloop.Before())
	x.tick(t, w, "after a b c before")
}

func TestAChangeThatIsRejectedChangesNothing(t *testing.T) {
	var ran systemLog
	var s *netloop.System
	w := open(t, func(r *netloop.Room) {
		s = r.On(netloop.Update, "test.system", ran.note, netloop.Before("room.timers"))
	}, at50())
	for _, c := range []struct {
		o    netloop.SystemOption
		want string
	}{
		{netloop.After("nobody"), `"nobody"`},
		{netloop.After("room.timers"), `"room.timers"`},
		{netloop.Every(-1), "negative"},
		{netloop.Every(0, netloop.CatchUp(0)), "above 0"},
		{netloop.Every(1, netloop.CatchUp(1001)), "1000"},
		{netloop.Stages(9), "stage 9"},
		{netloop.InSystemGroup("nowhere"), `"nowhere"`},
	} {
		w.Tick(func(*netloop.Tick) { s.Change(netloop.Stages(netloop.PreUpdate), c.o) })
		if s.Err() == nil || !strings.Contains(s.Err().Error(), c.want) {
			t.Errorf("error %v, want one with %s", s.Err(), c.want)
		}
	}
	w.Step(1)
	ran.want(t, "1 Update 20ms")
}

func TestNamesOfBuiltInsAreReserved(t *testing.T) {
	_, err := netloop.New(netloop.Config{}, script(func(r *netloop.Room) {
		r.On(netloop.Update, "transport.poll", func(*netloop.Tick) {})
	}))
	if err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("error %v", err)
	}
}

// The same periods in all kinds of stages, over a stall that drops ticks.
func TestPeriodsOfARoomCountDroppedTicks(t *testing.T) {
	var every, caught, steps systemLog
	server, err := netloop.New(netloop.Config{Room: netloop.RoomSpec{Rate: netloop.Hz(50), FixedRate: netloop.Hz(100)}}, script(func(r *netloop.Room) {
		r.On(netloop.Update, "test.every", every.note, netloop.Every(60*time.Millisecond))
		r.On(netloop.PreUpdate, "test.caught", caught.note, netloop.Every(30*time.Millisecond, netloop.CatchUp(2)))
		r.On(netloop.FixedUpdate, "test.steps", steps.note, netloop.Every(30*time.Millisecond))
	}))
	if err != nil {
		t.Fatal(err)
	}
	step := dropping(t, server)
	for _, dropped := range []uint64{0, 0, 0, 10, 0} {
		step(dropped)
	}
	every.want(t, "1 Update 20ms", "4 Update 260ms")
	caught.want(t, "3 PreUpdate 30ms", "4 PreUpdate 30ms", "4 PreUpdate 30ms", "5 PreUpdate 30ms")
	steps.want(t, "1 FixedUpdate 10ms", "2 FixedUpdate 30ms", "4 FixedUpdate 230ms", "4 FixedUpdate 10ms")
}

func TestAContextCancelsARegistration(t *testing.T) {
	var ran systemLog
	removed := 0
	ctx, cancel := context.WithCancel(context.Background())
	w := open(t, func(r *netloop.Room) {
		r.On(netloop.Update, "test.system", ran.note, netloop.WithContext(ctx), netloop.OnRemove(func() { removed++ }))
		r.On(netloop.PreUpdate, "test.cancel", func(tick *netloop.Tick) {
			if tick.Number() == 2 {
				cancel()
			}
		})
	}, at50())
	w.Step(4)
	ran.want(t, "1 Update 20ms", "2 Update 20ms")
	if removed != 1 {
		t.Errorf("OnRemove was called %d times", removed)
	}
}

func TestARepeatedlyPanickingSystemIsQuarantinedAndResumed(t *testing.T) {
	calls := 0
	var room *netloop.Room
	w := open(t, func(r *netloop.Room) {
		room = r
		r.On(netloop.Update, "test.panic", func(t *netloop.Tick) {
			if calls++; t.Number() < 10 {
				panic("no")
			}
		})
	}, netlooptest.AllowPanics())
	w.Step(3)
	if calls != 3 || room.Quarantined() != 1 {
		t.Errorf("%d calls, %d quarantined", calls, room.Quarantined())
	}
	w.Step(64)
	if calls != 3 || room.Quarantined() != 1 {
		t.Errorf("in quarantine: %d calls, %d quarantined", calls, room.Quarantined())
	}
	w.Step(3)
	if calls != 6 || room.Quarantined() != 0 {
		t.Errorf("afterwards: %d calls, %d quarantined", calls, room.Quarantined())
	}
}

// The log has a line at the start and at the end of a quarantine.
func TestStartAndEndOfAQuarantineAreLogged(t *testing.T) {
	p := newPeers(t, netloop.Config{}, script(func(r *netloop.Room) {
		r.On(netloop.Update, "test.bad", func(tick *netloop.Tick) { panic("again") })
	}))
	p.step(60)
	first, began, ended := p.logged("a system panicked"), p.logged("a system is quarantined: it panicked again and again"),
		p.logged("a system runs again after its quarantine")
	if first != 1 || began != 1 || ended != 0 {
		t.Errorf("after 60 ticks the log has %d, %d and %d lines", first, began, ended)
	}
	p.step(100)
	if n := p.logged("a system runs again after its quarantine"); n != 1 {
		t.Errorf("after 160 ticks the log has %d lines about its end", n)
	}
}
