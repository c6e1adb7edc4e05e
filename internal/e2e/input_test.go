package e2e_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/recording"
	"github.com/netloop/netloop/internal/testing/seeds"
	"github.com/netloop/netloop/internal/transport"
	"github.com/netloop/netloop/netlooptest"
)

var (
	steering = netloop.NewSchema("steering", 1, 0)
	controls = netloop.NewInput(steering, func(last control, missed int) control {
		last.Fire, last.Missed = false, uint16(missed)
		return last
	})
)

// control is an input with the number of its step.
type control struct {
	Step   uint32
	Turn   int8
	Fire   bool
	Missed uint16 // set by repeat only
}

// TestInputsRunOnceInTheirStep plays over a bad and a perfect link. Each step runs one input of
// each client, in the order of their ids: the input made for the step, or a repetition.
func TestInputsRunOnceInTheirStep(t *testing.T) {
	type ran struct {
		step   uint64
		client netloop.ClientID
		in     control
	}
	var all []ran
	w := netlooptest.New(t, game{schema: steering, script: func(r *netloop.Room) {
		controls.Handle(r, func(t *netloop.Tick, from *netloop.Client, in control) {
			all = append(all, ran{t.FixedStep(), from.ID(), in})
		})
	}})
	var clients []*client.Client
	for _, l := range []netlooptest.Link{bad, perfect, {Delay: 75 * time.Millisecond, Loss: 0.05}} {
		c := w.Join("", nil, l)
		client.Inputs(c, controls, func(t *netloop.Tick) control {
			return control{Step: uint32(t.FixedStep()), Turn: int8(t.FixedStep() / 8), Fire: true}
		})
		clients = append(clients, c)
	}
	w.Step(600)
	last := map[netloop.ClientID]uint64{}
	counts := map[netloop.ClientID]int{}
	var before ran
	for _, r := range all {
		if at := last[r.client]; at != 0 && r.step != at+1 {
			t.Fatalf("client %d: step %d follows step %d", r.client, r.step, at)
		}
		if r.step < before.step || r.step == before.step && r.client <= before.client {
			t.Fatalf("%+v runs after %+v", r, before)
		}
		if r.in.Missed == 0 && uint64(r.in.Step) != r.step || r.in.Fire != (r.in.Missed == 0) {
			t.Fatalf("client %d, step %d: %+v", r.client, r.step, r.in)
		}
		last[r.client], before = r.step, r
		counts[r.client]++
	}
	for _, c := range clients {
		s := c.Stats()
		if counts[c.ID()] < 500 || s.InputsMissed > 60 || s.Inputs < 530 {
			t.Errorf("client %d: %d ran, %+v", c.ID(), counts[c.ID()], s)
		}
		t.Logf("client %d: %d ran, made %d, missed %d, early %v", c.ID(), counts[c.ID()], s.Inputs, s.InputsMissed, s.InputEarly)
	}
}

// Input reports to a client are part of the checked output of a recording: a recording with an
// input packet moved to another time does not replay.
func TestInputReportsReplay(t *testing.T) {
	var file bytes.Buffer
	steer := game{schema: steering, script: func(r *netloop.Room) {
		controls.Handle(r, func(*netloop.Tick, *netloop.Client, control) {})
	}}
	w := netlooptest.New(t, steer, netlooptest.Record(&file))
	c := w.Join("", nil, perfect)
	client.Inputs(c, controls, func(t *netloop.Tick) control { return control{Step: uint32(t.FixedStep())} })
	w.Step(120)
	w.Drain(0)
	for by, want := range map[time.Duration]bool{0: true, time.Millisecond: false} {
		came := uint64(0)
		p, err := netloop.NewReplay(netloop.Config{}, steer, bytes.NewReader(edit(t, file.Bytes(), func(tick *recording.Tick) {
			for i := range tick.Arrivals {
				if a := &tick.Arrivals[i]; a.Kind == transport.Inputs && came == 0 {
					a.At, came = a.At-by, tick.Input.Tick
				}
			}
		})))
		for err == nil {
			_, err = p.Step()
		}
		var d *netloop.Divergence
		if errors.Is(err, io.EOF) != want || !want && (!errors.As(err, &d) || d.Tick != came) || came == 0 {
			t.Errorf("%v earlier in tick %d: %v", by, came, err)
		}
	}
}

