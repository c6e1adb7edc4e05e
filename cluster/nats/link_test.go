package nats

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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
		c.main.onRefused(nil, &net.OpError{Op: "read", Net: "tcp", Source: &net.TCPAddr{Port: port}, Addr: addr, Err: errors.New("timeout")})
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
	c.main.onConnect(&nats.Conn{})
	attempt(1, "127.0.0.1:4222")
	lines("the next outage", maxLogged+1)
}

// A member says in its health that it does not hear the others, although its calls work.
func TestTheHealthNamesMissingNews(t *testing.T) {
	c, err := New(Config{URL: "nats://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	c.joined, c.lease.confirmed, c.lease.claimed = true, c.now()+1, true
	c.main.onConnect(&nats.Conn{})
	if h := c.Health(); h.OK || !strings.Contains(h.Text, "missing in lists") {
		t.Errorf("without news: %+v", h)
	}
	c.news.deniedSubscription = errors.New("a missing permission")
	c.news.onConnect(&nats.Conn{}) // Whether it is still missing is yet unknown.
	if h := c.Health(); !h.OK {
		t.Errorf("with both connections: %+v", h)
	}
}

// arrivals is a connection with messages of one size that arrive at given times.
type arrivals struct {
	net.Conn
	at    []time.Duration
	size  int
	begin time.Time
	reads []time.Duration
}

func (a *arrivals) Read(b []byte) (int, error) {
	time.Sleep(a.at[0] - time.Since(a.begin))
	now, n := time.Since(a.begin), 0
	for len(a.at) > 0 && a.at[0] <= now && n+a.size <= len(b) {
		a.at, n = a.at[1:], n+a.size
	}
	a.reads = append(a.reads, now)
	return n, nil
}

// Messages wait for each other for the interval, and none waits longer; more of them than one read
// takes are read at once.
func TestNewsAreReadTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ms = time.Millisecond
		from := &arrivals{size: 10, begin: time.Now(), at: []time.Duration{5 * ms, 6 * ms, 7 * ms, 80 * ms, 104 * ms, 104 * ms, 104 * ms, 104 * ms, 104 * ms, 500 * ms, 501 * ms}}
		c := &newsConn{Conn: from, interval: 50 * ms}
		buf := make([]byte, 20)
		for len(from.at) > 0 {
			if _, err := c.Read(buf); err != nil {
				t.Fatal(err)
			}
		}
		want := []time.Duration{5 * ms, 55 * ms, 80 * ms, 130 * ms, 130 * ms, 130 * ms, 500 * ms, 550 * ms}
		if !slices.Equal(from.reads, want) {
			t.Errorf("reads at %v, want %v", from.reads, want)
		}
	})
}
