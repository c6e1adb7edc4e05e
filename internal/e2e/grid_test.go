package e2e_test

import (
	"bytes"
	"errors"
	"io"
	"math"
	"testing"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/netlooptest"
)

// body is on the grid of gridGame, sign is not.
type body struct {
	N    int32
	X, Y float32 `net:"quant=1/16"`
}

type sign struct{ N int32 }

var (
	gridSchema = netloop.NewSchema("grid", 1, 0)
	bodies     = netloop.NewClass[body](gridSchema, "body")
	signs      = netloop.NewClass[sign](gridSchema, "sign")
)

// gridGame has a grid with a radius of 40, a margin of 20 and cells of 10.
type gridGame struct {
	spec netloop.GridSpec
	grid *netloop.Grid
	own  map[netloop.ClientID]*netloop.Object[body]
	open func(*netloop.Room, *netloop.Grid)
}

func (*gridGame) Schema() *netloop.Schema { return gridSchema }

func (m *gridGame) Open(r *netloop.Room) error {
	if m.spec == (netloop.GridSpec{}) {
		m.spec = netloop.GridSpec{Radius: 40}
	}
	m.own = map[netloop.ClientID]*netloop.Object[body]{}
	m.grid = netloop.NewGrid(r, m.spec)
	bodies.PlaceOn(m.grid, func(b *body) (x, y, z float64) {
		if b.N < 0 {
			panic("no place")
		}
		return float64(b.X), float64(b.Y), 0
	})
	r.OnJoin(func(t *netloop.Tick, c *netloop.Client) error {
		b := bodies.Spawn(t, body{N: int32(c.ID())}, netloop.OwnedBy(c.ID()))
		m.own[c.ID()] = b
		m.grid.SetView(t, c, netloop.ViewFrom(b))
		return nil
	})
	if m.open != nil {
		m.open(r, m.grid)
	}
	return nil
}

// watchBodies records a client's watcher calls for bodies.
func watchBodies(c *client.Client) watcherCounts {
	s := watcherCounts{}
	client.Watch(c, bodies, client.Watcher[body]{
		Spawn:   func(_ *netloop.Tick, o *netloop.Object[body]) { s[o.State().N] += "+" },
		Despawn: func(_ *netloop.Tick, _ *netloop.Object[body], last body) { s[last.N] += "-" },
	})
	return s
}

func TestAGridShowsNearObjects(t *testing.T) {
	m := &gridGame{}
	w := netlooptest.New(t, m)
	c := play(t, w, perfect)
	s := watchBodies(c)
	var o *netloop.Object[body]
	w.Tick(func(tick *netloop.Tick) {
		o = bodies.Spawn(tick, body{N: 100, X: 500})
		bodies.Spawn(tick, body{N: 101, X: 30})
		signs.Spawn(tick, sign{})
	})
	w.Step(3)
	move := func(xs ...float32) {
		for _, x := range xs {
			w.Tick(func(tick *netloop.Tick) { o.Edit(tick).X = x })
			w.Step(2)
		}
	}
	s.want(t, "before", 100, "")
	move(75, 55, 65, 55, 65) // approaches, and crosses the edge twice
	s.want(t, "near", 100, "+")
	move(100)
	s.want(t, "out of range", 100, "+-")
	w.Tick(func(tick *netloop.Tick) { m.own[c.ID()].Edit(tick).X = 110 })
	w.Step(2)
	s.want(t, "in range again", 100, "+-+")
	s.want(t, "left behind", 101, "+-")
	s.want(t, "itself", int32(c.ID()), "+")
	w.Look(c, func(tick *netloop.Tick) {
		n := 0
		for range signs.All(tick) {
			n++
		}
		if n != 1 {
			t.Error("the sign, which is on no grid, is hidden")
		}
	})
	w.Tick(func(tick *netloop.Tick) {
		m.grid.SetView(tick, server(t, tick, c), netloop.ViewAt(20, 0, 0), netloop.ViewAt(1000, 0, 0))
	})
	w.Step(2)
	s.want(t, "looking elsewhere", 100, "+-+-")
	s.want(t, "looking elsewhere", 101, "+-+")
	s.want(t, "itself, which it owns", int32(c.ID()), "+")
}

