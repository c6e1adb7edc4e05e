package main

import (
	"math"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/app"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/examples/arena"
	"github.com/netloop/netloop/examples/arena/bot"
	"github.com/netloop/netloop/loadtest"
)

// The peers' room is the world of earlier measurements of other servers: one room of 100 entities
// of four float32, all of which change in every tick and are visible to all clients.
const entities = 100

// body is one such entity.
type body struct{ X, Y, VX, VY float32 }

var (
	peersSchema = netloop.NewSchema("peers", 1, 0)
	bodies      = netloop.NewClass[body](peersSchema, "body")
)

// peers is the game. With flips every velocity changes its sign in every tick.
type peers struct{ flips bool }

func (peers) Schema() *netloop.Schema { return peersSchema }

func (g peers) Open(r *netloop.Room) error {
	r.OnStart(func(t *netloop.Tick) {
		for range entities {
			bodies.Spawn(t, body{})
		}
	})
	move := circle
	if g.flips {
		move = flip
	}
	r.On(netloop.Update, "peers.move", func(t *netloop.Tick) {
		i := 0
		for o := range bodies.All(t) {
			*o.Edit(t) = move(t.Number(), i)
			i++
		}
	})
	return nil
}

// circle is smooth motion: the position and velocity of entity i in a tick.
func circle(tick uint64, i int) body {
	radius := 20 + float64(i)/3
	sin, cos := math.Sincos(float64(tick)/120 + float64(i))
	return body{float32(100 + radius*cos), float32(-50 + radius*sin), float32(-radius * sin / 2), float32(radius * cos / 2)}
}

// flip returns the position and velocity of an entity that jumps between two moving walls, and so
// changes its direction in every tick.
func flip(tick uint64, i int) body {
	b := circle(tick, i)
	if tick%2 == 1 {
		b.X, b.Y, b.VX, b.VY = b.X+b.VX/60, b.Y+b.VY/60, -b.VX, -b.VY
	}
	return b
}

// onlooker is the bot of the peers' room: its client sends only acknowledgements.
type onlooker struct{}

func (onlooker) Schema() *netloop.Schema               { return peersSchema }
func (onlooker) Join(int) any                          { return nil }
func (onlooker) Start(*client.Client, *loadtest.Meter) {}

func servePeers() { app.Main(peers{}) }
func serveFlips() { app.Main(peers{flips: true}) }
func serveArena() { app.Main(arena.New()) }
func playPeers()  { loadtest.Main(onlooker{}) }
func playArena()  { loadtest.Main(bot.New()) }
