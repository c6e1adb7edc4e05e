package quicnet

import (
	"context"
	"errors"

	"github.com/quic-go/quic-go"

	"github.com/netloop/netloop/internal/transport"
	"github.com/netloop/netloop/internal/transport/door"
)

// What a connection goes through before it is served:
//
//	Door.AskForProof      its first packet: a Retry, or
//	opening               its place among the strangers, or a refusal before TLS
//	accept, enter         its handshake is complete
//	serve                 hello and admission (serve.go)

// strangerKey is where the context of a connection has its *door.Stranger.
type strangerKey struct{}

// Errors for connections that are refused before their cryptographic handshake. The peer sees
// none of them but QUIC's CONNECTION_REFUSED.
var (
	errRefusing = errors.New("quicnet: nobody can come in now")
	errCrowded  = errors.New("quicnet: too many strangers")
)

// opening refuses a connection before it costs anything, or gives it a place: it has four
// goroutines and 69 KiB from now on.
func (l *Listener) opening(ctx context.Context, info *quic.ClientInfo) (context.Context, error) {
	if l.door.Refusing() {
		return nil, errRefusing
	}
	st := l.door.Begin(info.RemoteAddr, info.AddrVerified)
	if st == nil {
		return nil, errCrowded
	}
	context.AfterFunc(ctx, func() { l.door.Abandon(st) })
	return context.WithValue(ctx, strangerKey{}, st), nil
}

// accept takes connections until the listener is closed.
func (l *Listener) accept() {
	for {
		conn, err := l.quic.Accept(context.Background()) // It ends with the listener.
		if err != nil {
			return
		}
		l.cfg.Stats.Handshakes.Add(1)
		st := conn.Context().Value(strangerKey{}).(*door.Stranger)
		if r := l.enter(conn, st); r != nil {
			l.door.Leave(st)
			l.cfg.Stats.Refused.Add(1)
			closeConn(conn, r.Code, r.Text)
		}
	}
}

// enter starts to serve a connection, or says why it is refused.
func (l *Listener) enter(conn *quic.Conn, st *door.Stranger) *transport.Refusal {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refuse != nil {
		return l.refuse
	}
	if r := l.door.Meet(st, func() { l.dismiss(conn) }); r != nil {
		return r
	}
	l.conns[conn] = nil
	l.serving.Go(func() { l.serve(conn, st) })
	return nil
}

// dismiss tells a stranger to make room. It is being served, so serving counts it.
func (l *Listener) dismiss(conn *quic.Conn) {
	l.cfg.Stats.Refused.Add(1)
	l.serving.Go(func() { closeConn(conn, door.ErrBusy.Code, door.ErrBusy.Text) })
}

// entered notes that a connection has become a session.
func (l *Listener) entered(conn *quic.Conn, link *transport.Link) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.door.Admit()
	l.conns[conn] = link
}

func (l *Listener) left(conn *quic.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conns[conn] != nil {
		l.door.Left()
	}
	delete(l.conns, conn)
}
