package web

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Proxies are the addresses of trusted proxies. Each proxy appends an entry to the header
// X-Forwarded-For. Only the last entry is written by the peer; earlier entries may be forged. So an
// entry is trusted only if the peer and all later entries are proxies. Other entries are ignored.
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

// trusts reports whether an address belongs to a trusted proxy.
func (p Proxies) trusts(at netip.Addr) bool {
	at = at.Unmap().WithZone("")
	return slices.ContainsFunc(p, func(of netip.Prefix) bool { return of.Contains(at) })
}

// client returns the address of a request's client. It is the peer, or if the peer is a proxy, the
// last entry of X-Forwarded-For that is not a proxy. The search ends at an invalid entry.
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

// forwardedFor parses an entry of X-Forwarded-For: an address, with or without a port.
func forwardedFor(text string) (netip.AddrPort, bool) {
	if at, err := netip.ParseAddrPort(text); err == nil {
		return at, true
	}
	addr, err := netip.ParseAddr(strings.Trim(text, "[]"))
	return netip.AddrPortFrom(addr.WithZone(""), 0), err == nil
}
