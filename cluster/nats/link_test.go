package nats

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
)

// Attempts to connect repeat several times a second for as long as NATS is away. Each reason is
// logged once until the next connection, although each attempt has another port and address.
func TestReasonsOfAnOutageAreLoggedOnce(t *testing.T) {
	var log bytes.Buffer
	c, err := New(Config{URL: "nats://127.0.0.1:1", Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	lines := func(when string, want int) {
		t.Helper()
		if got := strings.Count(log.String(), "NATS is not connected"); got != want {
			t.Errorf("%s: %d lines, want %d:\n%s", when, got, want, log.String())
		}
	}
	attempt := func(port int, to string) {
		addr, err := net.ResolveTCPAddr("tcp", to)
		if err != nil {
			t.Fatal(err)
		}
		c.onRefused(nil, &net.OpError{Op: "read", Net: "tcp", Source: &net.TCPAddr{Port: port}, Addr: addr, Err: errors.New("timeout")})
	}
	for port := range 100 {
		attempt(port, "127.0.0.1:4222")
		attempt(port, "127.0.0.1:4223")
	}
	lines("two addresses", 2)
	for port := range 100 {
		attempt(port, fmt.Sprint("127.0.0.1:", 5000+port))
	}
	lines("many addresses", maxLogged)
	c.onConnect(&nats.Conn{})
	attempt(1, "127.0.0.1:4222")
	lines("the next outage", maxLogged+1)
}
