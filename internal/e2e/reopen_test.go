package e2e_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/token"
	"github.com/netloop/netloop/netlooptest"
)

// A client reconnects to a room that has ended meanwhile. It joins anew: the game is asked to
// open the room if the client has a valid token, and the client then joins. If the old room was
// private, its code still admits the client.
func TestAClientReconnectsToAReopenedRoom(t *testing.T) {
	service, auth := login(t)
	for what, c := range map[string]struct {
		tokens, private bool
		fresh           bool // the client gets a token for each connection
		code            netloop.Code
	}{
		"without tokens":              {},
		"a private room":              {private: true},
		"with a token that was used":  {tokens: true, code: netloop.CodeUnauthenticated},
		"with a token of its own":     {tokens: true, fresh: true},
		"a private room, with tokens": {tokens: true, fresh: true, private: true},
	} {
		t.Run(what, func(t *testing.T) {
			var asked []string
			var joined, left int
			game := roomsGame{script: func(r *netloop.Room) {
				r.OnJoin(func(*netloop.Tick, *netloop.Client) error { joined++; return nil })
				r.OnLeave(func(*netloop.Tick, *netloop.Client, *netloop.Closed) { left++ })
			}, asked: func(name string) (netloop.RoomSpec, error) {
				asked = append(asked, name)
				return netloop.RoomSpec{Kind: "table"}, nil
			}}
			options := []netlooptest.Option{}
			if c.tokens {
				options = append(options, netlooptest.Auth(auth))
			}
			w := netlooptest.New(t, game, options...)
			spec := table("oak")
			spec.Private = c.private
			r := openRoom(t, w, spec)
			cfg := client.Config{Room: "oak"}
			if c.private {
				spec := netloop.RoomSpec{}
				r.Tick(func(tick *netloop.Tick) { spec = tick.Room().Spec() })
				cfg.Ticket = spec.Code
			}
			w.Step(1)
			at := now(w)
			sign := func(context.Context) (string, error) {
				return signedToken(t, service, token.Grant{Subject: "ann", Room: "oak", From: at, For: time.Minute}), nil
			}
			switch {
			case c.fresh:
				cfg.Tokens = sign
			case c.tokens:
				cfg.Token, _ = sign(t.Context())
			}
			c1 := w.JoinAs(cfg, netlooptest.Link{Delay: 5 * time.Millisecond})
			w.Step(60)
			plays(t, "at first", c1, "oak")
			w.Freeze(c1)
			w.Break(c1)
			w.Step(5)
			r.Drain(0, netloop.CodeClosing, "over")
			w.Step(30)
			if r.Ended() == nil {
				t.Fatal("the room has not ended")
			}
			w.Thaw(c1)
			w.Step(2 * 60)
			if c.code != 0 {
				wasRefused(t, what, c1, c.code)
				if len(asked) > 0 {
					t.Errorf("the game was asked to open %q for a client without a valid token", asked)
				}
				return
			}
			plays(t, "again", c1, "oak")
			if !slices.Equal(asked, []string{"oak"}) || joined != 2 || left != 1 {
				t.Errorf("the game was asked to open %q; clients have joined %d times and left %d times", asked, joined, left)
			}
		})
	}
}
