//go:build !linux

package wsnet

import (
	"net"
	"time"
)

// kernel is asked about TCP sockets on Linux alone. Elsewhere a writer that blocks is what keeps
// datagrams fresh, and pings tell the round trip.
type kernel struct{}

func newKernel(net.Conn) kernel { return kernel{} }

func (kernel) unsent() int        { return 0 }
func (kernel) rtt() time.Duration { return 0 }
