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
			Name: "fixed steps of one frame", Default: limits.Say("those of %v, at least %v", mostSteps, leastSteps), Unit: "steps", Full: "the rest is left out, and counted",
		},
		{
			Name: "how long numbers go on as they went without a newer snapshot", Default: limits.Say("not at all, %v at most", mostExtrapolated),
			Config: "client.Extrapolate", Full: "they stand still",
		},
		{
			Name: "how far behind lies what is shown", Default: limits.Say("%v, and %v ticks", maxDelay, netvar.Horizon/2),
			Full: "what comes later has no neighbour to lie between",
		},
		{
			Name: "snapshots that wait to be shown", Default: limits.Say("%v; the delay looks at the last %v, of %v", maxWhole, maxDelays, delayWindow),
			Unit: "snapshots", Full: "the oldest goes",
		},
		{
			Name: "fixed steps of which a prediction is kept", Default: limits.Say("those of %v, from %v to %v", input.Span, input.LeastWindow, input.MostWindow), Unit: "steps",
			Full: "what the server says of older ones is taken unseen, and a `Spawn` that has waited for so long is withdrawn",
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
			Name: "an attempt to reconnect that nobody answers", Default: limits.Say("%v, or %v round trips", leastQuiet, quietTrips),
			Full: "given up; the next one follows after 0.9 s at most",
		},
		{
			Name: "attempts to reconnect", Default: defaultGiveUp, Config: "client.Reconnect.GiveUp", Full: "the client is closed",
		},
	}}
}
