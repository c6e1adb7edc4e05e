package web

import (
	"io/fs"
	"net/http"
	"testing"
	"testing/fstest"

	"github.com/netloop/netloop/clients/ts"
	"github.com/netloop/netloop/internal/web/static"
)

// The further modules of the client are served beside it.
func TestTheModulesOfTheClientAreServed(t *testing.T) {
	for _, name := range []string{"netgraph.js", "protobuf.js"} {
		want, err := fs.ReadFile(ts.Files(), name)
		if err != nil {
			t.Fatal(err)
		}
		if r, body := ask(t, "GET", "http://"+start(t, config())+"/"+name); r.StatusCode != http.StatusOK || body != string(want) {
			t.Errorf("%s: %d, %d bytes", name, r.StatusCode, len(body))
		}
	}
}

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
