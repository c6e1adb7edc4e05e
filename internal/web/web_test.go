package web

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/time/rate"

	"github.com/netloop/netloop/internal/certificate"
	"github.com/netloop/netloop/internal/net/admission"
	"github.com/netloop/netloop/internal/net/origin"
	"github.com/netloop/netloop/internal/web/static"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pages returns the pages of a game.
func pages() fstest.MapFS {
	return fstest.MapFS{
		"index.html":     {Data: []byte("<!doctype html><script src=game.js></script>")},
		"game.js":        {Data: bytes.Repeat([]byte("let n = 0;\n"), 100)},
		"art/ship.png":   {Data: []byte("\x89PNG")},
		"art/index.html": {Data: []byte("all of it")},
		"odd.thing":      {Data: []byte("?")},
		"xindex.html":    {Data: []byte("no index")},
		".secret":        {Data: []byte("no")},
		".git/config":    {Data: []byte("no")},
	}
}

func config() Config {
	return Config{
		Listen: "127.0.0.1:0", Files: pages(), Origins: new(origin.Set), Counts: new(Counts), Log: slog.New(slog.DiscardHandler),
		Allow: admission.NewLimiter(MaxConns).Allow,
		Facts: func() Facts {
			return Facts{
				Game: &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 4433}, Hashes: [][32]byte{{1}}, Version: "v1.2.3", Protocol: 1,
				Schema: Schema{Name: "<arena>", Major: 2, Minor: 5, Fingerprint: []byte{0xab, 0xcd}},
			}
		},
	}
}

