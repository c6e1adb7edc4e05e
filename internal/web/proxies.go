package web

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Proxies are the addresses whose X-Forwarded-For is believed. Of that header's entries the last is
// by the proxy itself, and those before it are by whoever it says: an entry counts if everything
// behind it is by a proxy. Every other header of the kind, and that of any other peer, is ignored.
type Proxies []netip.Prefix

// ParseProxies reads addresses and prefixes, such as 127.0.0.1 and 10.0.0.0/8.
func ParseProxies(list []string) (Proxies, error) {
	var all Proxies
	for _, text := range list {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			addr, err := netip.ParseAddr(text)
			if err != nil {
				return nil, fmt.Errorf("proxy %q: use addresses or prefixes, such as 127.0.0.1 or 10.0.0.0/8", text)
			}
			p = netip.PrefixFrom(addr.Unmap(), addr.Unmap().BitLen())
		}
		all = append(all, p.Masked())
	}
	return all, nil
}

// trusts tells whether an address is that of a proxy.
func (p Proxies) trusts(at netip.Addr) bool {
	at = at.Unmap().WithZone("")
	return slices.ContainsFunc(p, func(of netip.Prefix) bool { return of.Contains(at) })
}

// client returns the address that a request has come from: the peer's, or, where that is a proxy,
// the one for which it has asked. An entry that is no address ends the search.
func (p Proxies) client(peer netip.AddrPort, h http.Header) netip.AddrPort {
	entries := strings.Split(strings.Join(h.Values("X-Forwarded-For"), ","), ",")
	for i := len(entries) - 1; i >= 0 && p.trusts(peer.Addr()); i-- {
		from, ok := forwardedFor(strings.TrimSpace(entries[i]))
		if !ok {
			break
		}
		peer = from
	}
	return peer
}

// forwardedFor reads an entry: an address, with a port or without.
func forwardedFor(text string) (netip.AddrPort, bool) {
	if at, err := netip.ParseAddrPort(text); err == nil {
		return at, true
	}
	addr, err := netip.ParseAddr(strings.Trim(text, "[]"))
	return netip.AddrPortFrom(addr.WithZone(""), 0), err == nil
}
