package client

import (
	"testing"
	"time"
	"unsafe"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/bridge"
	"github.com/netloop/netloop/internal/netvar"
	"github.com/netloop/netloop/internal/netvar/packet"
	"github.com/netloop/netloop/internal/netvar/state"
	"github.com/netloop/netloop/internal/transport"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

type sailing struct {
	X, Y, VX, VY float32 `net:"quant=1/256"`
	Yaw          float32 `net:"quant=1/1024,lerp=angle"`
	Health       uint8
	Name         string `net:"max=12"`
}

var (
	seas  = netloop.NewSchema("seas", 1, 0)
	ships = netloop.NewClass[sailing](seas, "ship")
)

// armada is a client that draws so many ships, all of which move.
func armada(tb testing.TB, n int) (*Client, []*netloop.Object[sailing]) {
	tb.Helper()
	t := new(testing.T)
	r := newRigOf(t, Config{Schema: seas, Reconnect: Reconnect{Off: true}})
	hz := &netloopv1.Rate{Num: 60, Den: 1}
	r.connect(&netloopv1.Welcome{
		Protocol: 1, ClientId: 1, TickRate: hz, FixedRate: hz, SendEvery: 1, Epoch: &netloopv1.Epoch{Tick: 1},
	})
	Interpolate(r.Client, ships)
	world := netvar.NewWorld(r.schema.Classes())
	peer := world.NewPeer(1)
	all, objects := make([]sailing, n), []*state.Object(nil)
	for i := range all {
		objects = append(objects, world.Spawn(bridge.Netloop.Class(ships).State, unsafe.Pointer(&all[i]), 0, 1))
	}
	acked := uint64(0)
	for tick := uint64(1); tick <= 60; tick++ {
		for i := range all {
			all[i].X, all[i].Y, all[i].Yaw = float32(tick), float32(i), float32(tick)/60
			world.Edit(objects[i])
		}
		world.Capture(tick)
		packets, first := peer.AppendSnapshot(nil, tick, netvar.Limit{Packets: 64, PacketSize: packet.MaxSize})
		for _, p := range packets {
			a := transport.Arrival{Kind: transport.State, State: p, At: r.clock.Now(), Session: r.conn.session}
			if !r.conn.session.Inbox().Push(a) {
				tb.Fatal("the inbox does not take it")
			}
			acked = first
			first++
		}
		peer.Ack([]netvar.Range{{First: 1, Last: acked}})
		r.frame(time.Second / 60)
	}
	var drawn []*netloop.Object[sailing]
	for o := range Views(r.Client, ships) {
		drawn = append(drawn, o)
	}
	if v := r.ViewMoment(); len(drawn) != n || v.From == v.To {
		tb.Fatalf("%d of %d ships are drawn, at %+v", len(drawn), n, v)
	}
	return r.Client, drawn
}

func TestViewAllocatesNothing(t *testing.T) {
	c, all := armada(t, 10)
	var sum float32
	if n := testing.AllocsPerRun(100, func() {
		for _, o := range all {
			s, _ := View(c, o)
			sum += s.X
		}
	}); n != 0 {
		t.Errorf("ten Views allocate %v times", n)
	}
}

// BenchmarkView reads 100 moving ships: the cost of one is a hundredth.
func BenchmarkView(b *testing.B) {
	c, all := armada(b, 100)
	var sum float32
	b.ReportAllocs()
	for b.Loop() {
		for _, o := range all {
			s, _ := View(c, o)
			sum += s.X
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100, "ns/object")
}

// BenchmarkViewFrame advances the drawn moment; the delay of a bad link is computed at its usual
// interval.
func BenchmarkViewFrame(b *testing.B) {
	c, _ := armada(b, 1)
	p := &c.views.playout
	now := c.clock.Now()
	for i := range uint64(maxDelays) {
		p.meter.add(arrival{tick: i, game: now, at: now - time.Duration(i%20)*ms, gap: tick60})
	}
	for b.Loop() {
		now += tick60
		p.frame(now, now, tick60)
	}
}