// start serves until the test ends and checks that no goroutine is left.
func start(t *testing.T, cfg Config) (at string) {
	t.Helper()
	s, err := Listen(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s.Addr().String()
}

// answer is an answer without its body.
type answer struct {
	Status        string
	StatusCode    int
	Header        http.Header
	ContentLength int64
}

// ask requests a page with some headers, each "Name: value".
func ask(t *testing.T, method, url string, headers ...string) (a answer, body string) {
	t.Helper()
	r, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if r.Header.Set(name, value); name == "Host" {
			r.Host = value
		}
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	return answer{resp.Status, resp.StatusCode, resp.Header, resp.ContentLength}, string(b)
}

// Each file has its media type and may be cached if it is revalidated; names that begin with a dot,
// and unknown ones, are not found.
func TestFiles(t *testing.T) {
	cfg := config()
	base := "http://" + start(t, cfg)
	for _, c := range []struct {
		method, path string
		status       int
		kind, body   string
	}{
		{"GET", "/", 200, "text/html; charset=utf-8", "<!doctype html><script src=game.js></script>"},
		{"HEAD", "/", 200, "text/html; charset=utf-8", ""},
		{"GET", "/index.html", 200, "text/html; charset=utf-8", "<!doctype html><script src=game.js></script>"},
		{"GET", "/game.js", 200, "text/javascript; charset=utf-8", strings.Repeat("let n = 0;\n", 100)},
		{"GET", "/game.js?v=3", 200, "text/javascript; charset=utf-8", strings.Repeat("let n = 0;\n", 100)},
		{"GET", "/art/ship.png", 200, "image/png", "\x89PNG"},
		{"GET", "/art/", 200, "text/html; charset=utf-8", "all of it"},
		{"GET", "/odd.thing", 200, "application/octet-stream", "?"},
		{"GET", "/x", 404, "text/plain; charset=utf-8", "there is no such page here\n"},
		{"GET", "/.secret", 404, "text/plain; charset=utf-8", "there is no such page here\n"},
		{"GET", "/.git/config", 404, "text/plain; charset=utf-8", "there is no such page here\n"},
		{"GET", "/%2e%2e/etc/passwd", 404, "text/plain; charset=utf-8", "there is no such page here\n"},
		{"GET", "/netloop", 404, "text/plain; charset=utf-8", "there is no such page here\n"},
		{"POST", "/", 405, "text/plain; charset=utf-8", "Method Not Allowed\n"},
		{"DELETE", "/game.js", 405, "text/plain; charset=utf-8", "Method Not Allowed\n"},
	} {
		resp, body := ask(t, c.method, base+c.path)
		if h := resp.Header; resp.StatusCode != c.status || body != c.body || h.Get("Content-Type") != c.kind {
			t.Errorf("%s %s: %s %q %q", c.method, c.path, resp.Status, h.Get("Content-Type"), body)
		}
		if kept := resp.Header.Get("Cache-Control"); kept != map[int]string{200: "no-cache", 404: "no-store"}[c.status] {
			t.Errorf("%s %s: may be kept: %q", c.method, c.path, kept)
		}
	}
	if a, m := cfg.Counts.Answered.Load(), cfg.Counts.Missing.Load(); a != 8 || m != 5 {
		t.Errorf("%d answered, %d missing are counted", a, m)
	}
}

// Compressible files are compressed only for clients that accept it; each form has a tag for
// revalidation.
func TestFilesAreCompressedAndKept(t *testing.T) {
	base := "http://" + start(t, config())
	tags := map[string]string{}
	for accepts, zipped := range map[string]bool{
		"gzip": true, "br, gzip;q=0.5": true, "GZIP": true, "gzip;q=0": false, "gzip; q=0.0": false, "br": false, "identity": false, "gzipped": false, "gzip;q=x": false,
	} {
		resp, body := ask(t, "GET", base+"/game.js", "Accept-Encoding: "+accepts)
		if got := resp.Header.Get("Content-Encoding") == "gzip"; got != zipped || resp.Header.Get("Vary") != "Accept-Encoding" {
			t.Errorf("%q: compressed: %v, %v", accepts, got, resp.Header)
		}
		if zipped {
			z, err := gzip.NewReader(strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			b, _ := io.ReadAll(z)
			body = string(b)
			if resp.ContentLength < 1 || resp.ContentLength > 200 {
				t.Errorf("compressed it has %d bytes", resp.ContentLength)
			}
		}
		if body != strings.Repeat("let n = 0;\n", 100) {
			t.Errorf("%q: %q", accepts, body)
		}
		tags[resp.Header.Get("ETag")] = accepts
	}
	if len(tags) != 2 {
		t.Errorf("two forms have the tags %v", tags)
	}
	for tag, accepts := range tags {
		resp, body := ask(t, "GET", base+"/game.js", "Accept-Encoding: "+accepts, "If-None-Match: "+tag)
		if resp.StatusCode != http.StatusNotModified || body != "" {
			t.Errorf("%s is sent again: %s", tag, resp.Status)
		}
	}
	resp, body := ask(t, "GET", base+"/game.js", "Accept-Encoding: gzip", "Range: bytes=0-4")
	if resp.StatusCode != http.StatusPartialContent || body != "let n" {
		t.Errorf("a part: %s %q", resp.Status, body)
	}
	if resp, _ := ask(t, "GET", base+"/art/ship.png", "Accept-Encoding: gzip"); resp.Header.Get("Content-Encoding") != "" || resp.Header.Get("Vary") != "" {
		t.Error("what does not compress is compressed")
	}
}

// A page gets from /connect.json the reason why the server admits no client, because browsers do
// not show it.
func TestPagesGetTheReasonOfARefusingServer(t *testing.T) {
	cfg := config()
	var asked net.Addr
	var why *Refusal
	cfg.Refused = func(from net.Addr) *Refusal {
		asked = from
		return why
	}
	at := start(t, cfg)
	for _, why = range []*Refusal{nil, {Code: 18, Text: "too many"}} {
		_, body := ask(t, "GET", "http://"+at+"/connect.json")
		var got Connect
		if err := json.Unmarshal([]byte(body), &got); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got.Refused, why) {
			t.Errorf("the page is told %v, want %v", got.Refused, why)
		}
	}
	if a, ok := asked.(*net.TCPAddr); !ok || !a.IP.IsLoopback() || a.Port == 0 {
		t.Errorf("asked for %v", asked)
	}
}

// A browser may run and load only the server's files, connect only to it and to the game, and not
// embed the page in another.
func TestBrowsersMayDoLittle(t *testing.T) {
	cfg := config()
	cfg.Socket = http.NotFoundHandler()
	at := start(t, cfg)
	_, port, _ := net.SplitHostPort(at)
	for host, connect := range map[string]string{
		"localhost:" + port: "'self' https://127.0.0.1:* ws://localhost:" + port + "/netloop",
		"game.example":      "'self' https://game.example:* ws://game.example/netloop",
		"[::1]:" + port:     "'self' https: ws: wss:",
	} {
		for _, path := range []string{"/", "/connect.json", "/nothing"} {
			resp, _ := ask(t, "GET", "http://"+at+path, "Host: "+host)
			h := resp.Header
			want := "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; img-src 'self' data: blob:; media-src 'self' data: blob:; connect-src " + connect +
				"; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
			if got := h.Get("Content-Security-Policy"); got != want {
				t.Errorf("%s%s: the policy is\n%s, want\n%s", host, path, got, want)
			}
			if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "no-referrer" ||
				h.Get("Cross-Origin-Opener-Policy") != "same-origin" || h.Get("Cross-Origin-Resource-Policy") != "same-origin" {
				t.Errorf("%s%s: %v", host, path, h)
			}
		}
	}
}

// The pages of a server in a cluster may connect to servers that start later.
func TestPagesOfAClusterMayConnectToOtherServers(t *testing.T) {
	cfg := config()
	facts := cfg.Facts
	cfg.Facts = func() Facts {
		f := facts()
		f.Cluster = true
		return f
	}
	resp, _ := ask(t, "GET", "http://"+start(t, cfg)+"/", "Host: game.example")
	if policy := resp.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "; connect-src 'self' https: ws: wss:; object-src 'none';") {
		t.Error(policy)
	}
}

