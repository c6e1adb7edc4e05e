package app

import (
	"fmt"

	"github.com/netloop/netloop"
)

// setRoomDefaults makes the game's RoomDefaults the defaults of the settings: --help shows them,
// and flags, environment and file take precedence.
func (c *configuration) setRoomDefaults(spec netloop.RoomSpec) error {
	o := c.options
	setDefault(c, "tick-rate", &o.TickRate, rate(spec.Rate))
	setDefault(c, "fixed-rate", &o.FixedRate, rate(spec.FixedRate))
	setDefault(c, "send-every", &o.SendEvery, spec.SendEvery)
	setDefault(c, "max-clients", &o.MaxClients, spec.MaxClients)
	setDefault(c, "client-budget", &o.ClientBudget, spec.Budget)
	setDefault(c, "keep-dropped", &o.KeepDropped, spec.KeepDropped)
	setDefault(c, "max-rewind", &o.MaxRewind, spec.MaxRewind)
	// A value below 0 disables these in a RoomSpec, but in the options the value 0 does.
	o.KeepDropped, o.MaxRewind = max(o.KeepDropped, 0), max(o.MaxRewind, 0)
	name := ""
	for text, policy := range samePlayer {
		if policy == spec.Duplicate {
			name = text
		}
	}
	setDefault(c, "same-player", &o.SamePlayer, name)
	return o.check(func(key string, value any, remedy string) error {
		return netloop.ConfigError(fmt.Sprintf("the game's RoomDefaults: %s", key), value, "%s", remedy)
	})
}

// setDefault sets the default of a setting to the game's value, unless that is zero.
func setDefault[T comparable](c *configuration, key string, to *T, game T) {
	var none T
	if game != none {
		*to, c.find(key).game = game, true
	}
}
