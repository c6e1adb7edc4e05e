package origin

import (
	"net"
	"os"
	"testing"
)

// Listed pages, pages of the server itself, and programs are admitted.
func TestWhichPagesComeIn(t *testing.T) {
	listed, err := Parse([]string{"https://Example.org", "http://play.example.org:8080/"})
	if err != nil {
		t.Fatal(err)
	}
	anybody, err := Parse([]string{Any})
	if err != nil {
		t.Fatal(err)
	}
	machine, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	var here, everywhere, lan, open, proxied Set
	open.Serves("http", &net.TCPAddr{IP: net.IPv6zero, Port: 8080})
	proxied.Serves("http", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080})
	if scheme, host, err := proxied.Public("https://play.example/"); scheme != "https" || host != "play.example" || err != nil {
		t.Fatal(scheme, host, err)
	}
	if scheme, host, err := proxied.Public("http://10.0.0.7"); scheme != "http" || host != "10.0.0.7" || err != nil {
		t.Fatal(scheme, host, err)
	}
	here.Serves("http", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080})
	everywhere.Serves("https", &net.TCPAddr{IP: net.IPv6zero, Port: 443})
	lan.Serves("http", &net.TCPAddr{IP: net.IPv4(10, 0, 0, 7), Port: 80})
	lan.Serves("https", &net.UnixAddr{Name: "@"})
	for _, c := range []struct {
		name         string
		set          *Set
		origin, host string
		want         bool
	}{
		{"a program, where no page may", nil, "", "game:4433", true},
		{"a page, where nothing is said", nil, "https://game", "game:4433", false},
		{"a page, where no page may", new(Set), "https://game", "game:4433", false},
		{"listed, the usual port", listed, "https://example.org:443", "game", true},
		{"listed, written otherwise", listed, "https://EXAMPLE.org", "game", true},
		{"listed, another port", listed, "https://example.org:444", "game", false},
		{"listed, another scheme", listed, "http://example.org", "game", false},
		{"listed with a port", listed, "http://play.example.org:8080", "game", true},
		{"a name that ends alike", listed, "https://evil-example.org", "game", false},
		{"a name that begins alike", listed, "https://example.org.evil", "game", false},
		{"a user who is named alike", listed, "https://example.org@evil", "game", false},
		{"more than an origin", listed, "https://example.org/page", "game", false},
		{"a sandboxed frame", listed, "null", "game", false},
		{"a file", listed, "file://", "game", false},
		{"an application", listed, "app://example.org", "game", false},
		{"anybody", anybody, "https://evil", "game", true},
		{"anybody but nonsense", anybody, "null", "game", false},
		{"own page", &here, "http://127.0.0.1:8080", "127.0.0.1:4433", true},
		{"own page by another local name", &here, "http://localhost:8080", "127.0.0.1:4433", true},
		{"own page by IPv6", &here, "http://[::1]:8080", "[::1]:4433", true},
		{"another page of this machine", &here, "http://localhost:3000", "localhost:4433", false},
		{"a page of another machine", &here, "http://10.0.0.7:8080", "127.0.0.1:4433", false},
		{"own page, but encrypted", &here, "https://localhost:8080", "localhost:4433", false},
		{"a page of a foreign name that resolves to this machine", &here, "http://evil:8080", "evil:8080", false},
		{"a page of a foreign name, though served to all", &open, "http://evil:8080", "evil:8080", false},
		{"own page by an address, served to all", &open, "http://10.0.0.7:8080", "10.0.0.7:8080", true},
		{"own page by the name of this machine", &open, "http://" + machine + ":8080", machine + ":8080", true},
		{"a page by the name of this machine, which others cannot reach", &here, "http://" + machine + ":8080", machine + ":8080", false},
		{"own page behind a proxy, by WebSocket", &proxied, "https://play.example", "127.0.0.1:8080", true},
		{"own page behind a proxy, by WebTransport", &proxied, "https://play.example", "play.example:4433", true},
		{"another page behind the proxy", &proxied, "https://evil.example", "evil.example", false},
		{"a foreign page that says it connects here", &here, "http://evil:8080", "localhost:4433", false},
		{"own page by the name that was asked for", &everywhere, "https://game.example", "game.example:4433", true},
		{"own page by another name than the connection's", &everywhere, "https://evil.example", "game.example:4433", false},
		{"own page of this machine, served to all", &everywhere, "https://localhost", "127.0.0.1", true},
		{"own page by a local name, played elsewhere", &everywhere, "https://localhost", "game.example", false},
		{"own page by its address, played by a name", &lan, "http://10.0.0.7", "game.example:4433", true},
		{"a page at no port, where another is served without one", &lan, "https://game.example:0", "game.example", false},
		{"a local page, where none is served", &lan, "http://localhost", "127.0.0.1", false},
	} {
		if got := c.set.Allows(c.origin, c.host); got != c.want {
			t.Errorf("%s: %q to %q: %v", c.name, c.origin, c.host, got)
		}
	}
}

// An invalid origin is refused when the server starts.
func TestInvalidOrigins(t *testing.T) {
	for _, text := range []string{"", "example.org", "https://", "https://example.org/x", "https://u@example.org", "https://a b", "ftp://example.org", "https://example.org?x", "http://[::1"} {
		if s, err := Parse([]string{text}); err == nil {
			t.Errorf("%q: %v", text, s)
		}
		if _, _, err := new(Set).Public(text); err == nil {
			t.Errorf("%q is a URL of the server", text)
		}
	}
	if _, _, err := new(Set).Public("ftp://example.org:21"); err == nil {
		t.Error("the server has a URL without pages")
	}
}
