package phase_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/netlooptest"
	"github.com/netloop/netloop/phase"
)

var (
	schema = netloop.NewSchema("phases", 1, 0)
	tables = netloop.NewClass[table](schema, "table")
)

type table struct{ Phase phase.State }

// turns is a game with one Timer.
type turns struct {
	sleeps bool
	timer  *phase.Timer
	ended  []string // phases, each with the second of its end
}

func (*turns) Schema() *netloop.Schema { return schema }

func (g *turns) RoomDefaults() netloop.RoomSpec { return netloop.RoomSpec{Sleep: g.sleeps} }

func (g *turns) Open(r *netloop.Room) error {
	r.OnStart(func(t *netloop.Tick) {
		o := tables.Spawn(t, table{})
		g.timer = phase.New(func(t *netloop.Tick) *phase.State { return &o.Edit(t).Phase })
	})
	return nil
}

// begin begins a phase and notes its end.
func (g *turns) begin(t *netloop.Tick, name string, p phase.Phase) {
	p.End = func(t *netloop.Tick) {
		g.ended = append(g.ended, fmt.Sprint(name, " ", math.Round(t.GameTime().Seconds())))
	}
	g.timer.Begin(t, p)
}

// Phases end when their time limit has passed: a player who is absent has less, and one who returns
// the rest of the full time. Only End of the last phase is called.
func TestPhasesEndInTime(t *testing.T) {
	for name, c := range map[string]struct {
		play func(g *turns, at int, tick *netloop.Tick) // called each second from 0 on
		want string
	}{
		"full time": {func(g *turns, at int, tick *netloop.Tick) {
			if at == 0 {
				g.begin(tick, "turn", phase.Phase{For: 20 * time.Second})
			}
		}, "[turn 20]"},
		"the next phase": {func(g *turns, at int, tick *netloop.Tick) {
			switch at {
			case 0:
				g.begin(tick, "turn", phase.Phase{For: 20 * time.Second})
			case 7:
				g.begin(tick, "pause", phase.Phase{For: 5 * time.Second})
			case 14:
				g.begin(tick, "stopped", phase.Phase{For: 5 * time.Second})
			case 15:
				g.timer.Stop(tick)
			}
		}, "[pause 12]"},
		"absent": {func(g *turns, at int, tick *netloop.Tick) {
			if at == 0 {
				g.begin(tick, "turn", phase.Phase{For: 20 * time.Second, ForAbsent: 3 * time.Second})
			}
			g.timer.SetAbsent(tick, at >= 10)
		}, "[turn 13]"},
		"back": {func(g *turns, at int, tick *netloop.Tick) {
			if at == 0 {
				g.begin(tick, "turn", phase.Phase{For: 20 * time.Second, ForAbsent: 3 * time.Second})
			}
			g.timer.SetAbsent(tick, at >= 10 && at < 12)
		}, "[turn 20]"},
		"absent near the end": {func(g *turns, at int, tick *netloop.Tick) {
			if at == 0 {
				g.begin(tick, "turn", phase.Phase{For: 20 * time.Second, ForAbsent: 3 * time.Second})
			}
			g.timer.SetAbsent(tick, at >= 19)
		}, "[turn 20]"},
		"absent after the end": {func(g *turns, at int, tick *netloop.Tick) {
			if at == 0 {
				g.begin(tick, "turn", phase.Phase{For: 20 * time.Second, ForAbsent: 3 * time.Second})
			}
			g.timer.SetAbsent(tick, at >= 22)
		}, "[turn 20]"},
		"absence does not matter": {func(g *turns, at int, tick *netloop.Tick) {
			if at == 0 {
				g.begin(tick, "turn", phase.Phase{For: 20 * time.Second})
			}
			g.timer.SetAbsent(tick, true)
		}, "[turn 20]"},
		"absence without a limit": {func(g *turns, at int, tick *netloop.Tick) {
			if at == 0 {
				g.begin(tick, "turn", phase.Phase{ForAbsent: 3 * time.Second})
			}
			g.timer.SetAbsent(tick, true)
		}, "[]"},
		"the shortest limits": {func(g *turns, at int, tick *netloop.Tick) {
			switch at {
			case 0:
				g.begin(tick, "turn", phase.Phase{For: 1})
			case 5:
				g.begin(tick, "next", phase.Phase{For: time.Minute, ForAbsent: 1})
			}
			g.timer.SetAbsent(tick, at == 7)
		}, "[turn 0 next 7]"},
		"the next player is present": {func(g *turns, at int, tick *netloop.Tick) {
			switch at {
			case 0:
				g.begin(tick, "ann", phase.Phase{For: 20 * time.Second, ForAbsent: 3 * time.Second})
				g.timer.SetAbsent(tick, true)
			case 2:
				g.begin(tick, "bob", phase.Phase{For: 20 * time.Second, ForAbsent: 3 * time.Second})
			}
		}, "[bob 22]"},
		"both are absent": {func(g *turns, at int, tick *netloop.Tick) {
			switch at {
			case 0, 2:
				g.begin(tick, fmt.Sprint("player ", at), phase.Phase{For: 20 * time.Second, ForAbsent: 3 * time.Second})
			case 1, 4:
				g.timer.SetAbsent(tick, true)
			}
		}, "[player 2 7]"},
		"no pause without Scaled": {func(g *turns, at int, tick *netloop.Tick) {
			switch at {
			case 0:
				g.begin(tick, "turn", phase.Phase{For: 10 * time.Second})
			case 5:
				tick.Room().SetTimeScale(tick, 0, 1)
			}
		}, "[turn 10]"},
		"a pause": {func(g *turns, at int, tick *netloop.Tick) {
			switch at {
			case 0:
				g.begin(tick, "turn", phase.Phase{For: 10 * time.Second, Scaled: true, ForAbsent: 4 * time.Second})
			case 5:
				tick.Room().SetTimeScale(tick, 0, 1)
			case 15:
				tick.Room().SetTimeScale(tick, 1, 1)
				g.timer.SetAbsent(tick, true)
			}
		}, "[turn 19]"},
	} {
		t.Run(name, func(t *testing.T) {
			g := &turns{sleeps: name == "full time"} // The others would not see each second.
			w := netlooptest.New(t, g)
			w.Step(1)
			for at := range 30 {
				w.Tick(func(tick *netloop.Tick) { c.play(g, at, tick) })
				w.Advance(time.Second)
			}
			if got := fmt.Sprint(g.ended); got != c.want {
				t.Errorf("the ends are %s, want %s", got, c.want)
			}
		})
	}
}

