package quicnet

import "github.com/netloop/netloop/internal/limits"

// Bounds are the rows of this package in docs/LIMITS.md.
func Bounds() limits.Table {
	return limits.Table{limits.Door: {
		{
			Name: "a silent handshake", Default: handshakeIdleTimeout, Full: "given up by QUIC",
		},
	}}
}