// TestAGridAndATargetMustBothAdmit, whichever admits first.
func TestAGridAndATargetMustBothAdmit(t *testing.T) {
	m := &gridGame{}
	w := netlooptest.New(t, m)
	c := play(t, w, perfect)
	s := watchBodies(c)
	group := netloop.NewClientGroup()
	var o *netloop.Object[body]
	step := func(do func(tick *netloop.Tick, c *netloop.Client)) {
		w.Tick(func(tick *netloop.Tick) { do(tick, server(t, tick, c)) })
		w.Step(2)
	}
	step(func(tick *netloop.Tick, _ *netloop.Client) {
		o = bodies.Spawn(tick, body{N: 100}, netloop.VisibleTo(netloop.InGroup(group)))
	})
	s.want(t, "near", 100, "")
	step(group.Add)
	s.want(t, "near and a member", 100, "+")
	step(func(tick *netloop.Tick, _ *netloop.Client) { o.Edit(tick).Y = -500 })
	s.want(t, "far", 100, "+-")
	step(group.Remove)
	step(func(tick *netloop.Tick, _ *netloop.Client) { o.Edit(tick).Y = 0 })
	s.want(t, "near and no member", 100, "+-")
	step(func(tick *netloop.Tick, _ *netloop.Client) { o.SetVisible(tick, netloop.Everyone()) })
	s.want(t, "near and visible to all", 100, "+-+")
	step(func(tick *netloop.Tick, c *netloop.Client) {
		o.SetVisible(tick, netloop.OwnerOf(o))
		o.SetOwner(tick, c.ID())
		o.Edit(tick).X = 1000
	})
	s.want(t, "far and its own", 100, "+-+")
	w.Tick(func(tick *netloop.Tick) { o.Despawn(tick) })
	w.Step(2)
	s.want(t, "despawned", 100, "+-+-")
}

// TestAGridOverBadLinks: clients and bodies move, packets are lost. In the end each client has
// the near objects, equal to the server's by value and by digest.
func TestAGridOverBadLinks(t *testing.T) {
	var all []*netloop.Object[body]
	m := &gridGame{open: func(r *netloop.Room, _ *netloop.Grid) {
		r.OnStart(func(t *netloop.Tick) {
			for i := range int32(60) {
				all = append(all, bodies.Spawn(t, body{N: 100 + i, X: float32(i * 5)}))
			}
		})
		r.On(netloop.Update, "test.wander", func(t *netloop.Tick) {
			if t.Number() > 600 {
				return
			}
			for o := range bodies.All(t) {
				if t.Rand().IntN(4) == 0 {
					b := o.Edit(t)
					b.X += float32(t.Rand().IntN(31) - 15)
					b.Y += float32(t.Rand().IntN(31) - 15)
				}
			}
		})
	}}
	w := netlooptest.New(t, m)
	var clients []*client.Client
	for range 3 {
		clients = append(clients, w.Join("", nil, bad))
	}
	w.Step(800)
	for i, c := range clients {
		seen := map[netloop.Ref[body]]body{}
		w.Look(c, func(tick *netloop.Tick) {
			for o := range bodies.All(tick) {
				seen[o.Ref()] = o.State()
			}
		})
		w.Tick(func(tick *netloop.Tick) {
			eye := m.own[c.ID()].State()
			for o := range bodies.All(tick) {
				b := o.State()
				got, has := seen[o.Ref()]
				far := math.Hypot(float64(b.X-eye.X), float64(b.Y-eye.Y))
				if far <= 40 && !has || far > 60+2*10*math.Sqrt2 && has || has && got != b {
					t.Errorf("client %d: %+v is %v away; has it %v, as %+v", i, b, far, has, got)
				}
			}
		})
		agreed := false
		c.Verify(func(err error) { agreed = err == nil })
		w.Until(120, func() bool { return agreed })
	}
}

func TestAGridReplays(t *testing.T) {
	var file bytes.Buffer
	game := func() *gridGame {
		return &gridGame{open: func(r *netloop.Room, _ *netloop.Grid) {
			r.On(netloop.Update, "test.wander", func(t *netloop.Tick) {
				if t.Number()%7 == 0 {
					bodies.Spawn(t, body{N: 1000, X: float32(t.Rand().IntN(200))})
				}
				for o := range bodies.All(t) {
					o.Edit(t).X += float32(t.Rand().IntN(31) - 15)
				}
			})
		}}
	}
	w := netlooptest.New(t, game(), netlooptest.Record(&file))
	w.Join("", nil, bad)
	w.Step(30)
	w.Join("", nil, perfect)
	w.Step(150)
	p, err := netloop.NewReplay(netloop.Config{}, game(), &file)
	if err != nil {
		t.Fatal(err)
	}
	ticks := 0
	for ; err == nil; ticks++ {
		_, err = p.Step()
	}
	if !errors.Is(err, io.EOF) || ticks < 180 {
		t.Errorf("%d ticks, %v", ticks, err)
	}
}

// TestTheViewpointsOfALeaverAreRemoved: a later client does not get them.
func TestTheViewpointsOfALeaverAreRemoved(t *testing.T) {
	m := &gridGame{}
	w := netlooptest.New(t, m)
	a := play(t, w, perfect)
	var record *netloop.Client
	w.Tick(func(tick *netloop.Tick) {
		record = server(t, tick, a)
		m.grid.SetView(tick, record, netloop.ViewAt(500, 0, 0))
	})
	w.Step(2)
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	w.Step(5)
	// No effect for a client that has left.
	w.Tick(func(tick *netloop.Tick) { m.grid.SetView(tick, record, netloop.ViewAt(500, 0, 0)) })
	b := play(t, w, perfect)
	s := watchBodies(b)
	w.Tick(func(tick *netloop.Tick) { bodies.Spawn(tick, body{N: 100, X: 500}) })
	w.Step(3)
	s.want(t, "b", 100, "")
}
