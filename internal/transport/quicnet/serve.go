package quicnet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime/debug"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/netloop/netloop/internal/transport"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// serve is the life of one connection.
func (l *Listener) serve(conn *quic.Conn, st *stranger) {
	defer l.left(conn)
	defer l.strangers.leave(st)
	peer := conn.RemoteAddr()
	stream, adm, err := l.handshake(conn, peer)
	if err != nil {
		l.decline(conn, stream, err)
		return
	}
	l.strangers.leave(st)
	if adm.Session.Clock == nil {
		adm.Session.Clock = l.cfg.Clock
	}
	if adm.Session.Stats == nil {
		adm.Session.Stats = l.cfg.Stats
	}
	session, link := transport.NewSession(adm.Session)
	welcomed := l.welcome(stream, adm.Welcome)
	adm.Joined(session) // In any case: whoever was admitted leaves with a Gone.
	l.entered(conn, link)
	if welcomed != nil {
		closeConn(conn, transport.CodeInternal, "the welcome could not be written")
	}
	c := carrier{
		conn: conn, stream: stream, link: link, clock: adm.Session.Clock, chunks: &l.chunks,
		peer: peer, peers: l.peers,
	}
	link.End(c.run())
}

// errLeft is the error of a client that left because of the server's tables. It has closed
// the connection itself, and says why to its own user.
var errLeft = errors.New("quicnet: the client cannot play by the server's schema")

// handshake reads the hello, tells a client with another schema the server's, and asks the
// handler.
func (l *Listener) handshake(conn *quic.Conn, peer net.Addr) (*quic.Stream, *transport.Admission, error) {
	ctx, cancel := context.WithTimeout(conn.Context(), l.cfg.HelloTimeout)
	defer cancel()
	stream, err := conn.AcceptStream(ctx)
	if err != nil {
		return nil, nil, l.noHello(err)
	}
	deadline, _ := ctx.Deadline()
	_ = stream.SetDeadline(deadline) // It never fails.
	r := transport.Reception{Handler: l.cfg.Handler, Stats: l.cfg.Stats}
	for {
		frame, err := transport.ReadFrame(stream, transport.MaxHandshake)
		var app *quic.ApplicationError
		switch {
		case r.Waits() && errors.As(err, &app) && app.Remote:
			return stream, nil, errLeft
		case err != nil:
			return stream, nil, l.noHello(err)
		}
		answer, hello, err := r.Take(frame)
		if err != nil {
			return stream, nil, err
		}
		if hello != nil {
			_ = stream.SetDeadline(time.Time{})
			adm, err := l.admit(conn, hello, peer)
			return stream, adm, err
		}
		if _, err := stream.Write(answer); err != nil {
			return stream, nil, l.noHello(err)
		}
	}
}

// noHello says what kept the hello from arriving.
func (l *Listener) noHello(err error) error {
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		l.cfg.Stats.Drop(transport.DropHelloTimeout, 1)
		return &transport.Refusal{Code: transport.CodeTimeout, Text: fmt.Sprintf("no hello within %v", l.cfg.HelloTimeout)}
	case errors.Is(err, transport.ErrFrameTooLarge):
		l.cfg.Stats.Drop(transport.DropHello, 1)
		return &transport.Refusal{Code: transport.CodeProtocol, Text: fmt.Sprintf("a hello has at most %d bytes", transport.MaxHandshake)}
	}
	l.cfg.Stats.Drop(transport.DropHello, 1)
	return &transport.Refusal{Code: transport.CodeProtocol, Text: "no hello"}
}

// admit asks the handler, whose panic is the server's own business.
func (l *Listener) admit(conn *quic.Conn, hello *netloopv1.Hello, peer net.Addr) (adm *transport.Admission, err error) {
	ctx, cancel := context.WithTimeout(conn.Context(), l.cfg.AdmitTimeout)
	defer cancel()
	st := conn.Context().Value(strangerKey{}).(*stranger)
	ctx = transport.WithApproved(ctx, func() { l.strangers.leave(st) })
	defer func() {
		if v := recover(); v != nil {
			adm, err = nil, fmt.Errorf("quicnet: admission panicked: %v\n%s", v, debug.Stack())
		}
	}()
	adm, err = l.cfg.Handler.Admit(ctx, hello, peer.String())
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = &transport.Refusal{Code: transport.CodeTimeout, Text: "the admission took too long"}
	}
	return adm, err
}

// decline tells the peer why it may not come in.
func (l *Listener) decline(conn *quic.Conn, stream *quic.Stream, err error) {
	if errors.Is(err, errLeft) {
		l.cfg.Stats.Refused.Add(1)
		return
	}
	if conn.Context().Err() != nil {
		return // It has gone by itself.
	}
	r, said := transport.Declined(err)
	if !said {
		l.failed("admission failed", "remote", conn.RemoteAddr().String(), "error", err)
	}
	l.cfg.Stats.Refused.Add(1)
	if stream != nil {
		_ = stream.SetWriteDeadline(time.Now().Add(lingerTimeout))
		_, _ = stream.Write(transport.AppendRefused(nil, r)) // The close below says the same.
	}
	closeConn(conn, r.Code, r.Text)
}

// failed tells the log what went wrong here when somebody came: of each kind once in ten seconds,
// and how often it was not told, because whoever comes again and again must not fill it.
func (l *Listener) failed(what string, attrs ...any) {
	l.mu.Lock()
	kept, news := l.told.News(what, l.cfg.Clock())
	l.mu.Unlock()
	if news {
		l.cfg.Log.Error(what, append(attrs, "unlogged_before", kept)...)
	}
}

// welcome writes the answer to a hello that was accepted.
func (l *Listener) welcome(stream *quic.Stream, w *netloopv1.Welcome) error {
	b, err := transport.AppendWelcome(nil, w)
	if err != nil {
		l.failed("the welcome could not be encoded", "error", err)
		return err
	}
	_ = stream.SetWriteDeadline(time.Now().Add(l.cfg.HelloTimeout))
	if _, err = stream.Write(b); err != nil {
		return err
	}
	return stream.SetWriteDeadline(time.Time{})
}
