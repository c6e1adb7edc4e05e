package client

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/transport"
)

// Config is what a client needs to connect. Only Schema must be set.
type Config struct {
	// Schema is the game's: the same that its server uses, or that of another build
	// of the game, to which the client then adapts.
	Schema *netloop.Schema
	// Local is a server of this process, to be joined without a network: for a game that somebody
	// hosts and plays at once, or plays alone. [Dial] needs no address then. The server may be one
	// with [netloop.Config] Offline, and must run, or at least listen, for the game to let the
	// client in.
	Local *netloop.Server
	// Room names the room to join. Empty is the server's default room.
	Room string
	// Ticket is a seat that is reserved in a room, see [netloop.Ticket], or the code of a private
	// one ([netloop.RoomSpec]). It names the room, whatever Room says.
	Ticket string
	// Spectate asks for a seat to watch from: see [netloop.Client.Spectator]. With a Ticket that
	// says what the seat is.
	Spectate bool
	// Join is what the client says about itself, as it is when the client is made. It travels as
	// JSON, and the server's game reads it with Join.Params.
	Join any
	// Token is what the client proves itself with, to the game's OnAdmit.
	Token string
	// Tokens, if set, is asked for the token of every dial, on the goroutine that dials: a server
	// may take a token only once, and a client that comes back needs another if its place is gone.
	// It should return once ctx has ended. Its error fails [Dial]; when a client comes back, it
	// is tried again.
	Tokens func(ctx context.Context) (string, error)
	// Reconnect says what the client does when its connection breaks. By default it comes back.
	Reconnect Reconnect
	// LostAfter is for how long nothing may be heard from the server before the connection counts
	// as broken, from 1 s to 10 s; 0 is 5 s. Only time in which Step was called counts, of which
	// more than 100 ms between two calls is left out: a program that hung was not left alone.
	LostAfter time.Duration
	// TLS says which certificates the client accepts. Nil accepts the development
	// certificate of servers on a loopback address, and elsewhere what the system
	// trusts.
	TLS *tls.Config
	// Transport is what the client connects over. The zero value is QUIC; the others are there for
	// browsers, and for programs that stand in for them.
	Transport Transport
	// Log takes what the client has to say. Nil is silent.
	Log *slog.Logger
}

// Transport is what a client connects over. What is said over it is the same on each.
type Transport = transport.Carrier

// The transports.
const (
	// QUIC is a QUIC connection of the client's own.
	QUIC = transport.QUIC
	// WebTransport is a WebTransport session, on the same UDP port of the server.
	WebTransport = transport.WebTransport
	// WebSocket is a WebSocket, on the TCP port of the server's pages, where there is one.
	WebSocket = transport.WebSocket
)

// Reconnect is how a client comes back whose connection has broken. The Client goes on: its
// watchers, systems and objects stay, reliable messages wait, calls go on waiting for their
// answers, and [State] tells. A server keeps the client's place for a while ([netloop.RoomSpec],
// KeepDropped): then both go on where they were. When the place is gone, because that time is over
// or the server is another, the client joins anew: all objects despawn, then those that it sees now
// spawn; calls and messages under way are lost, and its [Client.ID] is another.
//
// What the server or the game has said is no break: a client that is kicked, refused or replaced,
// or whose server closes, stays closed.
type Reconnect struct {
	// Off makes a broken connection the end of the client.
	Off bool
	// GiveUp is for how long it is tried, from 1 s to 24 h; 0 is 60 s.
	GiveUp time.Duration
}

// The defaults and bounds of Config.
const (
	defaultGiveUp    = time.Minute
	leastGiveUp      = time.Second
	mostGiveUp       = 24 * time.Hour
	defaultLostAfter = 5 * time.Second
	leastLostAfter   = time.Second
	mostLostAfter    = 10 * time.Second // QUIC itself waits no longer
)

// complete fills in the defaults, or returns an error that names the field.
func (cfg *Config) complete() error {
	if cfg.Schema == nil {
		return errors.New("client: Config.Schema: set it to the game's schema")
	}
	for _, d := range []struct {
		name                string
		value               *time.Duration
		least, most, preset time.Duration
	}{
		{"Reconnect.GiveUp", &cfg.Reconnect.GiveUp, leastGiveUp, mostGiveUp, defaultGiveUp},
		{"LostAfter", &cfg.LostAfter, leastLostAfter, mostLostAfter, defaultLostAfter},
	} {
		if *d.value = cmp.Or(*d.value, d.preset); *d.value < d.least || *d.value > d.most {
			return fmt.Errorf("client: Config.%s: %v: use %v to %v, or 0 for %v", d.name, *d.value, d.least, d.most, d.preset)
		}
	}
	if !built[cfg.Transport] {
		return fmt.Errorf("client: Config.Transport: %v: %w", cfg.Transport, errors.ErrUnsupported)
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return nil
}
