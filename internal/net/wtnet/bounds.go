package wtnet

import "github.com/netloop/netloop/internal/limits"

// Bounds are the rows of this package in docs/LIMITS.md.
func Bounds() limits.Table {
	return limits.Table{limits.Door: {
		{
			Name: "streams of a browser that are looked at until it has a session", Default: maxStreams, Unit: "streams",
			Counter: "handshake/request", Full: "closed (`CODE_PROTOCOL`)",
		},
		{
			Name: "… headers of a request", Default: limits.Bytes(maxHeader), Full: "answered 431",
		},
		{
			Name: "… bytes of its CONNECT stream", Default: limits.Bytes(maxCapsules), Full: "the connection is closed",
		},
	}}
}
