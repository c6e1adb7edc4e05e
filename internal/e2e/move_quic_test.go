package e2e_test

import (
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
)

// Over QUIC a client moves to another room and back over one connection.
func TestAClientMovesOverQUIC(t *testing.T) {
	s, _ := serve(t, lobbyGame(nil), 60)
	if _, err := s.OpenRoom(t.Context(), table("table")); err != nil {
		t.Fatal(err)
	}
	c := connect(t, s.Addr().String())
	for i, name := range []string{"", "table", "", "table"} {
		if i > 0 {
			all, err := s.Reserve(t.Context(), name, netloop.Reservation{})
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Move(all[0]); err != nil {
				t.Fatal(err)
			}
		}
		waitFor(t, func() bool {
			c.Step(5 * time.Millisecond)
			return c.Room() == name && c.State().Phase == client.Playing
		})
	}
	if stats := c.Stats(); stats.Drops != 0 || stats.Malformed != 0 {
		t.Errorf("%d connections broke, %d packets were malformed", stats.Drops, stats.Malformed)
	}
}
