package client

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/netloop/netloop"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// Config is what a client needs to connect. Only Schema must be set.
type Config struct {
	// Schema is the game's, the same value that its server uses.
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

// hello is the first thing that the client says.
func (c *Client) hello() (*netloopv1.Hello, error) {
	h := c.schema.Hello()
	h.Room, h.Token, h.Build = c.cfg.Room, c.cfg.Token, "netloop-go"
	if c.cfg.Join != nil {
		params, err := json.Marshal(c.cfg.Join)
		if err != nil {
			return nil, fmt.Errorf("client: Config.Join: %w", err)
		}
		h.Params = params
	}
	return h, nil
}
