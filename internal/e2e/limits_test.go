package e2e_test

import (
	"testing"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/netlooptest"
)

// What the limits take at once fits the queues before them.
func TestABurstWithinTheLimitsArrivesWhole(t *testing.T) {
	for _, limits := range []netloop.RPCLimits{{}, {Burst: 5000}} {
		const standard = 2000
		ran, burst := 0, max(limits.Burst, standard)
		w := open(t, func(r *netloop.Room) {
			echo.Handle(r, func(*netloop.Tick, *netloop.Client, text) error { ran++; return nil })
		}, netlooptest.Limits(limits))
		c := play(t, w, perfect)
		for range 2 * burst { // The second half is warned about.
			client.Send(c, echo, text{})
		}
		w.Step(10)
		if ran != 2*burst || c.Closed() != nil {
			t.Errorf("a burst of %d: %d ran of twice as many, closed: %v", burst, ran, c.Closed())
		}
	}
}
