package loop

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop/internal/testing/golden"
)

// Whole ticks of a small room: the order of systems, the state seen by calls, the effect of changes
// in a tick, and the record.
func TestTranscriptOfWholeTicks(t *testing.T) {
	h := newHarness(t)
	var log strings.Builder
	say := func(n *Now) {
		fmt.Fprintf(&log, "  %-15v %-18s game %v delta %v step %d fraction %.3f\n", n.Stage, n.System, n.GameTime, n.Delta, n.FixedStep, n.Fraction)
	}
	every := Stages()
	h.add(Spec[*Now]{Name: "transport.poll", Place: Head, Critical: true, Ask: at(say, EarlyUpdate)})
	h.add(Spec[*Now]{Name: "rpc.drain", Place: Head, Once: true, Critical: true, Ask: at(say, every[:]...)})
	h.add(Spec[*Now]{Name: "netvar.snapshot", Place: Tail, Critical: true, Ask: at(say, PreLateUpdate)})
	h.add(Spec[*Now]{Name: "transport.flush", Place: Tail, Critical: true, Ask: at(say, PostLateUpdate)})
	h.add(Spec[*Now]{Name: "scores", Priority: Late, Ask: at(say, Update)})
	h.add(Spec[*Now]{Name: "ships", Ask: at(say, FixedUpdate)})
	h.add(Spec[*Now]{Name: "hits", After: []string{"ships"}, Priority: First, Ask: at(say, FixedUpdate)})
	h.add(Spec[*Now]{Name: "audit", After: []string{"transport.flush"}, Ask: at(say, PostLateUpdate)})
	var intro *System[*Now]
	intro = h.add(Spec[*Now]{
		Name: "intro", Priority: First, OnRemove: func() { log.WriteString("  intro was removed\n") },
		Ask: at(func(n *Now) {
			say(n)
			intro.Remove()
			h.add(Spec[*Now]{Name: "rocks", Before: []string{"ships"}, Ask: at(func(n *Now) {
				say(n)
				if n.Tick == 4 {
					panic("a rock in the works")
				}
			}, FixedUpdate)})
		}, Initialization, PreUpdate),
	})
	dump(&log, h.Dump())
	if err := h.Check(); err != nil {
		t.Fatal(err)
	}
	dump(&log, h.Dump())
	p := Pacer{Timeline: Timeline{Rate: Hz(60), Fixed: Hz(90)}}
	p.Start(time.Second, FirstTick)
	for _, late := range []time.Duration{0, 100 * time.Nanosecond, 200 * time.Millisecond, 0} {
		_, _, wait := p.Next(0)
		in, due, _ := p.Next(wait + late)
		if !due {
			t.Fatal("not due")
		}
		fmt.Fprintf(&log, "tick %d: %d steps from %d, start %v deadline %v dropped %d epoch %v moved %v\n",
			in.Tick, in.FixedSteps, in.FirstFixedStep, in.Start, in.Deadline, in.Dropped, in.Epoch, in.EpochMoved)
		rec, err := h.Step(in)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&log, "  took %v: %v\n", rec.Duration, rec.Stages)
		for _, x := range rec.Panics {
			fmt.Fprintf(&log, "  %s panicked in %v: %v\n", x.System, x.Stage, x.Value)
		}
	}
	dump(&log, h.Dump())
	golden.Check(t, "testdata/ticks.txt", log.String())
}

func dump(w *strings.Builder, stages []DumpStage) {
	w.WriteString("dump\n")
	for _, d := range stages {
		fmt.Fprintf(w, "  %v\n", d.Stage)
		for _, s := range d.Systems {
			fmt.Fprintf(w, "    %-16s %v %d before %v after %v once %v critical %v pending %v\n",
				s.Name, s.Place, s.Priority, s.Before, s.After, s.Once, s.Critical, s.Pending)
		}
	}
}

// Whole ticks with periods in every kind of stage, 0, 1 and 2 fixed steps, dropped ticks, a
// condition, a quarantine, a change and a tree.
func TestTranscriptOfPeriods(t *testing.T) {
	var log strings.Builder
	for _, fixed := range []uint64{30, 50} {
		fmt.Fprintf(&log, "40 Hz with steps of %d Hz\n", fixed)
		transcribe(t, &log, Timeline{Rate: Hz(40), Fixed: Hz(fixed)})
	}
	golden.Check(t, "testdata/periods.txt", log.String())
}

func transcribe(t *testing.T, log *strings.Builder, line Timeline) {
	h := newHarness(t)
	h.Follow(line)
	say := func(n *Now) {
		fmt.Fprintf(log, "  %-14v %-8s delta %-12v step %d fraction %.2f\n", n.Stage, n.System, n.Delta, n.FixedStep, n.Fraction)
	}
	catching := every("catching", 10*ms, at(say, PreUpdate))
	catching.CatchUp = 3
	h.add(catching)
	slow := h.add(every("slow", 60*ms, at(say, Update, FixedUpdate)))
	h.add(Spec[*Now]{Name: "step", Ask: at(say, FixedUpdate)})
	h.add(every("zero", 0, at(say, Update)))
	even := group("even", "")
	even.RunIf = func(n *Now) bool { return n.Tick%2 == 0 }
	h.add(even)
	h.add(Spec[*Now]{Name: "member", Group: "even", Ask: at(say, Update)})
	h.add(Spec[*Now]{Name: "bad", Ask: at(func(n *Now) { say(n); panic("always") }, PostLateUpdate)})
	for tick := range uint64(10) {
		switch tick {
		case 6:
			spec := slow.Spec()
			spec.Period, spec.Stages = 30*ms, []Stage{Update}
			if err := slow.Change(spec); err != nil {
				t.Fatal(err)
			}
		case 8:
			tree := h.Tree()
			tree.Items = tree.Items[1:]
			tree.Items[len(tree.Items)-1].Spec.Disabled, tree.Items[len(tree.Items)-1].Changed = true, true
			if err := h.Set(tree); err != nil {
				t.Fatal(err)
			}
		}
		in := line.Input(tick + 1)
		if tick == 4 {
			in.Dropped = 6
		}
		fmt.Fprintf(log, "tick %d: game %v, %d steps, dropped %d\n", in.Tick, in.GameTime, in.FixedSteps, in.Dropped)
		rec, err := h.Step(in)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range rec.Systems {
			if s.Missed > 0 {
				fmt.Fprintf(log, "  %s missed %d\n", s.Name, s.Missed)
			}
		}
		for _, p := range rec.Panics {
			fmt.Fprintf(log, "  %s panicked: first %v, quarantine %d\n", p.System, p.First, p.Quarantine)
		}
	}
}
