package wsnet

import "github.com/netloop/netloop/internal/limits"

// Bounds are the rows of this package in docs/LIMITS.md.
func Bounds() limits.Table {
	return limits.Table{limits.Session: {
		{
			Name: "a message of a WebSocket", Default: limits.Bytes(MaxMessage), Full: "closed (`CODE_PROTOCOL`)",
		},
		{
			Name: "… messages, whatever they hold", Default: limits.Say("%v, at once %v", messageRate, messageBurst), Unit: "a second",
			Full: "closed (`CODE_FLOOD`)",
		},
		{
			Name: "… pings and pongs", Default: limits.Say("%v, at once %v", controlRate, controlBurst), Unit: "a second",
			Full: "closed (`CODE_FLOOD`)",
		},
		{
			Name: "… silence, pongs included", Default: idleTimeout, Full: "closed (`CODE_LOST`)",
		},
		{
			Name: "… how long a datagram waits while the socket is behind by more than 6 KiB (Linux)", Default: maxBehind,
			Counter: "datagram/behind", Full: "dropped",
		},
	}}
}
