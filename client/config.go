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
	// Local is a server of this process, joined without a network: for a game whose player also
	// hosts it, or plays alone. [Dial] needs no address then. The server may have [netloop.Config]
	// Offline, and must run, or at least listen, for the game to admit the client.
	Local *netloop.Server
	// Room names the room to join. Empty is the server's default room.
	Room string
	// Ticket is a reserved seat in a room, see [netloop.Ticket], or the code of a private room
	// ([netloop.RoomSpec]). It selects the room, and Room is ignored.
	Ticket string
	// Spectate requests a spectator's seat: see [netloop.Client.Spectator]. With a Ticket, the
	// ticket decides the kind of seat.
	Spectate bool
	// Join holds the client's join parameters, as of the creation of the client. They are sent as
	// JSON, and the server's game reads them with Join.Params.
	Join any
	// Token proves the client's identity to the game's OnAdmit.
	Token string
	// Tokens, if set, returns the token of every dial, on the goroutine that dials: a server may
	// accept a token only once, and a reconnecting client needs another if its seat is gone. It
	// should return once ctx has ended. Its error fails [Dial]; a reconnecting client tries again.
	Tokens func(ctx context.Context) (string, error)
	// Reconnect configures the client's behaviour when its connection breaks. By default it
	// reconnects.
	Reconnect Reconnect
	// LostAfter is the time without a packet from the server after which the connection counts as
	// broken, from 1 s to 10 s; 0 is 5 s. Only time in which Step was called counts, at most 100 ms
	// between two calls: a program that hung must not lose its connection for that.
	LostAfter time.Duration
	// TLS sets the certificates that the client accepts. Nil accepts the development certificate of
	// servers on a loopback address, and otherwise the certificates that the system trusts.
	TLS *tls.Config
	// Transport selects the kind of connection. The zero value is QUIC; the others exist for
	// browsers, and for programs that simulate them.
	Transport Transport
	// QUICDatagrams makes all datagrams travel over QUIC, as [netloop.Config] QUICDatagrams does.
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
	// WebSocket is a WebSocket on the TCP port of the server's pages; a server without pages has
	// none.
	WebSocket Transport = transport.WebSocket
)

// Reconnect configures how a client reconnects after its connection has broken. The Client remains
// in use: its watchers, systems and objects are kept, reliable messages and calls wait, and [State]
// reports the progress. A server keeps the client's seat for a while ([netloop.RoomSpec],
// KeepDropped): a client that returns in time resumes with all of these. When the seat is gone,
// because that time is over or the server is another, the client joins anew: all objects despawn,
// then the objects that it sees now spawn; calls and messages in flight are lost, and its
// [Client.ID] changes.
//
// A close by the server or the game is no break: a client that is kicked, refused or replaced, or
// whose server closes, remains closed.
type Reconnect struct {
	// Off makes a broken connection the end of the client.
	Off bool
	// GiveUp is how long the client tries, from 1 s to 24 h; 0 is 60 s.
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