// A panic of the sample function makes no input for its step and is counted; the next step calls
// it again.
func TestAPanicOfASampleLosesOneInput(t *testing.T) {
	var steps, missed []uint64
	w := netlooptest.New(t, game{schema: steering, script: func(r *netloop.Room) {
		controls.Handle(r, func(t *netloop.Tick, _ *netloop.Client, in control) {
			if in.Missed > 0 {
				missed = append(missed, t.FixedStep())
			}
		})
	}}, netlooptest.AllowPanics())
	c := w.Join("", nil, perfect)
	client.Inputs(c, controls, func(t *netloop.Tick) control {
		if t.FixedStep()%50 == 0 {
			steps = append(steps, t.FixedStep())
			panic("out of ideas")
		}
		return control{Step: uint32(t.FixedStep())}
	})
	w.Step(190)
	if len(steps) != 3 || !slices.Equal(missed, steps) || c.Stats().Panics != 3 {
		t.Errorf("steps %d had no input, and %d were missed: %d panics", steps, missed, c.Stats().Panics)
	}
}

// Without a repeat function, a late input that a newer one has overtaken is skipped without a
// panic, and the handler gets a client's inputs in the order of their steps.
func TestLateInputsWithoutRepeatAreSkipped(t *testing.T) {
	schema := netloop.NewSchema("steering", 1, 0)
	plain := netloop.NewInput[control](schema, nil)
	var ran []uint32
	w := netlooptest.New(t, game{schema: schema, script: func(r *netloop.Room) {
		plain.Handle(r, func(_ *netloop.Tick, _ *netloop.Client, in control) { ran = append(ran, in.Step) })
	}})
	c := w.Join("", nil, perfect)
	client.Inputs(c, plain, func(t *netloop.Tick) control { return control{Step: uint32(t.FixedStep())} })
	w.Step(60)
	w.Cut(c)
	w.Step(12)
	w.Heal(c) // The next datagram has the inputs of several past steps.
	w.Step(60)
	steps := slices.Compact(slices.Clone(ran))
	if skipped := int(steps[len(steps)-1]-steps[0]) + 1 - len(steps); skipped < 5 || len(ran) < 90 || !slices.IsSorted(ran) {
		t.Errorf("%d inputs were skipped, and the steps of those that ran are %d", skipped, ran)
	}
}

// A late press is added to the input of a later step, but replaces no press of that input.
func TestLatePressesReplaceNoOther(t *testing.T) {
	type press struct{ Step, Key uint32 }
	t.Run("struct", func(t *testing.T) {
		lateKeys(t, func(step, key uint32) press { return press{step, key} },
			func(p press) (step, key uint32) { return p.Step, p.Key })
	})
	t.Run("protobuf", func(t *testing.T) {
		lateKeys(t, func(step, key uint32) *timestamppb.Timestamp {
			return &timestamppb.Timestamp{Seconds: int64(step), Nanos: int32(key)}
		}, func(p *timestamppb.Timestamp) (step, key uint32) { return uint32(p.GetSeconds()), uint32(p.GetNanos()) })
	})
}

// lateKeys presses a key of its own in every second step, also while the client is cut off.
func lateKeys[M any](t *testing.T, pack func(step, key uint32) M, unpack func(M) (step, key uint32)) {
	schema := netloop.NewSchema("keys", 1, 0)
	keys := netloop.NewInput(schema, func(last M, _ int) M {
		step, _ := unpack(last)
		return pack(step, 0)
	})
	added := 0
	w := netlooptest.New(t, game{schema: schema, script: func(r *netloop.Room) {
		keys.Handle(r, func(tick *netloop.Tick, _ *netloop.Client, in M) {
			switch step, key := unpack(in); {
			case uint64(step) != tick.FixedStep():
			case step%2 == 1 && key != step:
				t.Errorf("the input of step %d has the key of step %d", step, key)
			case step%2 == 0 && key != 0:
				added++
			}
		})
	}})
	c := w.Join("", nil, perfect)
	client.Inputs(c, keys, func(t *netloop.Tick) M {
		step := uint32(t.FixedStep())
		return pack(step, step*(step%2))
	})
	for range 8 {
		w.Step(60)
		w.Cut(c)
		w.Step(9)
		w.Heal(c)
	}
	if w.Step(60); added == 0 {
		t.Error("no late press is added to an input of a later step")
	}
}

