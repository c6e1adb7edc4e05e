package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/netlooptest"
)

// TestStagedMessagesSurviveSharedPacketsAndTicksWithoutFixedSteps: staged messages arrive
// although two share a packet, and although the tick that takes the packet has no fixed step, one
// or two.
func TestStagedMessagesSurviveSharedPacketsAndTicksWithoutFixedSteps(t *testing.T) {
	const steady, half, double = 60, 30, 120 // Hz of fixed steps, at 60 ticks a second
	for _, tt := range []struct {
		name  string
		fixed uint64
		steps int // in the tick that takes the packet
		sent  []netloop.Stage
		want  []string // ticks after the packet's tick, and stage
	}{
		{"FixedUpdate and Update, 1 step", steady, 1, []netloop.Stage{netloop.FixedUpdate, netloop.Update}, []string{"0 FixedUpdate A", "0 Update B"}},
		{"FixedUpdate and Update, 0 steps", half, 0, []netloop.Stage{netloop.FixedUpdate, netloop.Update}, []string{"0 Update B", "1 FixedUpdate A"}},
		{"FixedUpdate alone, 0 steps", half, 0, []netloop.Stage{netloop.FixedUpdate}, []string{"1 FixedUpdate A"}},
		{"EarlyUpdate, the queue before the poll", steady, 1, []netloop.Stage{netloop.EarlyUpdate}, []string{"0 EarlyUpdate A"}},
		{"Initialization and Update", steady, 1, []netloop.Stage{netloop.Initialization, netloop.Update}, []string{"0 Update B", "1 Initialization A"}},
		{"FixedUpdate, 2 steps", double, 2, []netloop.Stage{netloop.FixedUpdate}, []string{"0 FixedUpdate A"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var ran []string
			var took uint64 // the tick that took the packet
			steps := map[uint64]int{}
			w := open(t, func(r *netloop.Room) {
				r.On(netloop.FixedUpdate, "test.step", func(tick *netloop.Tick) { steps[tick.Number()]++ })
				// Registered before any message, and runs before the poll.
				r.On(netloop.EarlyUpdate, "test.early", func(*netloop.Tick) {}, netloop.Before("transport.poll"))
				echo.Handle(r, func(tick *netloop.Tick, _ *netloop.Client, m text) error {
					ran = append(ran, fmt.Sprint(tick.Number()-took, " ", tick.Stage(), " ", m.S))
					return nil
				})
			}, netlooptest.Room(netloop.RoomSpec{Rate: netloop.Hz(60), FixedRate: netloop.Hz(tt.fixed)}))
			c := play(t, w, perfect)
			number := func() (n uint64) {
				w.Tick(func(tick *netloop.Tick) { n = tick.Number() })
				return n
			}
			for number()%2 == 0 { // At half the rate the odd ticks have no step.
				w.Step(1)
			}
			for i, s := range tt.sent {
				client.Send(c, echo, text{S: string(rune('A' + i))}, netloop.RunAt(s))
			}
			w.Step(1)
			took = number() + 1
			w.Step(1)
			if steps[took] != tt.steps {
				t.Fatalf("tick %d has %d fixed steps", took, steps[took])
			}
			w.Step(5)
			if !slices.Equal(ran, tt.want) {
				t.Errorf("ran %q, want %q", ran, tt.want)
			}
		})
	}
}

func TestServerToClientRPCRunsAtItsStage(t *testing.T) {
	w := open(t, func(r *netloop.Room) {
		r.On(netloop.Update, "test.tell", func(tick *netloop.Tick) {
			told.Send(tick, netloop.Everyone(), text{N: 0})
			told.Send(tick, netloop.Everyone(), text{N: 1}, netloop.RunAt(netloop.PostLateUpdate))
		})
	})
	c := play(t, w, perfect)
	at := map[uint64]netloop.Stage{}
	client.Handle(c, told, func(tick *netloop.Tick, m text) { at[m.N] = tick.Stage() })
	w.Step(5)
	if at[0] != netloop.PreUpdate || at[1] != netloop.PostLateUpdate {
		t.Errorf("ran at %v", at)
	}
}

func TestSendAtAStageThatIsNotAllowedPanics(t *testing.T) {
	w := open(t, func(*netloop.Room) {})
	c := play(t, w, perfect)
	panics := func(what string, fn func()) {
		t.Helper()
		defer func() {
			if v := fmt.Sprint(recover()); !strings.Contains(v, "does not run at") {
				t.Errorf("%s: recovered %q", what, v)
			}
		}()
		fn()
	}
	w.Tick(func(tick *netloop.Tick) {
		panics("server", func() { told.Send(tick, netloop.Everyone(), text{}, netloop.RunAt(netloop.Update)) })
	})
	panics("client", func() { client.Send(c, told, text{}, netloop.RunAt(netloop.Update)) })
	panics("call", func() {
		client.Call(c, add, pair{}, func(*netloop.Tick, sum, error) { t.Error("it was answered") }, netloop.RunAt(netloop.PreUpdate))
	})
	if n := c.Stats().Calls; n != 0 {
		t.Errorf("%d calls wait", n)
	}
}

func TestInitializationRPCsAreLateAndFollowTheirPolicy(t *testing.T) {
	ran := map[string]netloop.Stage{}
	w := open(t, func(r *netloop.Room) {
		echo.Handle(r, func(tick *netloop.Tick, _ *netloop.Client, m text) error { ran[m.S] = tick.Stage(); return nil })
		late.Handle(r, func(tick *netloop.Tick, _ *netloop.Client, m text) error { ran[m.S] = tick.Stage(); return nil })
	})
	c := play(t, w, perfect)
	client.Send(c, echo, text{S: "next tick"}, netloop.RunAt(netloop.Initialization))
	client.Send(c, late, text{S: "dropped"})
	w.Step(2)
	if len(ran) != 0 {
		t.Errorf("ran in the tick of the poll: %v", ran)
	}
	w.Step(2)
	if ran["next tick"] != netloop.Initialization || len(ran) != 1 {
		t.Errorf("ran: %v", ran)
	}
}
