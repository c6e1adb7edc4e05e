package udpbatch

import (
	"sync/atomic"
	"time"
)

// Config configures a socket.
type Config struct {
	Stats *Stats // nil: not counted
	// Failed is called with the error of an unsent packet, unless the packet was too large; nil:
	// ignored.
	Failed func(error)
}

// Stats are counters of sockets. Any goroutine may read them.
type Stats struct {
	Sends, Receives atomic.Uint64 // system calls
	Sent, Received  atomic.Uint64 // packets
	Retries         atomic.Uint64 // sends repeated because a buffer was full
	TooLarge        atomic.Uint64 // packets larger than the interface's limit
	Unsent          atomic.Uint64 // packets refused by the kernel, except for those of TooLarge
	// Lag observes the time from the first packet of a batch until the kernel has accepted the
	// whole batch. Set it before the first socket is opened.
	Lag func(time.Duration)
	// Wait observes the time for which the first packet of each read had waited in the kernel. Set
	// it before the first socket is opened.
	Wait func(time.Duration)
}
