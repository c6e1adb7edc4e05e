package quicnet

import "github.com/netloop/netloop/internal/limits"

// Bounds are the rows of this package in docs/LIMITS.md.
func Bounds() limits.Table {
	return limits.Table{limits.Door: {
		{
			Name: "a silent handshake", Default: handshakeIdleTimeout, Full: "given up by QUIC",
		},
		{
			Name: "a hello, from the handshake to its last byte", Default: defaultHelloTimeout,
			Counter: "handshake/timeout", Full: "closed (`CODE_TIMEOUT`)",
		},
	}}
}
