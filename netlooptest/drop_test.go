package netlooptest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/netlooptest"
)

type parcel struct {
	Text string `net:"max=10000"`
}

var (
	harbour = netloop.NewSchema("harbour", 1, 0)
	parcels = netloop.NewRPC[parcel](harbour, "parcel", netloop.AtStage(netloop.Update))
)

// port counts parcels.
type port struct{ arrived int }

func (*port) Schema() *netloop.Schema { return harbour }

func (p *port) Open(r *netloop.Room) error {
	parcels.Handle(r, func(*netloop.Tick, *netloop.Client, parcel) error { p.arrived++; return nil })
	return nil
}

// A dropped client sends no data that its connection has not sent before.
func TestADroppedClientSendsNothing(t *testing.T) {
	for _, drop := range []bool{false, true} {
		p := new(port)
		w := netlooptest.New(t, p)
		c := w.Join("", nil, netlooptest.Link{Bandwidth: 100_000})
		w.Until(60, func() bool { return c.State().Phase == client.Playing })
		client.Send(c, parcels, parcel{strings.Repeat("x", 10_000)}) // It takes a second.
		if w.Step(6); drop {
			w.Drop(c)
		}
		if w.Advance(5 * time.Second); p.arrived == 0 != drop {
			t.Errorf("dropped %v: %d messages arrive", drop, p.arrived)
		}
	}
}
