package quicnet

import (
	"context"
	"errors"

	"github.com/quic-go/quic-go"

	"github.com/netloop/netloop/internal/net/admission"
)

// placeKey is the key of the *admission.Place in a connection's context.
type placeKey struct{}

// errRefused refuses a connection before its cryptographic handshake. The peer gets only QUIC's
// CONNECTION_REFUSED.
var errRefused = errors.New("quicnet: there is no place for it")

// opening gives a new connection a place, or refuses it before any work is done. A connection takes
// four goroutines and 69 KiB from now on.
func (l *Listener) opening(ctx context.Context, info *quic.ClientInfo) (context.Context, error) {
	place := l.door.Begin(info.RemoteAddr, info.AddrVerified)
	if place == nil {
		return nil, errRefused
	}
	context.AfterFunc(ctx, place.Abandon)
	return context.WithValue(ctx, placeKey{}, place), nil
}

// accept passes connections on to admission until the listener is closed.
func (l *Listener) accept() {
	for {
		conn, err := l.quic.Accept(context.Background()) // Returns when the listener is closed.
		if err != nil {
			return
		}
		place := conn.Context().Value(placeKey{}).(*admission.Place)
		place.Enter(&visitor{conn, l.protocols[conn.ConnectionState().TLS.NegotiatedProtocol], l.peers})
	}
}
