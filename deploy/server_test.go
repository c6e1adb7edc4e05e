package deploy_test

import (
	"context"
	"testing"

	"github.com/netloop/netloop"
)

// empty is a game without systems and objects; its ticks run nevertheless.
type empty struct{ schema *netloop.Schema }

func (g empty) Schema() *netloop.Schema  { return g.schema }
func (g empty) Open(*netloop.Room) error { return nil }

// serve runs a server until the test ends and returns the address of its admin listener.
func serve(t *testing.T) string {
	t.Helper()
	s, err := netloop.New(netloop.Config{Listen: "127.0.0.1:0", Admin: "127.0.0.1:0"}, empty{netloop.NewSchema("empty", 1, 0)})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s.AdminAddr().String()
}
