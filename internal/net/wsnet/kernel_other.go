//go:build !linux

package wsnet

import (
	"net"
	"time"
)

// kernel queries TCP sockets on Linux only. Elsewhere blocking writes limit the age of datagrams,
// and pings measure the round trip.
type kernel struct{}

func newKernel(net.Conn) kernel { return kernel{} }

func (kernel) unsent() int        { return 0 }
func (kernel) rtt() time.Duration { return 0 }
