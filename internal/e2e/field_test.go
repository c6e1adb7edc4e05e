package e2e_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/netlooptest"
)

// TestFieldsDescribeAClassOnEachSide: how a client draws is its own matter, so a build that
// draws otherwise has the same fingerprint and plays.
func TestFieldsDescribeAClassOnEachSide(t *testing.T) {
	type there struct {
		Pos [2]float32 `net:"quant=1/8,threshold=0.5,interval=1s"`
		Yaw float32    `net:"lerp=angle,read=owner"`
		Bag []int16    `net:"weight=4"`
	}
	type here struct {
		Pos [2]float32 `net:"quant=1/8"`
		Yaw float32    `net:"lerp=none,read=owner"`
		Bag []int16
	}
	a, b := netloop.NewSchema("field", 1, 0), netloop.NewSchema("field", 1, 0)
	server, own := netloop.NewClass[there](a, "it"), netloop.NewClass[here](b, "it")
	want := []netloop.Field{
		{Name: "Pos[0]", Type: "float32", Lerp: netloop.LerpLinear, Interval: time.Second, Threshold: 0.5, Weight: 1},
		{Name: "Pos[1]", Type: "float32", Lerp: netloop.LerpLinear, Interval: time.Second, Threshold: 0.5, Weight: 1},
		{Name: "Yaw", Type: "float32", Read: "owner", Lerp: netloop.LerpAngle, Weight: 1},
		{Name: "Bag", Type: "slice", Weight: 4},
	}
	if got := server.Fields(); !reflect.DeepEqual(got, want) {
		t.Errorf("the server's fields are %+v", got)
	}
	if got := own.Fields(); got[0].Interval != 0 || got[2].Lerp != netloop.LerpNone {
		t.Errorf("the client's fields are %+v", got)
	}
	w := netlooptest.New(t, toy{a})
	c := w.JoinAs(client.Config{Schema: b}, perfect)
	w.Until(60, func() bool { return c.State().Phase == client.Playing })
	w.Tick(func(tick *netloop.Tick) { server.Spawn(tick, there{Yaw: 2}, netloop.OwnedBy(c.ID())) })
	w.Step(2)
	w.Look(c, func(tick *netloop.Tick) {
		n := 0
		for o := range own.All(tick) {
			if n++; o.State().Yaw != 2 {
				t.Errorf("the client has %+v", o.State())
			}
		}
		if n != 1 {
			t.Errorf("the client has %d objects", n)
		}
	})
}
