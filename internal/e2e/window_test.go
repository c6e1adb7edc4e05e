package e2e_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/testing/seeds"
	"github.com/netloop/netloop/netlooptest"
)

// At each step rate, frame rate and round trip up to 2 s the client makes an input for each step,
// the server runs them, and a server change of the own object is corrected.
func TestInputWindowsCoverTwoSeconds(t *testing.T) {
	seeds.OneGoroutine(t)
	const ms = time.Millisecond
	for _, x := range []struct {
		hz  uint64
		fps int
		rtt time.Duration
	}{
		{60, 60, 1040 * ms}, {60, 24, 1800 * ms}, {240, 60, 250 * ms}, {240, 24, 40 * ms}, {240, 24, 1800 * ms}, {1000, 60, 1500 * ms}, {20, 60, 1800 * ms},
	} {
		t.Run(fmt.Sprint(x.hz, x.fps, x.rtt), func(t *testing.T) {
			r := newRace(t, netlooptest.Room(netloop.RoomSpec{Rate: netloop.Hz(20), FixedRate: netloop.Hz(x.hz)}))
			c := r.Join("", nil, netlooptest.Link{Delay: x.rtt / 2, Jitter: 2 * ms}, netlooptest.FPS(x.fps))
			client.Inputs(c, helm, func(*netloop.Tick) rudder { return rudder{} })
			client.Predict(c, racers, helm, func(s *racer, t *netloop.Tick, in rudder) { s.steer(t, in) })
			r.Step(20 * 20)
			before := c.Stats()
			r.Tick(func(tick *netloop.Tick) { r.mine[c.ID()].Edit(tick).X += 50 })
			r.Step(20 * 3)
			after := c.Stats()
			if n := after.Prediction.Mispredicted - before.Prediction.Mispredicted; n != 1 {
				t.Errorf("the server has moved the object once, and %d corrections", n)
			}
			if own, _ := client.PredictedState(c, r.own(c)); own.X != r.mine[c.ID()].State().X {
				t.Errorf("the object is at %v, and on the server at %v", own.X, r.mine[c.ID()].State().X)
			}
			made, missed, want := after.Inputs-before.Inputs, after.InputsMissed-before.InputsMissed, 3*x.hz
			if made < want*98/100-1 || missed > want/100 {
				t.Errorf("%d inputs are made for %d steps, and %d missed", made, want, missed)
			}
		})
	}
}
