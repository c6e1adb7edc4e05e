package main

import (
	"cmp"
	"encoding/binary"
	"math/rand/v2"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/app"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/loadtest"
)

// The traffic is the arena's datagrams without its game: an input of each client in each step, and
// a snapshot of a given size in each tick. It shows the network alone.

// cargo is the object of the snapshots. Its bytes are random, so that they cannot be predicted.
type cargo struct {
	Bytes []byte `net:"max=1024"`
}

// steering is a client's input, held for some steps, as by the arena's players.
type steering struct {
	Thrust, Fire bool
	Turn         int8
}

var (
	trafficSchema = netloop.NewSchema("traffic", 1, 0)
	cargos        = netloop.NewClass[cargo](trafficSchema, "cargo")
	steerings     = netloop.NewInput[steering](trafficSchema, nil)
)

// cargoBytes returns the size of the cargo for so many clients. The arena's snapshots grow with its
// players, to 250 bytes for 50 of them and 680 for 200.
func cargoBytes(clients int) int { return min(85+57*clients/20, maxCargo) }

const maxCargo = 1024 // bytes, as in the tag: a snapshot fits into one datagram

// traffic is the game.
type traffic struct{ cfg trafficConfig }

type trafficConfig struct {
	Bytes int `help:"bytes of a snapshot's objects, 1 to 10240; 0 is as many as the arena has for its clients"`
}

// Config returns the configuration to be filled in before the server opens.
func (g *traffic) Config() any { return &g.cfg }

func (*traffic) Schema() *netloop.Schema { return trafficSchema }

func (g *traffic) Open(r *netloop.Room) error {
	if g.cfg.Bytes < 0 || g.cfg.Bytes > 10*maxCargo {
		return netloop.ConfigError("traffic.bytes", g.cfg.Bytes, "use 0 to %d", 10*maxCargo)
	}
	clients := 0
	objects, each := divided(g.cfg.Bytes)
	r.OnStart(func(t *netloop.Tick) {
		for range objects {
			cargos.Spawn(t, cargo{})
		}
	})
	r.OnJoin(func(*netloop.Tick, *netloop.Client) error { clients++; return nil })
	r.OnLeave(func(*netloop.Tick, *netloop.Client, *netloop.Closed) { clients-- })
	steerings.Handle(r, func(*netloop.Tick, *netloop.Client, steering) {})
	r.On(netloop.Update, "traffic.load", func(t *netloop.Tick) {
		size := cmp.Or(each, cargoBytes(clients))
		for o := range cargos.All(t) {
			load(o.Edit(t), size, t.Rand())
		}
	})
	return nil
}

// divided returns the number of objects of a snapshot of so many bytes, and the bytes of each. The
// objects are as small as those of games, so that a slow link gets some of them in each snapshot.
func divided(size int) (objects, each int) {
	objects = max((size+objectBytes-1)/objectBytes, 1)
	return objects, size / objects
}

const objectBytes = 128

// load fills the cargo with new random bytes.
func load(c *cargo, size int, r *rand.Rand) {
	c.Bytes = c.Bytes[:0]
	for len(c.Bytes) < size {
		c.Bytes = binary.LittleEndian.AppendUint64(c.Bytes, r.Uint64())
	}
	c.Bytes = c.Bytes[:size]
}

// driver is a client of that room.
type driver struct{}

func (driver) Schema() *netloop.Schema { return trafficSchema }
func (driver) Join(int) any            { return nil }

func (driver) Start(c *client.Client, m *loadtest.Meter) {
	var held steering
	client.Inputs(c, steerings, func(t *netloop.Tick) steering {
		if r := m.Rand(); t.FixedStep()%6 == 0 {
			held = steering{Thrust: r.IntN(2) == 0, Fire: r.IntN(8) == 0, Turn: int8(r.IntN(3) - 1)}
		}
		return held
	})
}

func serveTraffic() { app.Main(new(traffic)) }
func playTraffic()  { loadtest.Main(driver{}) }
