package udpbatch

import (
	"sync/atomic"
	"time"
)

// Config is what a socket needs to know.
type Config struct {
	Stats *Stats // nil: not counted
	// Failed is told why a packet was not sent, except that it was too large; nil: nobody.
	Failed func(error)
}

// Stats counts what sockets did. Any goroutine may read it.
type Stats struct {
	Sends, Receives atomic.Uint64 // system calls
	Sent, Received  atomic.Uint64 // packets
	Retries         atomic.Uint64 // sends that were tried again for want of room
	TooLarge        atomic.Uint64 // packets larger than the path's interface carries
	Unsent          atomic.Uint64 // packets that the kernel refused for another reason
	// Lag observes how long the first packet of a batch waited until the kernel had the
	// whole batch. Set it before the first socket is opened.
	Lag func(time.Duration)
	// Wait observes how long the first packet of those that were read at once had been
	// there. Set it as early.
	Wait func(time.Duration)
}
