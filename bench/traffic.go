package main

import (
	"encoding/binary"
	"math/rand/v2"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/app"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/loadtest"
)

// The traffic is the arena's datagrams without its game: an input of each client in each step, and
// a snapshot with one object in each tick. It shows the cost of the network alone.

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
type traffic struct{}

func (traffic) Schema() *netloop.Schema { return trafficSchema }

func (traffic) Open(r *netloop.Room) error {
	clients := 0
	r.OnStart(func(t *netloop.Tick) { cargos.Spawn(t, cargo{}) })
	r.OnJoin(func(*netloop.Tick, *netloop.Client) error { clients++; return nil })
	r.OnLeave(func(*netloop.Tick, *netloop.Client, *netloop.Closed) { clients-- })
	steerings.Handle(r, func(*netloop.Tick, *netloop.Client, steering) {})
	r.On(netloop.Update, "traffic.load", func(t *netloop.Tick) {
		for o := range cargos.All(t) {
			load(o.Edit(t), cargoBytes(clients), t.Rand())
		}
	})
	return nil
}

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

func serveTraffic() { app.Main(traffic{}) }
func playTraffic()  { loadtest.Main(driver{}) }
