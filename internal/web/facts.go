package web

import (
	"encoding/base64"
	"encoding/hex"
	"net"
	"net/netip"
	"strings"

	"github.com/netloop/netloop/internal/net/endpoint"
)

// Facts holds the data that a page needs to connect to the game.
type Facts struct {
	Game net.Addr // the UDP address
	// Hashes are the SHA-256 of the certificates that a browser may pin. Hashes is empty if an
	// authority has signed the server's certificate.
	Hashes   [][32]byte
	Schema   Schema
	Version  string // of netloop
	Protocol int
	// Cluster means that the pages' clients may move to other servers, which may start later.
	Cluster bool
}

// Schema identifies the game.
type Schema struct {
	Name         string
	Major, Minor int
	Fingerprint  []byte
}

// Connect is the content of /connect.json.
type Connect struct {
	Address           string        `json:"address"`             // host:port for the browser
	Path              string        `json:"path"`                // of WebTransport
	CertificateHashes []string      `json:"certificateHashes"`   // SHA-256 to pin, in base64
	WebSocket         string        `json:"webSocket,omitempty"` // URL or path
	Schema            ConnectSchema `json:"schema"`              // the game's
	Version           string        `json:"version"`             // of netloop
	Protocol          int           `json:"protocol"`            // version of the wire protocol
	Refused           *Refusal      `json:"refused,omitempty"`   // why the browser would be refused
}

// ConnectSchema identifies the game in /connect.json.
type ConnectSchema struct {
	Name        string `json:"name"`        // of the game
	Major       int    `json:"major"`       // another one does not connect
	Minor       int    `json:"minor"`       // client and server use the smaller one
	Fingerprint string `json:"fingerprint"` // hash of the schema, in hexadecimal digits
}

// Refusal is the reason why the server would refuse a connection from the address of a request.
type Refusal struct {
	Code int    `json:"code"` // as in the goodbye of the wire
	Text string `json:"text"` // for a person
}

// ConnectFor returns the content of /connect.json for a browser that requested a host, with or
// without a port.
func (f *Facts) ConnectFor(host string, socket string) Connect {
	c := Connect{Address: f.addressFor(host), Path: endpoint.Path, CertificateHashes: []string{}, WebSocket: socket, Version: f.Version, Protocol: f.Protocol}
	for _, h := range f.Hashes {
		c.CertificateHashes = append(c.CertificateHashes, base64.StdEncoding.EncodeToString(h[:]))
	}
	c.Schema.Name, c.Schema.Major, c.Schema.Minor = f.Schema.Name, f.Schema.Major, f.Schema.Minor
	c.Schema.Fingerprint = hex.EncodeToString(f.Schema.Fingerprint)
	return c
}

// addressFor returns the game's address for a browser that requested a host: that host, with the
// game's own port. Only localhost is replaced by an IP address, because the name may mean 127.0.0.1
// or ::1, and the game listens on one of them.
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
	_, port, _ := net.SplitHostPort(game.String()) // The address has a port.
	return net.JoinHostPort(name, port)
}

// hostOf returns the host of a request's Host header, without the port.
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

// plainHost reports whether the Host header of a request is a name or an address, with or without a
// port, and has no characters with a meaning in a header or on a page.
func plainHost(named string) bool {
	name := hostOf(named)
	if _, err := netip.ParseAddr(name); err == nil {
		return true
	}
	const most = 253 // The longest name in DNS.
	if name == "" || len(named) > most+len(":65535") {
		return false
	}
	return strings.Trim(strings.ToLower(named), "abcdefghijklmnopqrstuvwxyz0123456789-._:") == ""
}
