package udpbatch

import (
	"net/netip"
	"sync/atomic"
	"time"
)

// Config configures a socket.
type Config struct {
	Stats *Stats // nil: not counted
	// Failed is called with the error of an unsent packet, unless the packet was too large; nil:
	// errors are ignored.
	Failed func(error)
	// Take handles a packet that is not for QUIC, and reports whether it did. The reading goroutine
	// calls it for each packet that has arrived. local is the control message with which answers
	// are sent from the address to which the packet was sent, or nil if it is unknown; waited is
	// the time for which the packet waited in the kernel. Take may change the bytes during the
	// call. nil: all packets are for QUIC.
	Take func(b []byte, from netip.AddrPort, local []byte, waited time.Duration) bool
}

// Stats are counters of sockets. Any goroutine may read them.
type Stats struct {
	Sends, Receives atomic.Uint64 // system calls
	Sent, Received  atomic.Uint64 // packets
	Retries         atomic.Uint64 // sends repeated because a buffer was full
	TooLarge        atomic.Uint64 // packets larger than the interface's limit
	Unsent          atomic.Uint64 // packets that the kernel refused, except those of TooLarge
	Full            atomic.Uint64 // packets of Offer for which there was no room
	// Lag observes the time from the first packet of a batch until the kernel has accepted the
	// whole batch. Set it before the first socket is opened.
	Lag func(time.Duration)
	// Wait observes the time for which the first packet of each read had waited in the kernel. Set
	// it before the first socket is opened.
	Wait func(time.Duration)
}
