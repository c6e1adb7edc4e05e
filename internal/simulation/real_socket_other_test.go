//go:build !unix

package simulation

import "net"

// dialer dials with the usual receive buffer: other systems name the option differently.
func dialer(bool) *net.Dialer { return new(net.Dialer) }