// An invalid host is refused, so it is in no header and on no page.
func TestInvalidHostsAreRefused(t *testing.T) {
	at := start(t, config())
	for _, host := range []string{"a b", "x;script-src *", "<b>", `"`, "a/b", "a,b", "é", strings.Repeat("a", 260), "[::1", ":8000"} {
		resp := raw(t, at, "GET / HTTP/1.1\r\nHost: "+host+"\r\nConnection: close\r\n\r\n")
		if !strings.HasPrefix(resp, "HTTP/1.1 400 ") || strings.Contains(resp, "<!doctype") {
			t.Errorf("%q: %.60q", host, resp)
		}
	}
	for _, host := range []string{"a", "a.b:1", "A-b_c.example.", strings.Repeat("a", 253) + ":65535", "10.0.0.1:80", "[fe80::1]:80"} {
		if resp := raw(t, at, "GET / HTTP/1.1\r\nHost: "+host+"\r\nConnection: close\r\n\r\n"); !strings.HasPrefix(resp, "HTTP/1.1 200 ") {
			t.Errorf("%q: %.60q", host, resp)
		}
	}
}

// raw sends a request as it is and returns the answer.
func raw(t *testing.T, at, say string) string {
	t.Helper()
	c, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = io.WriteString(c, say)
	b, _ := io.ReadAll(c)
	return string(b)
}

// A page gets the game's address for the host of its request, whatever the server's own address is.
func TestConnectInfo(t *testing.T) {
	cfg := config()
	cfg.Socket = http.NotFoundHandler()
	at := start(t, cfg)
	for host, want := range map[string][2]string{
		"localhost:8000":    {"127.0.0.1:4433", "ws://localhost:8000/netloop"},
		"LOCALHOST":         {"127.0.0.1:4433", "ws://LOCALHOST/netloop"},
		"127.0.0.1:8000":    {"127.0.0.1:4433", "ws://127.0.0.1:8000/netloop"},
		"game.example:8000": {"game.example:4433", "ws://game.example:8000/netloop"},
		"[::1]:8000":        {"[::1]:4433", "ws://[::1]:8000/netloop"},
		"[::1]":             {"[::1]:4433", "ws://[::1]/netloop"},
	} {
		resp, body := ask(t, "GET", "http://"+at+"/connect.json", "Host: "+host)
		if resp.Header.Get("Cache-Control") != "no-store" || resp.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%v", resp.Header)
		}
		var c Connect
		if err := json.Unmarshal([]byte(body), &c); err != nil {
			t.Fatal(err)
		}
		if c.Address != want[0] || c.WebSocket != want[1] {
			t.Errorf("%s: %s, %s", host, c.Address, c.WebSocket)
		}
	}
	_, body := ask(t, "GET", "http://"+at+"/connect.json", "Host: localhost")
	want := `{"address":"127.0.0.1:4433","path":"/netloop","certificateHashes":["AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="],` +
		`"webSocket":"ws://localhost/netloop","schema":{"name":"\u003carena\u003e","major":2,"minor":5,"fingerprint":"abcd"},"version":"v1.2.3","protocol":1}` + "\n"
	if body != want || cfg.Counts.Answered.Load() != 7 {
		t.Errorf("%s, want\n%s; %d are counted", body, want, cfg.Counts.Answered.Load())
	}
}

// The address of localhost depends on the game's own address.
func TestLocalhostIsWhereTheGameListens(t *testing.T) {
	for game, want := range map[string]string{"127.0.0.1": "127.0.0.1:1", "::1": "[::1]:1", "::": "127.0.0.1:1", "10.0.0.7": "127.0.0.1:1", "127.0.0.9": "127.0.0.9:1"} {
		f := Facts{Game: &net.UDPAddr{IP: net.ParseIP(game), Port: 1}}
		if got := f.addressFor("localhost:8000"); got != want {
			t.Errorf("the game at %s is at %s", game, got)
		}
	}
	if f := (Facts{}); f.addressFor("localhost") != "" {
		t.Error("a game that does not listen has an address")
	}
}

