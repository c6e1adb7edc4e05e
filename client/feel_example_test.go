package client_test

import (
	"math"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
)

var (
	duel     = netloop.NewSchema("duel", 1, 0)
	fencers  = netloop.NewClass[Fencer](duel, "fencer", netloop.Predicted())
	controls = netloop.NewInput(duel, func(last Control, _ int) Control {
		last.Fire = false // A held key continues; a press is not repeated.
		return last
	})
)

// Control is a player's input for a fixed step.
type Control struct {
	Move int8 // −1, 0 or 1
	Fire bool
}

// Fencer is a player's figure on a line.
type Fencer struct {
	X    float32 `net:"quant=1/64"`
	Hits uint16
}

// Step moves the figure. The server runs it, and the player's client does so a little earlier.
func (f *Fencer) Step(t *netloop.Tick, in Control) {
	f.X += float32(max(-1, min(in.Move, 1))) * 4 * float32(t.Delta().Seconds())
}

type duelGame struct{}

func (duelGame) Schema() *netloop.Schema { return duel }

func (duelGame) Open(r *netloop.Room) error {
	figures := netloop.NewPerClient[*netloop.Object[Fencer]](r)
	r.OnJoin(func(t *netloop.Tick, c *netloop.Client) error {
		*figures.Of(c) = fencers.Spawn(t, Fencer{}, netloop.OwnedBy(c.ID()))
		return nil
	})
	controls.Handle(r, func(t *netloop.Tick, from *netloop.Client, in Control) {
		own := *figures.Of(from)
		own.Edit(t).Step(t, in)
		for other := range fencers.All(t) {
			saw, ok := other.At(t.ViewMoment(from)) // The state that the shooter saw.
			if in.Fire && ok && other != own && math.Abs(float64(saw.X-own.State().X)) < 1 {
				other.Edit(t).Hits++
			}
		}
	})
	return nil
}

// play runs a player's client: keys returns the pressed keys, and draw shows a figure.
func play(c *client.Client, keys func() Control, draw func(Fencer)) {
	client.Inputs(c, controls, func(*netloop.Tick) Control { return keys() })
	client.Predict(c, fencers, controls, (*Fencer).Step)
	client.Interpolate(c, fencers)
	c.On(netloop.PostLateUpdate, "draw", func(*netloop.Tick) {
		for _, figure := range client.Views(c, fencers) {
			draw(figure)
		}
	})
}

// All that a game needs for the own figure to move at once, for the others to move evenly, and for
// hits to count as they were seen.
func Example_feel() {
	if _, err := netloop.New(netloop.Config{}, duelGame{}); err != nil {
		panic(err)
	}
	_ = play
}