// A client sends one datagram in each tick, also in the fastest room, and is not thrown out for it.
func TestInputsAtAThousandHertzAreWithinTheLimits(t *testing.T) {
	seeds.OneGoroutine(t)
	ran := 0
	w := netlooptest.New(t, game{schema: steering, script: func(r *netloop.Room) {
		controls.Handle(r, func(_ *netloop.Tick, _ *netloop.Client, in control) {
			if in.Missed == 0 {
				ran++
			}
		})
	}}, netlooptest.Room(netloop.RoomSpec{Rate: netloop.Hz(1000)}))
	c := w.Join("", nil, netlooptest.Link{})
	client.Inputs(c, controls, func(t *netloop.Tick) control { return control{Step: uint32(t.FixedStep())} })
	w.Step(6000)
	if c.Closed() != nil || ran < 5500 {
		t.Errorf("closed: %v, %d inputs ran", c.Closed(), ran)
	}
}

// A room with slow ticks and faster fixed steps runs each input in its step: the client does not
// wait for a tick to send its inputs, and the lead is within the server's window.
func TestInputsRunInTheirStepsBetweenSlowTicks(t *testing.T) {
	seeds.OneGoroutine(t)
	for _, hz := range []uint64{1, 2, 3, 5} {
		for _, fixed := range []uint64{10, 30, 120, 1000} {
			t.Run(fmt.Sprint(hz, " and ", fixed), func(t *testing.T) {
				own := 0
				w := netlooptest.New(t, game{schema: steering, script: func(r *netloop.Room) {
					controls.Handle(r, func(t *netloop.Tick, _ *netloop.Client, in control) {
						if in.Missed == 0 && uint64(in.Step) == t.FixedStep() {
							own++
						}
					})
				}}, netlooptest.Room(netloop.RoomSpec{Rate: netloop.Hz(hz), FixedRate: netloop.Hz(fixed)}))
				c := w.Join("", nil, netlooptest.Link{Delay: 50 * time.Millisecond}, netlooptest.FPS(60))
				client.Inputs(c, controls, func(t *netloop.Tick) control { return control{Step: uint32(t.FixedStep())} })
				w.Advance(10 * time.Second)
				own = 0
				if w.Advance(10 * time.Second); own != int(10*fixed) {
					t.Errorf("%d inputs of %d ran in their steps, with a lead of %v", own, 10*fixed, c.Stats().Lead)
				}
			})
		}
	}
}

// A press in the first step of a long frame runs, also if the client knows that the server has run
// the step: a late input runs in the next step.
func TestPressesOfLongFramesRun(t *testing.T) {
	for _, hz := range []uint64{1, 2, 5} {
		for _, fixed := range []uint64{10, 30} {
			pressed, ran, frame := 0, 0, time.Duration(0)
			w := netlooptest.New(t, game{schema: steering, script: func(r *netloop.Room) {
				controls.Handle(r, func(_ *netloop.Tick, _ *netloop.Client, in control) {
					if in.Fire {
						ran++
					}
				})
			}}, netlooptest.Room(netloop.RoomSpec{Rate: netloop.Hz(hz), FixedRate: netloop.Hz(fixed)}))
			c := w.Join("", nil, netlooptest.Link{Delay: 5 * time.Millisecond}) // One frame a tick.
			client.Inputs(c, controls, func(t *netloop.Tick) (in control) {
				if in.Fire = w.Now() != frame; in.Fire {
					pressed++
				}
				frame = w.Now()
				return in
			})
			w.Advance(40 * time.Second)
			if pressed-ran > 1 || pressed < 30 { // The last may be on its way.
				t.Errorf("%d Hz and %d: %d of %d presses ran", hz, fixed, ran, pressed)
			}
		}
	}
}
