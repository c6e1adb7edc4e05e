package udpbatch

import (
	"time"

	"github.com/netloop/netloop/internal/limits"
)

const (
	// batchPackets and batchBytes bound a batch, of which there are two: enough for several dozen
	// clients in a tick. Writers block while a batch is full.
	batchPackets = 128
	batchBytes   = 160 << 10
	// Pause is the interval of reading rounds while packets keep arriving. A packet waits at most
	// that long, plus a timer's inaccuracy of a millisecond: no longer than 5 ms in all, whatever
	// the ticks do.
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
