package web

import (
	"net/http"
	"testing"
	"testing/fstest"

	"github.com/netloop/netloop/clients/ts"
	"github.com/netloop/netloop/internal/web/static"
)

// A server with pages serves the client library of its version, unless the game has its own build.
func TestTheClientIsServed(t *testing.T) {
	for _, c := range []struct {
		name string
		own  string
		want string
	}{
		{"the server's", "", string(ts.Client)},
		{"the game's", "export {};", "export {};"},
	} {
		cfg := config()
		if c.own != "" {
			cfg.Files = fstest.MapFS{"index.html": {}, "netloop.js": {Data: []byte(c.own)}}
		}
		r, body := ask(t, "GET", "http://"+start(t, cfg)+"/netloop.js")
		if r.StatusCode != http.StatusOK || body != c.want || r.Header.Get("Content-Type") != static.Kinds[".js"] {
			t.Errorf("%s: %d, %d bytes of %s", c.name, r.StatusCode, len(body), r.Header.Get("Content-Type"))
		}
	}
}
