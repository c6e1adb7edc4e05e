//go:build !linux

package udpbatch

import "net"

// Open returns the socket itself, without batches and times of arrival, which only Linux supports.
func Open(socket *net.UDPConn, _ Config) (net.PacketConn, *Peers, error) {
	return socket, nil, nil
}
