// Package origin says which web pages may open connections to a server. A browser tells the origin
// of the page with every WebTransport session and every WebSocket that the page opens, and no page
// can change what its browser says.
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

// Set is the set of pages that may come in. The zero value lets in no page, and everybody who is
// none: a program tells no origin, and could tell any. Any goroutine may use it.
type Set struct {
	any    bool
	listed []string // as scheme://host:port

	mu    sync.Mutex
	pages []page
}

// page is where the server itself serves a page.
type page struct {
	scheme, port string
	host         netip.Addr // unspecified: every address of the machine
}

// Any is the entry that lets in all pages.
const Any = "*"

// Parse makes a Set of a list of origins, as in https://example.org or http://localhost:8080, or
// of [Any].
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

// Public lets in the pages that browsers find at a URL of the server, such as that of a proxy
// before it, and returns its scheme and its host.
func (s *Set) Public(text string) (scheme, host string, err error) {
	o, ok := normal(text)
	u, _ := url.Parse(text)
	if !ok || u.Scheme != "http" && u.Scheme != "https" {
		return "", "", fmt.Errorf("URL %q: use https://host or https://host:port, without a path", text)
	}
	s.listed = append(s.listed, o)
	return u.Scheme, u.Host, nil
}

// Serves lets in the pages that the server itself serves at a TCP address.
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

// Allows tells whether whoever tells an origin may open a connection to host, which is what the
// request names, with or without a port. No origin at all is that of a program.
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

// served tells whether an origin is a page of the server itself. The host that a request names
// proves nothing alone: a page of a foreign host whose name resolves to this machine names that
// host as well. It counts where it is an address, or where a certificate proves it. A server that
// only this machine reaches has pages at names of this machine alone.
func (s *Set) served(origin, host string) bool {
	u, _ := url.Parse(origin) // It is a normal one.
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

// ownName tells whether a host cannot be the name of a foreign one: an address, or the name that
// this machine has.
func ownName(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	machine, err := os.Hostname()
	return err == nil && strings.EqualFold(host, machine)
}

// local tells whether a host is this machine, for every machine.
func local(host string) bool {
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.IsLoopback()
}

// normal returns an origin with its port and in lower case.
func normal(text string) (string, bool) {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.Scheme+"://"+u.Host != strings.TrimSuffix(text, "/") {
		return "", false // It is more than an origin, or less.
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

// hostOf cuts the port, if there is one, from what a request names.
func hostOf(named string) string {
	if host, _, err := net.SplitHostPort(named); err == nil {
		return host
	}
	return strings.Trim(named, "[]")
}
