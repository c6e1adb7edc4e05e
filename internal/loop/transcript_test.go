package loop

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// golden compares a transcript with testdata/name.txt, or writes it with -rewrite.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".txt")
	if *rewrite {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Fatalf("the transcript differs (run with -rewrite if that is meant):\n%s", diff)
	}
}

// Whole ticks of a small room: who runs when, what a call sees, what changes in
// a tick do to it, and what the record says.
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
	golden(t, "ticks", log.String())
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
