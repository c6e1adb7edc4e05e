package quicnet

import (
	"context"
	"errors"

	"github.com/quic-go/quic-go"

	"github.com/netloop/netloop/internal/net/admission"
)

// placeKey is where the context of a connection has its *door.Place.
type placeKey struct{}

// errRefused is for connections that are refused before their cryptographic handshake. The peer
// sees nothing of it but QUIC's CONNECTION_REFUSED.
var errRefused = errors.New("quicnet: there is no place for it")

// opening refuses a connection before it costs anything, or gives it a place: it has four
// goroutines and 69 KiB from now on.
func (l *Listener) opening(ctx context.Context, info *quic.ClientInfo) (context.Context, error) {
	place := l.door.Begin(info.RemoteAddr, info.AddrVerified)
	if place == nil {
		return nil, errRefused
	}
	context.AfterFunc(ctx, place.Abandon)
	return context.WithValue(ctx, placeKey{}, place), nil
}

// accept takes connections until the listener is closed.
func (l *Listener) accept() {
	for {
		conn, err := l.quic.Accept(context.Background()) // It ends with the listener.
		if err != nil {
			return
		}
		place := conn.Context().Value(placeKey{}).(*admission.Place)
		place.Enter(&visitor{conn, l.protocols[conn.ConnectionState().TLS.NegotiatedProtocol], l.peers})
	}
}
