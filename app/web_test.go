package app

import (
	"crypto/tls"
	"io"
	"io/fs"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/netloop/netloop"
)

// playable is a game with a page.
type playable struct {
	*game
	files fs.FS
}

func (p playable) Web() fs.FS { return p.files }

// page fetches a path from the server at the URL of its banner, and returns its address.
func (r *running) page(path string) (body, at string) {
	r.t.Helper()
	found := regexp.MustCompile(`(?m)^  page +(https?://127\.0\.0\.1:\d+)/$`).FindStringSubmatch(r.banner())
	if found == nil {
		r.t.Fatalf("the banner names no page:\n%s", r.banner())
	}
	client := &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	resp, err := client.Get(found[1] + path)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return string(b), found[1]
}

// A game with pages shows them with --web, and a game without pages describes itself; both name the
// address of the game.
func TestPagesOfAGame(t *testing.T) {
	for name, tt := range map[string]struct {
		game   netloop.Game
		args   []string
		scheme string
		want   string
	}{
		"of the game":  {playable{newGame(), fstest.MapFS{"index.html": {Data: []byte("play!")}}}, nil, "http:", "play!"},
		"encrypted":    {playable{newGame(), fstest.MapFS{"index.html": {Data: []byte("play!")}}}, []string{"--web-tls"}, "https:", "play!"},
		"of no game":   {newGame(), nil, "http:", "<h1>shooter</h1>"},
		"nil is none":  {playable{newGame(), nil}, nil, "http:", "<h1>shooter</h1>"},
		"with origins": {newGame(), []string{"--origin", "https://example.org, http://localhost:3000"}, "http:", "<h1>shooter</h1>"},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, tt.game, nil, append(tt.args, "--web", "127.0.0.1:0")...)
			if body, at := r.page("/"); !strings.Contains(body, tt.want) || !strings.HasPrefix(at, tt.scheme) {
				t.Errorf("at %s: %s", at, body)
			}
			if body, _ := r.page("/connect.json"); !strings.Contains(body, `"name":"shooter","major":2,"minor":1,"fingerprint":"`) {
				t.Error(body)
			}
			if exit, log := r.stop(); exit != 0 {
				t.Errorf("exit %d: %s", exit, log)
			}
		})
	}
}

// Unencrypted pages that other machines reach cause a warning.
func TestPagesInTheClearAreWarnedOf(t *testing.T) {
	for args, warned := range map[string]bool{"--insecure-no-auth --web 0.0.0.0:0": true, "--insecure-no-auth --web 0.0.0.0:0 --web-tls": false, "--web localhost:0": false} {
		r := start(t, newGame(), nil, strings.Fields(args)...)
		r.banner()
		if _, log := r.stop(); strings.Contains(log, "pages are not encrypted") != warned {
			t.Errorf("%s: %s", args, log)
		}
	}
}
