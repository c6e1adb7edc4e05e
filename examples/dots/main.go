// Command dots is a complete game: everybody moves a dot; touching the coin scores.
package main

import (
	"github.com/netloop/netloop"
	"github.com/netloop/netloop/app"
)

type Dot struct { // replicated: every client sees every dot
	X, Y  float32 `net:"quant=1/8"`
	Score int32
}
type Move struct{ DX, DY int8 } // what a client sends when its keys change

var (
	Schema = netloop.NewSchema("dots", 1, 0)
	Dots   = netloop.NewClass[Dot](Schema, "dot")
	Coins  = netloop.NewClass[Dot](Schema, "coin")
	Moves  = netloop.NewRPC[Move](Schema, "move", netloop.AtStage(netloop.FixedUpdate))
)

type Game struct{}

func (Game) Schema() *netloop.Schema { return Schema }

func (Game) Open(r *netloop.Room) error {
	keys := netloop.NewPerClient[Move](r)
	place := func(t *netloop.Tick) Dot { return Dot{X: t.Rand().Float32() * 100, Y: t.Rand().Float32() * 100} }
	r.OnStart(func(t *netloop.Tick) { Coins.Spawn(t, place(t)) })
	r.OnJoin(func(t *netloop.Tick, c *netloop.Client) error {
		Dots.Spawn(t, place(t), netloop.OwnedBy(c.ID()))
		return nil
	})
	Moves.Handle(r, func(t *netloop.Tick, from *netloop.Client, m Move) error { *keys.Of(from) = m; return nil })
	r.On(netloop.FixedUpdate, "dots.move", func(t *netloop.Tick) {
		for dot := range Dots.All(t) {
			c, _ := t.Client(dot.Owner())
			d, key := dot.Edit(t), keys.Of(c)
			d.X, d.Y = d.X+float32(key.DX)/60, d.Y+float32(key.DY)/60
			for coin := range Coins.All(t) {
				if at := coin.State(); (at.X-d.X)*(at.X-d.X)+(at.Y-d.Y)*(at.Y-d.Y) < 4 {
					d.Score, *coin.Edit(t) = d.Score+1, place(t)
				}
			}
		}
	})
	return nil
}

func main() { app.Main(Game{}) }
