package transport

import "net/netip"

// ipv6Site is how many bits of an IPv6 address one household or machine has the rest of: with
// a shorter prefix strangers share it, with a longer one somebody has many.
const ipv6Site = 56

// Site is the part of an address that stands for one household or machine: the whole of an
// IPv4 address, the first 56 bits of an IPv6 address. Limits that are somebody's own, before
// anybody knows who that is, belong to its site.
func Site(ip netip.Addr) netip.Prefix {
	ip = ip.Unmap().WithZone("")
	bits := ipv6Site
	if ip.Is4() {
		bits = ip.BitLen()
	}
	p, _ := ip.Prefix(bits) // It has as many, or is no address: they share the zero value.
	return p
}
