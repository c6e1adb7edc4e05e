package client_test

import (
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/netlooptest"
)

type buoy struct{ X, Y int32 }

var (
	sea   = netloop.NewSchema("sea", 1, 0)
	buoys = netloop.NewClass[buoy](sea, "buoy")
)

type drift struct{}

func (drift) Schema() *netloop.Schema { return sea }

func (drift) Open(r *netloop.Room) error {
	r.OnStart(func(t *netloop.Tick) {
		for range 3 {
			buoys.Spawn(t, buoy{})
		}
	})
	r.On(netloop.Update, "drift", func(t *netloop.Tick) {
		for b := range buoys.All(t) {
			b.Edit(t).X++
		}
	})
	return nil
}

// A client that refuses packet after packet gets the full state after the third, and continues; a
// client that refuses two does not request it.
func TestRefusedPacketsAreHealedByTheFullState(t *testing.T) {
	w := netlooptest.New(t, drift{})
	c := w.Join("", nil, netlooptest.Link{Delay: 100 * time.Millisecond})
	w.Until(300, func() bool { return c.State().Phase == client.Playing })
	w.Step(60)
	if s := c.Stats(); s.Malformed != 0 || s.FullStates != 0 {
		t.Fatalf("before anything went wrong: %+v", s)
	}
	c.Forget()
	w.Until(600, func() bool { return c.Stats().FullStates > 0 })
	if s := c.Stats(); s.Malformed < 3 {
		t.Errorf("asked after %d packets were refused", s.Malformed)
	}
	w.Step(60)
	refused := c.Stats().Malformed
	agreed := false
	c.Verify(func(err error) { agreed = err == nil })
	w.Until(600, func() bool { return agreed })
	if s := c.Stats(); s.Malformed != refused || s.FullStates != 1 {
		t.Errorf("a second after the full state it still refuses, or asks again: %+v", s)
	}
}
