package admission

import "github.com/netloop/netloop/internal/limits"

// Bounds are the rows of this package in docs/LIMITS.md.
func Bounds() limits.Table {
	return limits.Table{limits.Door: {
		{
			Name: "age at which an unadmitted connection is replaced by one of a site with as many", Default: dismissAfter,
			Counter: "handshake/dismissed", Full: "it is closed",
		},
		{
			Name: "unadmitted connections of one site, hanging admissions included", Default: maxPerSite, Unit: "connections",
			Counter: "handshake/too_many_of_site", Full: "refused before TLS",
		},
		{
			Name: "handshakes of a site", Default: limits.Say("%v; at once as many as there are places, %v at least", siteRate, minBurst), Unit: "a second",
			Counter: "handshake/rate", Full: "refused before TLS",
		},
		{
			Name: "handshakes of all", Default: limits.Say("%v; at once as many as there are places, %v at least", allRate, minBurst), Unit: "a second",
			Counter: "handshake/rate", Full: "refused before TLS",
		},
		{
			Name: "half-open handshakes from addresses that may be forged", Default: maxHalfOpen, Unit: "connections",
			Counter: "netloop_address_validations_total", Full: "a Retry asks to prove the address first",
		},
		{
			Name: "… Retries", Default: limits.Say("%v, at once %v", retryRate, retryBurst), Unit: "a second",
			Counter: "handshake/unproven", Full: "refused before TLS",
		},
		{
			Name: "a hello, from the handshake to its last byte", Default: defaultHelloTimeout,
			Counter: "handshake/timeout", Full: "closed (`CODE_TIMEOUT`)",
		},
		{
			Name:    "connections of returning clients while the room is full or the server overloaded",
			Default: limits.Say("%v, at once %v", heardRate, heardBurst), Unit: "a second",
			Counter: "handshake/full, handshake/overload",
			Full:    "refused before TLS; below it they are heard if the room is full or awaits clients that have lost their connection",
		},
	}}
}
