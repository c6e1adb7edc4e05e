//go:build unix

package embed_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/cluster/nats"
	"github.com/netloop/netloop/cluster/nats/embed"
)

// benchGame is a game without content.
type benchGame struct{ schema *netloop.Schema }

func (g benchGame) Schema() *netloop.Schema  { return g.schema }
func (benchGame) Open(r *netloop.Room) error { return nil }

var benchSchema = netloop.NewSchema("bench", 1, 0)

// benchServers starts two servers of one cluster, and returns them when each knows the other.
func benchServers(b *testing.B) (x, y *netloop.Server) {
	b.Helper()
	hub, err := embed.Start(embed.Config{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(hub.Close)
	run := func() *netloop.Server {
		via, err := nats.New(nats.Config{URL: hub.URL()})
		if err != nil {
			b.Fatal(err)
		}
		s, stop := serve(b, netloop.Config{Offline: true, MaxRooms: 100_000, Cluster: netloop.Cluster{Via: via}})
		b.Cleanup(stop)
		return s
	}
	x, y = run(), run()
	for late := time.Now().Add(10 * time.Second); ; {
		_, err := x.PlaceRoom(b.Context(), netloop.RoomSpec{Name: "first", Place: netloop.Place{Server: y.ID()}})
		if err == nil {
			return x, y
		}
		if time.Now().After(late) {
			b.Fatal(err)
		}
	}
}

// BenchmarkOpenElsewhere opens rooms on another server.
func BenchmarkOpenElsewhere(b *testing.B) {
	x, y := benchServers(b)
	var all []time.Duration
	for i := 0; b.Loop(); i++ {
		spec := netloop.RoomSpec{Name: fmt.Sprint("room ", i), Rate: netloop.Hz(1), Sleep: true, Place: netloop.Place{Server: y.ID()}}
		began := time.Now()
		if _, err := x.PlaceRoom(b.Context(), spec); err != nil {
			b.Fatal(err)
		}
		all = append(all, time.Since(began))
	}
	report(b, all)
}

// BenchmarkReserveElsewhere reserves seats of a room of another server.
func BenchmarkReserveElsewhere(b *testing.B) {
	x, _ := benchServers(b)
	var all []time.Duration
	for b.Loop() {
		began := time.Now()
		if _, err := x.Reserve(b.Context(), "first", netloop.Reservation{TTL: time.Millisecond}); err != nil {
			b.Fatal(err)
		}
		all = append(all, time.Since(began))
	}
	report(b, all)
}

// serve runs a server until stop is called.
func serve(b *testing.B, cfg netloop.Config) (s *netloop.Server, stop func()) {
	b.Helper()
	s, err := netloop.New(cfg, benchGame{benchSchema})
	if err != nil {
		b.Fatal(err)
	}
	if err := s.Listen(); err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	return s, func() {
		cancel()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	}
}
