package quicnet

import (
	"context"
	"errors"

	"github.com/quic-go/quic-go"

	"github.com/netloop/netloop/internal/transport"
)

// What a connection goes through before it is served:
//
//	strangers.askForProof its first packet: a Retry, or
//	opening               its place among the strangers, or a refusal before TLS
//	accept, enter         its handshake is complete
//	serve                 hello and admission (serve.go)

// strangerKey is where the context of a connection has its *stranger.
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
	if l.refusing() {
		return nil, errRefusing
	}
	st := l.strangers.begin(info.RemoteAddr, info.AddrVerified)
	if st == nil {
		return nil, errCrowded
	}
	context.AfterFunc(ctx, func() { l.strangers.abandon(st) })
	return context.WithValue(ctx, strangerKey{}, st), nil
}

// refusing tells whether a connection is refused because the server can let in nobody.
func (l *Listener) refusing() bool {
	code, hear := l.cfg.Refusing()
	switch {
	case code == 0, hear && l.heard.Allow():
		return false
	case code == transport.CodeFull:
		l.cfg.Stats.Drop(transport.DropFull, 1)
	default:
		l.cfg.Stats.Drop(transport.DropOverload, 1)
	}
	return true
}

// accept takes connections until the listener is closed.
func (l *Listener) accept() {
	for {
		conn, err := l.quic.Accept(context.Background()) // It ends with the listener.
		if err != nil {
			return
		}
		l.cfg.Stats.Handshakes.Add(1)
		st := conn.Context().Value(strangerKey{}).(*stranger)
		if r := l.enter(conn, st); r != nil {
			l.strangers.leave(st)
			l.cfg.Stats.Refused.Add(1)
			closeConn(conn, r.Code, r.Text)
		}
	}
}

// enter starts to serve a connection, or says why it is refused.
func (l *Listener) enter(conn *quic.Conn, st *stranger) *transport.Refusal {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.refuse != nil:
		return l.refuse
	case l.admitted >= l.maxConns:
		l.cfg.Stats.Drop(transport.DropFull, 1)
		return &transport.Refusal{Code: transport.CodeFull, Text: "the server has too many connections"}
	case !l.strangers.met(st, conn):
		return errBusy
	}
	l.conns[conn] = nil
	l.serving.Go(func() { l.serve(conn, st) })
	return nil
}

// errBusy is what a stranger is told for whom there is no place, or not any more.
var errBusy = &transport.Refusal{Code: transport.CodeBusy, Text: "too many want to come in: try again"}

// dismiss tells a stranger to make room. It is being served, so serving counts it.
func (l *Listener) dismiss(conn *quic.Conn) {
	l.cfg.Stats.Refused.Add(1)
	l.serving.Go(func() { closeConn(conn, errBusy.Code, errBusy.Text) })
}

// entered notes that a connection has become a session.
func (l *Listener) entered(conn *quic.Conn, link *transport.Link) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.admitted++
	l.conns[conn] = link
}

func (l *Listener) left(conn *quic.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conns[conn] != nil {
		l.admitted--
	}
	delete(l.conns, conn)
}
