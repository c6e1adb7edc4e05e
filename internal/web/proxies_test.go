package web

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
)

// The address of a request behind a configured proxy is the last entry that is not a proxy's.
// Headers of other peers, and other headers, are ignored.
func TestWhereARequestHasComeFrom(t *testing.T) {
	all, err := ParseProxies([]string{"127.0.0.1", "10.0.0.0/8", "::1", "fd00::/8"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, peer, header, value, want string }{
		{"a proxy's request", "127.0.0.1:9", "X-Forwarded-For", "203.0.113.7", "203.0.113.7:0"},
		{"with a port", "127.0.0.1:9", "X-Forwarded-For", "203.0.113.7:5", "203.0.113.7:5"},
		{"of IPv6", "[::1]:9", "X-Forwarded-For", "2001:db8::7", "[2001:db8::7]:0"},
		{"of IPv6 in brackets", "[fd00::1]:9", "X-Forwarded-For", "[2001:db8::7]", "[2001:db8::7]:0"},
		{"of IPv6 with a port", "127.0.0.1:9", "X-Forwarded-For", "[2001:db8::7]:5", "[2001:db8::7]:5"},
		{"a proxy that is seen by IPv6", "[::ffff:127.0.0.1]:9", "X-Forwarded-For", "203.0.113.7", "203.0.113.7:0"},
		{"the client has made up an entry", "127.0.0.1:9", "X-Forwarded-For", "198.51.100.1, 203.0.113.7", "203.0.113.7:0"},
		{"by two proxies", "127.0.0.1:9", "X-Forwarded-For", "198.51.100.1, 203.0.113.7, 10.1.2.3", "203.0.113.7:0"},
		{"by proxies alone", "127.0.0.1:9", "X-Forwarded-For", "10.1.2.3", "10.1.2.3:0"},
		{"of nowhere", "127.0.0.1:9", "X-Forwarded-For", "203.0.113.7, unknown", "127.0.0.1:9"},
		{"nothing is said", "127.0.0.1:9", "X-Forwarded-For", "", "127.0.0.1:9"},
		{"another header", "127.0.0.1:9", "Forwarded", "for=203.0.113.7", "127.0.0.1:9"},
		{"no proxy", "192.0.2.1:9", "X-Forwarded-For", "203.0.113.7", "192.0.2.1:9"},
	} {
		if got := all.client(netip.MustParseAddrPort(c.peer), http.Header{c.header: {c.value}}); got.String() != c.want {
			t.Errorf("%s: %v, want %s", c.name, got, c.want)
		}
	}
	two := http.Header{"X-Forwarded-For": {"203.0.113.7", "10.1.2.3"}}
	if got := all.client(netip.MustParseAddrPort("127.0.0.1:9"), two); got.String() != "203.0.113.7:0" {
		t.Errorf("by two headers: %v", got)
	}
	for _, text := range []string{"", "proxy", "10.0.0.0/33", "127.0.0.1:80"} {
		if _, err := ParseProxies([]string{text}); err == nil {
			t.Errorf("%q is taken for a proxy", text)
		}
	}
}

// Pages behind a proxy get its URL, and the browser's own address is used.
func TestPagesBehindAProxy(t *testing.T) {
	for name, proxy := range map[string]string{"it is named": "127.0.0.1", "another one is": "127.0.0.2"} {
		cfg := config()
		var from net.Addr
		cfg.Scheme, cfg.Host, cfg.Socket = "https", "play.example.org", http.NotFoundHandler()
		cfg.Refused = func(at net.Addr) *Refusal { from = at; return nil }
		cfg.Proxies, _ = ParseProxies([]string{proxy})
		a, body := ask(t, "GET", "http://"+start(t, cfg)+"/connect.json", "X-Forwarded-For: 203.0.113.7", "Host: 127.0.0.1:8000")
		var info Connect
		if err := json.Unmarshal([]byte(body), &info); err != nil || info.WebSocket != "wss://play.example.org/netloop" || info.Address != "play.example.org:4433" {
			t.Errorf("%s: %s, %v", name, body, err)
		}
		if csp := a.Header.Get("Content-Security-Policy"); !strings.Contains(csp, " wss://play.example.org/netloop;") {
			t.Errorf("%s: %s", name, csp)
		}
		if told := strings.HasPrefix(from.String(), "203.0.113.7:"); told != (proxy == "127.0.0.1") {
			t.Errorf("%s: the request has come from %v", name, from)
		}
	}
}

// Each site behind a proxy is charged for its own requests, at the rate of connections.
func TestSitesBehindAProxyPayForThemselves(t *testing.T) {
	cfg := config()
	cfg.Proxies, _ = ParseProxies([]string{"127.0.0.1"})
	h, err := newHandler(cfg, func(at net.Addr) bool { return strings.HasPrefix(at.String(), "203.0.113.7:") })
	if err != nil {
		t.Fatal(err)
	}
	base := serveWith(t, cfg, h)
	for from, want := range map[string]int{"203.0.113.7": 200, "203.0.113.8": 503} {
		if a, _ := ask(t, "GET", base+"/", "X-Forwarded-For: "+from); a.StatusCode != want || (a.Header.Get("Retry-After") == "1") != (want == 503) {
			t.Errorf("%s: %s, %v", from, a.Status, a.Header)
		}
	}
}

// A proxy's connections count for the sites of its clients: a proxy may have more than PerSite, but
// each of its sites may not.
func TestConnectionsBehindAProxyAreBoundedForEachSite(t *testing.T) {
	cfg := config()
	cfg.Proxies, _ = ParseProxies([]string{"127.0.0.1"})
	at := start(t, cfg)
	var conns []net.Conn
	for range maxPerSite + 2 {
		c, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		conns = append(conns, c)
	}
	asks := func(c net.Conn, from string, want int) {
		t.Helper()
		_, _ = io.WriteString(c, "HEAD / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: "+from+"\r\n\r\n")
		resp, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: http.MethodHead})
		if err != nil {
			t.Fatalf("%s: %v", from, err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			t.Fatalf("%s: %s, want %d", from, resp.Status, want)
		}
	}
	asks(conns[maxPerSite+1], "203.0.113.8", 200) // The newest: the server has all of them.
	for _, c := range conns[:maxPerSite] {
		asks(c, "203.0.113.7", 200)
	}
	asks(conns[maxPerSite], "203.0.113.7", 503)
	if n := cfg.Counts.Conns.Load(); n != 1 {
		t.Errorf("%d connections without room are counted", n)
	}
}

// Pages leave half of the files that a process may open to other uses, such as the admin listener.
func TestPagesLeaveFilesForOthers(t *testing.T) {
	for files, want := range map[uint64]int{0: 1, 64: 32, 256: 128, 512: MaxConns, 1 << 62: MaxConns} {
		if got := connsFor(files, nil); got != want {
			t.Errorf("of %d files pages take %d, want %d", files, got, want)
		}
	}
	if got := connsFor(0, errors.ErrUnsupported); got != MaxConns {
		t.Errorf("of an unknown number they take %d", got)
	}
}

// serveWith serves a handler instead of the server's own.
func serveWith(t *testing.T, cfg Config, h http.Handler) string {
	t.Helper()
	s, err := Listen(cfg)
	if err != nil {
		t.Fatal(err)
	}
	s.http.Handler = h
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
	return "http://" + s.Addr().String()
}
