// Package endpoint has the site of an address, to which the limits of a client are charged, and
// the URL path of the server.
package endpoint

import (
	"net"
	"net/netip"
)

// Path is the URL path of game connections, of WebTransport and of WebSocket.
const Path = "/netloop"

// ipv6Site is the length in bits of the IPv6 prefix of one household or machine: with a shorter
// prefix unrelated clients share a site, with a longer one a single client has many.
const ipv6Site = 56

// Site returns the part of an address that identifies one household or machine: a whole IPv4
// address, or the first 56 bits of an IPv6 address. Limits per client are charged to the site until
// the client is admitted.
func Site(ip netip.Addr) netip.Prefix {
	ip = ip.Unmap().WithZone("")
	bits := ipv6Site
	if ip.Is4() {
		bits = ip.BitLen()
	}
	p, _ := ip.Prefix(bits) // For an invalid address, the zero value.
	return p
}

// SiteOf returns the site of a connection's peer.
func SiteOf(peer net.Addr) netip.Prefix {
	switch a := peer.(type) {
	case *net.UDPAddr:
		return Site(a.AddrPort().Addr())
	case *net.TCPAddr:
		return Site(a.AddrPort().Addr())
	}
	return netip.Prefix{}
}
