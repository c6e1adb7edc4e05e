package client

import (
	"crypto/tls"
	"crypto/x509"
	"testing"

	"github.com/netloop/netloop/internal/net/endpoint"
	"github.com/netloop/netloop/internal/transport"
)

// Another server is dialled at its address, with its certificates, or else with those of the
// client's Config for the name of that server.
func TestHowAnotherServerIsDialled(t *testing.T) {
	hashes := [][]byte{make([]byte, 32)}
	for name, c := range map[string]struct {
		to       transport.Address
		addr     string // "" is an error
		server   string
		how      Transport
		insecure bool // without a configuration of the client
	}{
		"QUIC":                      {to: transport.Address{Carrier: "quic", Addr: "play.example:7"}, addr: "play.example:7", server: "play.example", how: QUIC},
		"QUIC on this machine":      {to: transport.Address{Carrier: "quic", Addr: "127.0.0.1:7"}, addr: "127.0.0.1:7", server: "127.0.0.1", how: QUIC, insecure: true},
		"QUIC without a port":       {to: transport.Address{Carrier: "quic", Addr: "play.example"}, how: QUIC},
		"QUIC to a URL":             {to: transport.Address{Carrier: "quic", Addr: "https://play.example:7" + endpoint.Path}, how: QUIC},
		"WebTransport":              {to: transport.Address{Carrier: "webtransport", Addr: "https://play.example:7" + endpoint.Path}, addr: "play.example:7", server: "play.example", how: WebTransport},
		"WebTransport to a host":    {to: transport.Address{Carrier: "webtransport", Addr: "play.example:7"}, addr: "play.example:7", server: "play.example", how: WebTransport},
		"WebSocket":                 {to: transport.Address{Carrier: "websocket", Addr: "wss://play.example:7/x"}, addr: "wss://play.example:7/x", server: "play.example", how: WebSocket},
		"WebSocket to a host":       {to: transport.Address{Carrier: "websocket", Addr: "play.example:7"}, addr: "wss://play.example:7" + endpoint.Path, server: "play.example", how: WebSocket},
		"WebSocket on this machine": {to: transport.Address{Carrier: "websocket", Addr: "127.0.0.1:7"}, addr: "ws://127.0.0.1:7" + endpoint.Path, server: "127.0.0.1", how: WebSocket, insecure: true},
		"WebSocket to a page":       {to: transport.Address{Carrier: "websocket", Addr: "https://play.example:7"}, how: WebSocket},
		"a name":                    {to: transport.Address{Carrier: "quic", Addr: "play.example:7", Name: "other.example"}, addr: "play.example:7", server: "other.example", how: QUIC},
	} {
		for _, own := range []*tls.Config{nil, {RootCAs: x509.NewCertPool(), ServerName: "home.example"}} {
			for _, pins := range [][][]byte{nil, hashes} {
				c.to.Hashes = pins
				addr, conf, how, err := (&Config{TLS: own}).reach(&c.to)
				if (err == nil) != (c.addr != "") || addr != c.addr || how != c.how {
					t.Errorf("%s: %q by %v, %v", name, addr, how, err)
				}
				if err != nil {
					continue
				}
				if conf == own || conf.ServerName != c.server {
					t.Errorf("%s: the name of the server is %q, want %q", name, conf.ServerName, c.server)
				}
				if pinned := conf.VerifyConnection != nil; pinned != (pins != nil) {
					t.Errorf("%s: the certificate is pinned: %v", name, pinned)
				}
				if ours := conf.RootCAs != nil; ours != (own != nil && pins == nil) {
					t.Errorf("%s: it has the authorities of the client: %v", name, ours)
				}
				if pins == nil && conf.InsecureSkipVerify != (c.insecure && own == nil) {
					t.Errorf("%s: any certificate is accepted: %v", name, conf.InsecureSkipVerify)
				}
			}
			if own != nil && own.ServerName != "home.example" {
				t.Fatal("the configuration of the client is changed")
			}
		}
	}
}
