package web

import (
	"encoding/base64"
	"encoding/hex"
	"net"
	"net/netip"
	"strings"
)

// Facts are what a page needs to find the game.
type Facts struct {
	Game net.Addr // the UDP address
	// Hashes are the SHA-256 of the certificates that a browser may pin. None: it knows who
	// vouches for the server's.
	Hashes   [][32]byte
	Schema   Schema
	Version  string // of netloop
	Protocol int
}

// Schema says which game it is.
type Schema struct {
	Name         string
	Major, Minor int
	Fingerprint  []byte
}

// connect is /connect.json.
type connect struct {
	Address           string   `json:"address"` // host:port, as whoever asks can reach it
	Path              string   `json:"path"`
	CertificateHashes []string `json:"certificateHashes"`
	WebSocket         string   `json:"webSocket,omitempty"`
	Schema            struct {
		Name        string `json:"name"`
		Major       int    `json:"major"`
		Minor       int    `json:"minor"`
		Fingerprint string `json:"fingerprint"`
	} `json:"schema"`
	Version  string   `json:"version"`
	Protocol int      `json:"protocol"`
	Refused  *Refusal `json:"refused,omitempty"`
}

// Refusal says why the server lets in nobody who comes from where somebody asks.
type Refusal struct {
	Code int    `json:"code"`
	Text string `json:"text"`
}

// connectFor makes the page for whoever asked by a host, which may have a port.
func (f *Facts) connectFor(host string, socket string) connect {
	c := connect{Address: f.addressFor(host), Path: Path, CertificateHashes: []string{}, WebSocket: socket, Version: f.Version, Protocol: f.Protocol}
	for _, h := range f.Hashes {
		c.CertificateHashes = append(c.CertificateHashes, base64.StdEncoding.EncodeToString(h[:]))
	}
	c.Schema.Name, c.Schema.Major, c.Schema.Minor = f.Schema.Name, f.Schema.Major, f.Schema.Minor
	c.Schema.Fingerprint = hex.EncodeToString(f.Schema.Fingerprint)
	return c
}

// addressFor is where the game is for whoever asked by a host: there, on the game's own port. Only
// localhost is written as an address, because it may be two, and the game listens on one.
func (f *Facts) addressFor(host string) string {
	name := hostOf(host)
	game, ok := f.Game.(*net.UDPAddr)
	if !ok {
		return ""
	}
	ap := game.AddrPort()
	if strings.EqualFold(name, "localhost") {
		name = "127.0.0.1"
		if ip := ap.Addr().Unmap(); ip.IsLoopback() {
			name = ip.String()
		}
	}
	_, port, _ := net.SplitHostPort(game.String()) // It is one.
	return net.JoinHostPort(name, port)
}

// hostOf is the host of what a request names, without its port.
func hostOf(named string) string {
	if host, _, err := net.SplitHostPort(named); err == nil {
		return host
	}
	if in, ok := strings.CutPrefix(named, "["); ok {
		if in, ok := strings.CutSuffix(in, "]"); ok {
			return in
		}
	}
	return named
}

// plainHost tells whether what a request names is a host, with or without a port, and nothing
// that means something in a header or on a page.
func plainHost(named string) bool {
	name := hostOf(named)
	if _, err := netip.ParseAddr(name); err == nil {
		return true
	}
	const most = 253 // DNS has no longer ones.
	if name == "" || len(named) > most+len(":65535") {
		return false
	}
	return strings.Trim(strings.ToLower(named), "abcdefghijklmnopqrstuvwxyz0123456789-._:") == ""
}
