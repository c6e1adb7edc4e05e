package client

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/transport"
)

// Config is what a client needs to connect. Only Schema must be set.
type Config struct {
	// Schema is the game's: the same that its server uses, or that of another build
	// of the game, to which the client then adapts.
	Schema *netloop.Schema
	// Room names the room to join. Empty is the server's default room.
	Room string
	// Join is what the client says about itself. It travels as JSON, and the
	// server's game reads it with Join.Params.
	Join any
	// Token is what the client proves itself with, to the game's OnAdmit.
	Token string
	// TLS says which certificates the client accepts. Nil accepts the development
	// certificate of servers on a loopback address, and elsewhere what the system
	// trusts.
	TLS *tls.Config
	// Log takes what the client has to say. Nil is silent.
	Log *slog.Logger
}

// greeting is how the client introduces itself.
func (c *Client) greeting() (transport.Greeting, error) {
	h := c.schema.Hello()
	h.Room, h.Token, h.Build = c.cfg.Room, c.cfg.Token, "netloop-go"
	if c.cfg.Join != nil {
		params, err := json.Marshal(c.cfg.Join)
		if err != nil {
			return transport.Greeting{}, fmt.Errorf("client: Config.Join: %w", err)
		}
		h.Params = params
	}
	return transport.Greeting{Hello: h, Adapt: c.adapt}, nil
}
