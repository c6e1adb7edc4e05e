//go:build !linux

package udpbatch

import "net"

// Open returns the socket itself, without times of arrival.
func Open(socket *net.UDPConn, _ Config) (net.PacketConn, *Peers, error) {
	return socket, nil, nil
}
