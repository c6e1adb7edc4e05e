package arena

import (
	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
)

// Play lets a client's player fly: control returns the player's input of each fixed step. The own
// ship and its shots are predicted, and follow the input at once. All other moving objects are
// interpolated between two snapshots. Call client.View for them.
func Play(c *client.Client, control func(*netloop.Tick) Control, o ...client.PredictOption) {
	client.Inputs(c, Controls, control)
	client.Predict(c, Ships, Controls, func(s *Ship, t *netloop.Tick, in Control) {
		if s.Steer(t, in) {
			client.Spawn(c, Shots, s.Shot(t))
		}
	}, o...)
	client.Predict(c, Shots, Controls, func(*Shot, *netloop.Tick, Control) {})
	client.Interpolate(c, Ships)
	client.Interpolate(c, Rocks)
	client.Interpolate(c, Shots)
}
