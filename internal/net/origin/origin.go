// Package origin decides which web pages may open connections to a server. A browser sends the
// origin of the page with every WebTransport session and every WebSocket that the page opens, and a
// page cannot change it.
package origin

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
)

// Set is the set of pages that may connect. The zero value admits no page, but all programs: a
// program sends no origin, and could forge any. Any goroutine may use it.
type Set struct {
	any    bool
	listed []string // in the form scheme://host:port

	mu    sync.Mutex
	pages []page
}

// page is an address at which the server itself serves a page.
type page struct {
	scheme, port string
	host         netip.Addr // unspecified: all addresses of the machine
}

// Any is the entry of the list of [Parse] that admits all pages.
const Any = "*"

// Parse returns a Set of a list of origins, such as https://example.org or http://localhost:8080,
// or of [Any].
func Parse(list []string) (*Set, error) {
	s := new(Set)
	for _, text := range list {
		if text == Any {
			s.any = true
			continue
		}
		o, ok := normal(text)
		if !ok {
			return nil, fmt.Errorf("origin %q: use scheme://host or scheme://host:port, as in https://example.org, or %s for all", text, Any)
		}
		s.listed = append(s.listed, o)
	}
	return s, nil
}

// Public admits the pages at a public URL of the server, such as that of a proxy in front of it,
// and returns its scheme and its host.
func (s *Set) Public(text string) (scheme, host string, err error) {
	o, ok := normal(text)
	u, _ := url.Parse(text)
	if !ok || u.Scheme != "http" && u.Scheme != "https" {
		return "", "", fmt.Errorf("URL %q: use https://host or https://host:port, without a path", text)
	}
	s.listed = append(s.listed, o)
	return u.Scheme, u.Host, nil
}

// Serves admits the pages that the server itself serves at a TCP address.
func (s *Set) Serves(scheme string, at net.Addr) {
	a, ok := at.(*net.TCPAddr)
	if !ok {
		return
	}
	ap := a.AddrPort()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pages = append(s.pages, page{scheme: scheme, port: fmt.Sprint(ap.Port()), host: ap.Addr().Unmap()})
}

// Allows reports whether a page of an origin may open a connection to host, the request's host
// with or without a port. A program has an empty origin.
func (s *Set) Allows(origin, host string) bool {
	if origin == "" {
		return true
	}
	o, ok := normal(origin)
	if !ok || s == nil {
		return false
	}
	return s.any || slices.Contains(s.listed, o) || s.served(o, host)
}

// served reports whether an origin is a page of the server itself: it has the scheme and the port
// of such a page, and its host is the page's address or the host of the request. A foreign name may
// resolve to this machine, so the host of the request counts only if it is an IP address or this
// machine's name, or with https, where a certificate proves the name. A server on a loopback
// address has pages only at loopback addresses and localhost.
func (s *Set) served(origin, host string) bool {
	u, _ := url.Parse(origin) // origin is normal already.
	from, name := u.Hostname(), hostOf(host)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.pages {
		if p.scheme != u.Scheme || p.port != u.Port() {
			continue
		}
		switch {
		case local(from) && local(name):
			if p.host.IsLoopback() || p.host.IsUnspecified() {
				return true
			}
		case p.host.IsLoopback():
		case p.host.String() == from:
			return true
		case strings.EqualFold(name, from) && (p.scheme == "https" || ownName(from)):
			return true
		}
	}
	return false
}

// ownName reports whether a host cannot be a foreign name: it is an address, or the host name of
// this machine.
func ownName(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	machine, err := os.Hostname()
	return err == nil && strings.EqualFold(host, machine)
}

// local reports whether a host means "this machine" on every machine.
func local(host string) bool {
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.IsLoopback()
}

// normal returns an origin in lower case and with its port, and false if text is no origin.
func normal(text string) (string, bool) {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.Scheme+"://"+u.Host != strings.TrimSuffix(text, "/") {
		return "", false // Not exactly an origin.
	}
	port := map[string]string{"http": "80", "https": "443"}[u.Scheme]
	if u.Port() != "" {
		port = u.Port()
	}
	if port == "" {
		return "", false
	}
	return u.Scheme + "://" + strings.ToLower(net.JoinHostPort(u.Hostname(), port)), true
}

// hostOf returns the host of a request without its port.
func hostOf(named string) string {
	if host, _, err := net.SplitHostPort(named); err == nil {
		return host
	}
	return strings.Trim(named, "[]")
}
