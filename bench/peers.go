package main

import (
	"github.com/netloop/netloop"
	"github.com/netloop/netloop/app"
	"github.com/netloop/netloop/bench/world"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/examples/arena"
	"github.com/netloop/netloop/examples/arena/bot"
	"github.com/netloop/netloop/loadtest"
)

// The peers' room is the world of earlier measurements of other servers: one room of 100 entities
// of four float32, all of which change in every tick and are visible to all clients.
var (
	peersSchema = netloop.NewSchema("peers", 1, 0)
	bodies      = netloop.NewClass[world.Body](peersSchema, "body")
)

// peers is the game. With flips every velocity changes its sign in every tick.
type peers struct{ flips bool }

func (peers) Schema() *netloop.Schema { return peersSchema }

func (g peers) Open(r *netloop.Room) error {
	r.OnStart(func(t *netloop.Tick) {
		for range world.Entities {
			bodies.Spawn(t, world.Body{})
		}
	})
	move := world.Circle
	if g.flips {
		move = world.Flip
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