// A server without a WebSocket or a certificate to pin leaves them out.
func TestConnectInfoWithoutTransports(t *testing.T) {
	cfg := config()
	facts := cfg.Facts()
	facts.Hashes = nil
	cfg.Facts = func() Facts { return facts }
	_, body := ask(t, "GET", "http://"+start(t, cfg)+"/connect.json")
	if strings.Contains(body, "webSocket") || !strings.Contains(body, `"certificateHashes":[]`) {
		t.Error(body)
	}
}

// Pages of other servers may read /connect.json only if they may connect.
func TestConnectInfoIsForAllowedOrigins(t *testing.T) {
	cfg := config()
	cfg.Origins, _ = origin.Parse([]string{"https://example.org"})
	at := start(t, cfg)
	for from, want := range map[string]string{"https://example.org": "https://example.org", "https://evil.example": "", "null": "", "": "", "http://" + at: "http://" + at} {
		resp, _ := ask(t, "GET", "http://"+at+"/connect.json", "Origin: "+from)
		if got := resp.Header.Get("Access-Control-Allow-Origin"); got != want || resp.Header.Get("Vary") != "Origin" {
			t.Errorf("%q may read it: %q", from, got)
		}
	}
	if resp, _ := ask(t, "GET", "http://"+at+"/", "Origin: https://example.org"); resp.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Error("the page itself may be read by others")
	}
}

// A game without pages gets one that names the server, whatever the game's name is.
func TestTheServersOwnPage(t *testing.T) {
	cfg := config()
	cfg.Files = nil
	base := "http://" + start(t, cfg)
	resp, body := ask(t, "GET", base+"/", "Host: play.example")
	for _, part := range []string{"<h1>&lt;arena&gt;</h1>", "&lt;arena&gt; 2.5", "v1.2.3, wire protocol 1", "play.example:4433", `href="style.css"`} {
		if !strings.Contains(body, part) {
			t.Errorf("the page lacks %q:\n%s", part, body)
		}
	}
	if strings.ContainsAny(body, "{}") || strings.Contains(body, "<script") || resp.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("%v\n%s", resp.Header, body)
	}
	if resp, _ := ask(t, "GET", base+"/style.css"); resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/css; charset=utf-8" {
		t.Error(resp.Status)
	}
}

// damaged are pages of which one cannot be read.
type damaged struct{ fstest.MapFS }

func (d damaged) ReadFile(name string) ([]byte, error) {
	if name == "odd.thing" && d.MapFS["game.js"] == nil {
		return make([]byte, 256<<20), nil // Nobody touches it.
	}
	if name == "game.js" {
		return nil, errors.New(name + " is damaged")
	}
	return d.MapFS.ReadFile(name)
}

// Invalid pages are reported when the server starts, with a remedy.
func TestInvalidPagesAreReported(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	many := fstest.MapFS{"index.html": {}}
	for n := range static.MaxFiles {
		many[strconv.Itoa(n)] = &fstest.MapFile{}
	}
	for want, change := range map[string]func(*Config){
		"no index.html at its top": func(c *Config) { c.Files = fstest.MapFS{"web/index.html": {}} },
		"more than 4096 files":     func(c *Config) { c.Files = many },
		"game.js is damaged":       func(c *Config) { c.Files = damaged{pages()} },
		"or 256 MiB": func(c *Config) {
			large := damaged{pages()}
			delete(large.MapFS, "game.js")
			c.Files = large
		},
		"is in use: stop the process": func(c *Config) { c.Listen = taken.Addr().String() },
		"cannot listen on \"127.0.":   func(c *Config) { c.Listen = "127.0.0.1:99999" },
	} {
		cfg := config()
		change(&cfg)
		if s, err := Listen(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
			if err == nil {
				_ = s.Close()
			}
		}
	}
}

// With a certificate the pages are served over HTTPS and HTTP/1.1, which a WebSocket needs.
func TestEncrypted(t *testing.T) {
	pair, err := certificate.SelfSigned()
	if err != nil {
		t.Fatal(err)
	}
	cfg := config()
	cfg.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13}
	cfg.Socket = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) })
	at := start(t, cfg)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}}
	defer client.CloseIdleConnections()
	for path, want := range map[string]string{"/netloop": "HTTP/1.1", "/connect.json": `"webSocket":"wss://`} {
		resp, err := client.Get("https://" + at + path)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if !strings.Contains(string(b), want) || resp.ProtoMajor != 1 {
			t.Errorf("%s: %s %s", path, resp.Proto, b)
		}
	}
	if !cfg.Origins.Allows("https://"+at, at) || cfg.Origins.Allows("http://"+at, at) {
		t.Error("the page that is served may not connect, or one that is not served may")
	}
}

