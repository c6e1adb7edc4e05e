package udpbatch

import (
	"time"

	"github.com/netloop/netloop/internal/limits"
)

const (
	// batchPackets and batchBytes bound a batch, of which there are two: what several dozen
	// clients get in a tick. A full one makes the writers wait.
	batchPackets = 128
	batchBytes   = 160 << 10
	// Pause is how far apart rounds of reading are while packets keep coming. It is what a
	// packet waits at most, and a timer's inaccuracy of a millisecond: no longer than 5 ms in
	// all, whatever the ticks do.
	Pause = 4 * time.Millisecond
)

// Bounds are the rows of this package in docs/LIMITS.md.
func Bounds() limits.Table {
	return limits.Table{
		limits.Queues: {{
			Name: "packets that wait in the kernel to be read, on Linux", Default: Pause, Unit: "while many come",
			Config: "Config.PlainSocket, --plain-socket", Counter: "netloop_socket_wait_seconds", Full: "they are read",
		}},
		limits.Answers: {{
			Name:    "UDP packets that are collected for the kernel, on Linux",
			Default: limits.Say("two batches of %v packets or %v", batchPackets, limits.Bytes(batchBytes)), Config: "Config.PlainSocket, --plain-socket",
			Counter: "netloop_socket_lag_seconds", Full: "QUIC waits for room",
		}},
	}
}
