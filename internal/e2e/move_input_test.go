package e2e_test

import (
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/netlooptest"
)

// After a move to another room of the server, the room runs the client's first own input within
// one round trip and three ticks of the join, whether the new room is older or younger.
func TestInputsRunSoonAfterAMove(t *testing.T) {
	const ms = time.Millisecond
	for _, delay := range []time.Duration{0, 30 * ms, 75 * ms} {
		t.Run((2 * delay).String(), func(t *testing.T) {
			joined, ran := map[string]uint64{}, map[string]uint64{}
			w := netlooptest.New(t, game{schema: steering, script: func(r *netloop.Room) {
				name := r.Spec().Name
				r.AllowMoves()
				r.OnJoin(func(tick *netloop.Tick, _ *netloop.Client) error {
					joined[name], ran[name] = tick.Number(), 0
					return nil
				})
				controls.Handle(r, func(tick *netloop.Tick, _ *netloop.Client, in control) {
					if in.Missed == 0 && ran[name] == 0 {
						ran[name] = tick.Number()
					}
				})
			}})
			c := w.Join("", nil, netlooptest.Link{Delay: delay}, netlooptest.FPS(60))
			client.Inputs(c, controls, func(t *netloop.Tick) control { return control{Step: uint32(t.FixedStep())} })
			w.Step(600)
			openRoom(t, w, table("table"))
			for _, to := range []string{"table", "", "table"} {
				if err := c.Move(seats(t, w, to, netloop.Reservation{})[0]); err != nil {
					t.Fatal(err)
				}
				w.Step(60)
				period := time.Second / map[string]time.Duration{"": 60, "table": 20}[to]
				took := time.Duration(int64(ran[to])-int64(joined[to])) * period
				most := 2*delay + 3*period + period // Frames and ticks are not aligned.
				if ran[to] == 0 || took > most {
					t.Errorf("in %q the client joined at tick %d, and its first input ran at %d: after %v, want at most %v", to, joined[to], ran[to], took, most)
				}
				w.Step(240)
				if lead := c.Stats().Lead; lead > delay+2*period+30*ms || c.Stats().LeadJumps > 0 {
					t.Errorf("in %q the steps lead by %v, with %d jumps", to, lead, c.Stats().LeadJumps)
				}
			}
		})
	}
}

// A client that moves from a room with slow ticks sends its inputs at the pace of the other room at
// once, so a key that it presses first runs.
func TestInputsAreSentAtThePaceOfTheNewRoom(t *testing.T) {
	joined, ran := uint64(0), uint64(0)
	w := netlooptest.New(t, game{schema: steering, script: func(r *netloop.Room) {
		r.AllowMoves()
		r.OnJoin(func(tick *netloop.Tick, _ *netloop.Client) error { joined, ran = tick.Number(), 0; return nil })
		controls.Handle(r, func(tick *netloop.Tick, _ *netloop.Client, in control) {
			if in.Missed == 0 && ran == 0 {
				ran = tick.Number()
			}
		})
	}})
	openRoom(t, w, netloop.RoomSpec{Name: "slow", Rate: netloop.Hz(1)})
	c := w.JoinAs(client.Config{Room: "slow"}, netlooptest.Link{Delay: 30 * time.Millisecond}, netlooptest.FPS(60))
	client.Inputs(c, controls, func(t *netloop.Tick) control { return control{Step: uint32(t.FixedStep())} })
	w.Step(360)
	if err := c.Move(seats(t, w, "", netloop.Reservation{})[0]); err != nil {
		t.Fatal(err)
	}
	w.Step(180)
	if ran == 0 || ran-joined > 8 { // A round trip of 4 ticks, 3 more, and 1 for frames and ticks.
		t.Errorf("the client joined at tick %d, and its first input ran at %d", joined, ran)
	}
}