// A client that holds connections, with half a request in each, does not keep out other sites, and
// has a bounded number of them.
func TestHalfRequestsDoNotKeepOthersFromPages(t *testing.T) {
	cfg := config()
	at := start(t, cfg)
	for range 1000 {
		c, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\nX-Slow:")
	}
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DialContext: (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 9)}}).DialContext}}
	defer client.CloseIdleConnections()
	resp, err := client.Get("http://" + at + "/")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if n := cfg.Counts.Conns.Load() + cfg.Counts.Rate.Load(); resp.StatusCode != http.StatusOK || n < 1000-maxPerSite {
		t.Errorf("%s, and %d connections were closed", resp.Status, n)
	}
}

// A site that requests large files and does not read them does not keep out other sites.
func TestUnreadAnswersDoNotKeepOthersOut(t *testing.T) {
	large := make([]byte, 2<<20)
	_, _ = rand.NewChaCha8([32]byte{}).Read(large)
	cfg := config()
	cfg.Allow = nil // The connections of both sites together are as many as the rate limit admits.
	cfg.Files = fstest.MapFS{"index.html": {Data: []byte("play")}, "large.bin": {Data: large}}
	at := start(t, cfg)
	for site := range byte(MaxConns / maxPerSite) {
		from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, site)}}
		for range maxPerSite {
			c, err := from.Dial("tcp", at)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close() })
			_, _ = io.WriteString(c, "GET /large.bin HTTP/1.1\r\nHost: a\r\n\r\n")
			_, _ = c.Read(make([]byte, 1)) // It has begun, or was closed for another site.
		}
	}
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true, DialContext: (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 9)}}).DialContext,
	}}
	for n := range 10 {
		resp, err := client.Get("http://" + at + "/")
		if err != nil {
			t.Fatalf("request %d: %v", n, err)
		}
		_ = resp.Body.Close()
	}
}

// A request with a header or path that is too large gets status 431. The answer may be lost,
// because the server closes the connection.
func TestLargeRequestsAreRefused(t *testing.T) {
	at := start(t, config())
	for name, say := range map[string]string{
		"header": "GET / HTTP/1.1\r\nHost: a\r\nX-Large: " + strings.Repeat("x", 64<<10) + "\r\n\r\n",
		"path":   "GET /" + strings.Repeat("x", 64<<10) + " HTTP/1.1\r\nHost: a\r\n\r\n",
	} {
		if resp := raw(t, at, say); !strings.HasPrefix(resp, "HTTP/1.1 431 ") && resp != "" {
			t.Errorf("%s: %.60q", name, resp)
		}
	}
}

// Connections of one site are limited in rate, whatever their outcome.
func TestConnectionsComeAtARate(t *testing.T) {
	cfg := config()
	at := start(t, cfg)
	for cfg.Counts.Rate.Load() == 0 {
		if t.Context().Err() != nil {
			t.Fatal("nobody is too fast")
		}
		c, err := net.Dial("tcp", at)
		if err != nil {
			continue
		}
		_ = c.(*net.TCPConn).CloseWrite()
		_, _ = io.Copy(io.Discard, c) // Until the server has closed it, too.
		_ = c.Close()
	}
	if n, fast := cfg.Counts.Conns.Load(), cfg.Counts.Rate.Load(); n != 0 || fast != 1 {
		t.Errorf("%d have made room for others, and %d were too fast", n, fast)
	}
}

// A connection is read at its rate, however much data has arrived.
func TestAConnectionIsReadAtARate(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() {
		c, err := net.Dial("tcp", ln.Addr().String())
		if err == nil {
			_, _ = c.Write(make([]byte, 100<<10))
			_ = c.Close()
		}
	}()
	c, err := limitedListener{ln}.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	p := c.(*pacedConn)
	p.rate = rate.NewLimiter(1<<20, 50<<10)
	began := time.Now()
	n, err := io.Copy(io.Discard, struct{ io.Reader }{p})
	if took := time.Since(began); n != 100<<10 || err != nil || took < 40*time.Millisecond {
		t.Errorf("%d bytes, %v, in %v", n, err, took)
	}
}
