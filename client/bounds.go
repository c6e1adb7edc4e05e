package client

import (
	"github.com/netloop/netloop/internal/input"
	"github.com/netloop/netloop/internal/limits"
	"github.com/netloop/netloop/internal/netvar"
)

// bounds are the rows of this package in docs/LIMITS.md.
func bounds() limits.Table {
	return limits.Table{limits.Client: {
		{
			Name: "packets of state that are refused", Default: refusedBeforeFull, Unit: "packets",
			Full: "the full state is asked for, again after " + limits.Written(firstFullWait) + " at the earliest, and up to " + limits.Written(longestFullWait),
		},
		{
			Name: "inbox", Default: maxArrivals, Unit: "arrivals",
			Full: "unreliable: dropped; reliable: the connection ends",
		},
		{
			Name: "calls that wait for their answer", Default: maxCalls, Unit: "calls", Full: "`ErrTooManyCalls`",
		},
		{
			Name:    "messages that wait for their state",
			Default: limits.Say("%v, %v, %v ticks each", maxHeld, limits.Bytes(maxHeldBytes), maxHeldTicks), Unit: "messages; or until it is shown",
			Full: "they run early; `Stats` counts them",
		},
		{
			Name: "fixed steps of one frame", Default: limits.Say("those of %v, at least %v", mostSteps, leastSteps), Unit: "steps", Full: "the other steps are skipped, and counted",
		},
		{
			Name: "extrapolation of numbers without a newer snapshot", Default: limits.Say("not at all, %v at most", mostExtrapolated),
			Config: "client.Extrapolate", Full: "they keep their value",
		},
		{
			Name: "delay of the interpolated picture", Default: limits.Say("%v, and %v ticks", maxDelay, netvar.Horizon/2),
			Full: "a later snapshot has no neighbour for interpolation",
		},
		{
			Name: "snapshots that wait to be shown", Default: limits.Say("%v; the delay looks at the last %v, of %v", maxWhole, maxDelays, delayWindow),
			Unit: "snapshots", Full: "the oldest is dropped",
		},
		{
			Name: "fixed steps of which a prediction is kept", Default: limits.Say("those of %v, from %v to %v", input.Span, input.LeastWindow, input.MostWindow), Unit: "steps",
			Full: "the server's state of older steps is accepted without a comparison, and a `Spawn` that has waited for so long is withdrawn",
		},
		{
			Name: "objects of `Spawn` for which the server's have not come", Default: maxAwaited, Unit: "objects",
			Full: "Spawn panics, which costs the running system its call",
		},
		{
			Name: "silence of the server", Default: defaultLostAfter, Config: "client.Config.LostAfter",
			Full: "the client reconnects, or is closed (`CODE_TIMEOUT`)",
		},
		{
			Name: "an unanswered attempt to reconnect", Default: limits.Say("%v, or %v round trips", leastQuiet, quietTrips),
			Full: "given up; the next one follows after 0.9 s at most",
		},
		{
			Name: "attempts to reconnect", Default: defaultGiveUp, Config: "client.Reconnect.GiveUp", Full: "the client is closed",
		},
	}}
}
