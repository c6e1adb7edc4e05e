package app

import (
	"fmt"

	"github.com/netloop/netloop"
)

// propose makes the game's proposal for its default room the defaults of the settings: --help shows
// them, and flags, environment and file take precedence.
func (c *configuration) propose(spec netloop.RoomSpec) error {
	o := c.options
	take(c, "tick-rate", &o.TickRate, rate(spec.Rate))
	take(c, "fixed-rate", &o.FixedRate, rate(spec.FixedRate))
	take(c, "send-every", &o.SendEvery, spec.SendEvery)
	take(c, "max-clients", &o.MaxClients, spec.MaxClients)
	take(c, "client-budget", &o.ClientBudget, spec.Budget)
	take(c, "keep-dropped", &o.KeepDropped, spec.KeepDropped)
	take(c, "max-rewind", &o.MaxRewind, spec.MaxRewind)
	// Less than zero is none there, which is 0 here.
	o.KeepDropped, o.MaxRewind = max(o.KeepDropped, 0), max(o.MaxRewind, 0)
	name := ""
	for text, policy := range samePlayer {
		if policy == spec.Duplicate {
			name = text
		}
	}
	take(c, "same-player", &o.SamePlayer, name)
	return o.check(func(key string, value any, remedy string) error {
		return netloop.ConfigError(fmt.Sprintf("the game's Spec: %s", key), value, "%s", remedy)
	})
}

// take makes a proposal, unless it is zero, the default of a setting.
func take[T comparable](c *configuration, key string, to *T, proposal T) {
	var none T
	if proposal != none {
		*to, c.find(key).game = proposal, true
	}
}
