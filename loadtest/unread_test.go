package loadtest_test

import (
	"strings"
	"testing"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/examples/arena"
	arenav1 "github.com/netloop/netloop/examples/arena/proto/arena/v1"
	"github.com/netloop/netloop/loadtest"
)

// chatter is an arena that sends reliable messages, 100 kB/s to each client.
type chatter struct{ *arena.Game }

func (g chatter) Open(r *netloop.Room) error {
	r.On(netloop.Update, "test.chatter", func(t *netloop.Tick) {
		for range 8 {
			arena.Said.Send(t, netloop.Everyone(), &arenav1.Said{Name: "test", Text: strings.Repeat("x", 200)})
		}
	})
	return g.Game.Open(r)
}

// A server closes clients that leave their sockets unread, over QUIC and a WebSocket, when its
// queue for them is full, defers their state until then, and keeps all others. The load client
// counts them apart.
func TestAServerClosesSlowReaders(t *testing.T) {
	s, _ := serve(t, netloop.Config{Web: "127.0.0.1:0"}, chatter{arena.New()})
	before := scrape(t, s)
	code, r, stderr := result(t, t.Context(), s, "--web", s.WebAddr().String(), "--transport", "webtransport=1,quic=1,websocket=1", "--clients", "8", "--slow-readers", "25%", "--warmup", "300ms", "--duration", "3s")
	all := scrape(t, s)
	grown := func(series string) float64 { return all[series] - before[series] }
	closed, deferred := grown(`netloop_disconnects_total{code="read too slowly"}`), grown(`netloop_snapshots_deferred_total{reason="window_closed"}`)
	if closed != 2 || deferred == 0 {
		t.Errorf("%v clients are closed as slow, %v snapshots are deferred", closed, deferred)
	}
	want := loadtest.Clients{Wanted: 8, Connected: 8, Verifying: 6, SlowReaders: 2, SlowDrops: r.Clients.SlowDrops}
	if r.Clients != want || !r.Converged || code != 0 && !r.Saturated {
		t.Errorf("exit %d, %+v: %s", code, r.Clients, stderr)
	}
}
