package e2e_test

import (
	"context"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/inside"
	"github.com/netloop/netloop/netlooptest"
)

// TestWelcomeNamesTheRunningEpoch asks for an admission between two ticks: the
// epoch of a room that has never dropped a tick must be in it too.
func TestWelcomeNamesTheRunningEpoch(t *testing.T) {
	ticked := make(chan struct{})
	s, _ := serve(t, script(func(r *netloop.Room) {
		r.OnStart(func(tick *netloop.Tick) { tick.AfterFunc(0, func(*netloop.Tick) { close(ticked) }) })
	}), 60)
	<-ticked
	adm, err := inside.Netloop.Server(s).Handler.Admit(context.Background(), inside.Netloop.Schema(schema).Hello(), "here")
	if err != nil {
		t.Fatal(err)
	}
	w := adm.Welcome
	if e := w.GetEpoch(); e.GetTick() != 1 || e.GetServerNs() == 0 || w.GetServerNs() <= e.GetServerNs() {
		t.Errorf("at %d ns the welcome names the epoch %v", w.GetServerNs(), e)
	}
}

// TestClientKnowsTheServersTickAtOnce looks at the estimate before the time
// synchronisation has had its samples.
func TestClientKnowsTheServersTickAtOnce(t *testing.T) {
	const delay = 30 * time.Millisecond
	w := open(t, func(*netloop.Room) {})
	w.Step(600)
	c := play(t, w, netlooptest.Link{Delay: delay})
	if c.Stats().Synced {
		t.Fatal("it is synchronised already: the test looks too late")
	}
	var here uint64
	w.Tick(func(tick *netloop.Tick) { here = tick.Number() })
	if there := c.Stats().ServerTick; there+3 < here || there > here+1 {
		t.Errorf("at tick %d the client estimates %d", here, there)
	}
}