// A client sees the time that is left, and its part of the phase.
func TestClientsSeeThePhase(t *testing.T) {
	g := new(turns)
	w := netlooptest.New(t, g)
	c := w.Join("", nil, netlooptest.Link{})
	w.Step(10)
	w.Tick(func(tick *netloop.Tick) { g.begin(tick, "turn", phase.Phase{For: 20 * time.Second}) })
	w.Advance(5 * time.Second)
	look := func() (left time.Duration, fraction float64) {
		w.Look(c, func(tick *netloop.Tick) {
			for o := range tables.All(tick) {
				s := o.State().Phase
				left, fraction = s.Left(tick), s.Fraction(tick)
			}
		})
		return left, fraction
	}
	if left, fraction := look(); (left-15*time.Second).Abs() > 300*time.Millisecond || math.Abs(fraction-0.75) > 0.02 {
		t.Errorf("after 5 of 20 s %v are left, and %v of the phase", left, fraction)
	}
	w.Tick(func(tick *netloop.Tick) {
		g.begin(tick, "turn", phase.Phase{For: 20 * time.Second, ForAbsent: 4 * time.Second})
		g.timer.SetAbsent(tick, true)
		if f := (phase.State{Until: tick.In(2 * time.Second), Length: 1000}).Fraction(tick); f != 1 {
			t.Errorf("%v of a phase are left", f)
		}
	})
	w.Advance(time.Second)
	if left, fraction := look(); (left-3*time.Second).Abs() > 300*time.Millisecond || math.Abs(fraction-0.15) > 0.02 {
		t.Errorf("after one of 4 s for an absent player %v are left, and %v of the phase", left, fraction)
	}
	w.Tick(func(tick *netloop.Tick) { g.timer.Stop(tick) })
	w.Advance(time.Second)
	if left, fraction := look(); left != 0 || fraction != 0 {
		t.Errorf("without a phase %v are left, and %v of it", left, fraction)
	}
}

// lastMoment reports an absence at the beginning of the tick in which the phase ends.
type lastMoment struct {
	turns
	end uint64 // tick
}

func (g *lastMoment) Open(r *netloop.Room) error {
	if err := g.turns.Open(r); err != nil {
		return err
	}
	r.OnStart(func(t *netloop.Tick) {
		g.timer.Begin(t, phase.Phase{For: 2500 * time.Millisecond, ForAbsent: time.Second, End: func(t *netloop.Tick) { g.end = t.Number() }})
	})
	r.On(netloop.Initialization, "test.absent", func(t *netloop.Tick) {
		if t.Number() == 4 {
			g.timer.SetAbsent(t, true)
		}
	})
	return nil
}

// A report in the tick of the end does not delay the end by a tick, which a slow room would feel.
func TestAReportInTheLastTickDelaysNoEnd(t *testing.T) {
	g := new(lastMoment)
	w := netlooptest.New(t, g, netlooptest.Configure(func(c *netloop.Config) { c.Room.Rate = netloop.Hz(1) }))
	w.Step(6)
	if g.end != 4 {
		t.Errorf("a phase of two and a half ticks that begins in tick 1 ends in tick %d", g.end)
	}
}
