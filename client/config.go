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

// Config configures a client. Only Schema must be set.
type Config struct {
	// Schema is the schema of the game. If the server runs another build of the game, the client
	// adapts to the schema of that build.
	Schema *netloop.Schema
	// Local is a server in this process, which the client joins without a network: for a game that
	// the player also hosts, or plays alone. [Dial] needs no address then. The server may have
	// [netloop.Config] Offline, and must run, or at least listen, for the game to admit the client.
	Local *netloop.Server
	// Room names the room to join. Empty: the server's default room.
	Room string
	// Ticket is a reserved seat in a room, see [netloop.Ticket], or the code of a private room
	// ([netloop.RoomSpec]). It selects the room, and Room is ignored.
	Ticket string
	// Spectate requests a spectator's seat: see [netloop.Client.Spectator]. With a Ticket, the
	// ticket decides the kind of seat.
	Spectate bool
	// Join holds the client's join parameters, which are encoded as JSON when the client is
	// created. The server's game reads them with Join.Params.
	Join any
	// Token proves the client's identity to the game's OnAdmit.
	Token string
	// Tokens, if set, returns the token for each attempt to connect: a server may accept a token
	// only once, and a reconnecting client needs another token if its seat is gone. It is called on
	// the goroutine of the attempt, and should return when ctx ends. If it returns an error, [Dial]
	// fails; a reconnecting client tries again.
	Tokens func(ctx context.Context) (string, error)
	// Reconnect configures the client's behaviour when it loses its connection. By default it
	// reconnects.
	Reconnect Reconnect
	// LostAfter is the time without a packet from the server after which the connection counts as
	// lost, from 1 s to 10 s; 0: 5 s. At most 100 ms between two calls of Step are counted, so that
	// a program that hung does not lose its connection for this reason.
	LostAfter time.Duration
	// TLS sets the certificates that the client accepts. Nil accepts the development certificate of
	// servers on a loopback address, and otherwise the certificates that the system trusts.
	TLS *tls.Config
	// Transport selects the kind of connection. The zero value is QUIC; the others exist for
	// browsers, and for programs that simulate them.
	Transport Transport
	// QUICDatagrams sends all datagrams over QUIC, as [netloop.Config] QUICDatagrams does.
	QUICDatagrams bool
	// Log receives the client's log. Nil discards it.
	Log *slog.Logger
}

// Transport is a kind of connection. The protocol is the same over each. String and MarshalText
// return its name, such as "webtransport", and UnmarshalText reads it.
type Transport = transport.Kind

// The transports.
const (
	// QUIC is netloop's protocol directly on a QUIC connection, without HTTP.
	QUIC Transport = transport.QUIC
	// WebTransport is a WebTransport session, on the same UDP port of the server.
	WebTransport Transport = transport.WebTransport
	// WebSocket is a WebSocket on the TCP port of the server's pages; a server without pages does
	// not support it.
	WebSocket Transport = transport.WebSocket
)

// Reconnect configures how a client reconnects after it has lost its connection. The Client remains
// in use: its watchers, systems and objects are kept, reliable messages and calls wait, and [State]
// reports the progress. A server keeps the client's seat for a while ([netloop.RoomSpec],
// KeepDropped): a client that returns in time resumes with all of these. If the seat is gone,
// because this time is over or because it is another server, the client joins again: all objects
// despawn, then the currently visible objects spawn; calls and messages in flight are lost, and
// [Client.ID] changes.
//
// If the server or the game closes the connection, the client does not reconnect: a client that is
// kicked, refused or replaced, or whose server closes, remains closed.
type Reconnect struct {
	// Off disables reconnecting: the client ends when it loses its connection.
	Off bool
	// GiveUp is the time for which the client tries to reconnect, from 1 s to 24 h; 0: 60 s.
	GiveUp time.Duration
}

// The defaults and limits of Config.
const (
	defaultGiveUp    = time.Minute
	minGiveUp        = time.Second
	maxGiveUp        = 24 * time.Hour
	defaultLostAfter = 5 * time.Second
	minLostAfter     = time.Second
	maxLostAfter     = 10 * time.Second // QUIC itself waits no longer
)

// complete sets the defaults, or returns an error that names the field.
func (cfg *Config) complete() error {
	if cfg.Schema == nil {
		return errors.New("client: Config.Schema: set it to the game's schema")
	}
	for _, d := range []struct {
		name                string
		value               *time.Duration
		least, most, preset time.Duration
	}{
		{"Reconnect.GiveUp", &cfg.Reconnect.GiveUp, minGiveUp, maxGiveUp, defaultGiveUp},
		{"LostAfter", &cfg.LostAfter, minLostAfter, maxLostAfter, defaultLostAfter},
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
