package wtnet

import (
	"context"
	"net/http"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/quic-go/quic-go/quicvarint"

	"github.com/netloop/netloop/internal/net/driver"
	"github.com/netloop/netloop/internal/net/endpoint"
	"github.com/netloop/netloop/internal/net/origin"
	"github.com/netloop/netloop/internal/net/quicnet"
	"github.com/netloop/netloop/internal/transport"
)

const (
	// maxHeader bounds the headers of a request: a browser sends less than 1 KiB.
	maxHeader = 8 << 10
	// maxStreams bounds the streams that are read before the session exists. A browser needs two.
	maxStreams = 8
)

// Protocol returns WebTransport for the pages of some origins. Refused requests are counted.
func Protocol(pages *origin.Set, stats *transport.Stats) quicnet.Protocol {
	s := &server{pages, stats}
	return quicnet.Protocol{
		ALPN: ALPN, Kind: transport.WebTransport, Accept: s.accept, Open: open, Close: closeConn,
	}
}

type server struct {
	pages *origin.Set
	stats *transport.Stats
}

// accept waits for a session and its stream.
func (s *server) accept(ctx context.Context, conn *quic.Conn) (driver.Conn, error) {
	r := &request{server: s}
	h3 := http3.Server{Handler: r, EnableDatagrams: true, AdditionalSettings: settings(), MaxHeaderBytes: maxHeader}
	raw, err := h3.NewRawServerConn(conn)
	if err != nil {
		return nil, err
	}
	deadline, _ := ctx.Deadline()
	for range maxStreams {
		stream, err := conn.AcceptStream(ctx)
		if err != nil {
			return nil, err
		}
		_ = stream.SetDeadline(deadline) // It never fails.
		kind, err := quicvarint.Peek(stream)
		switch {
		case err != nil && conn.Context().Err() != nil, ctx.Err() != nil:
			return nil, err
		case err != nil: // The stream ended before its first byte.
		case kind != frameBidirectional:
			raw.HandleRequestStream(stream)
		case r.session == nil || !r.opens(stream):
			stream.CancelRead(bufferedStreamRejected)
			stream.CancelWrite(bufferedStreamRejected)
		default:
			return r.accepted(conn, stream), nil
		}
	}
	s.stats.Drop(transport.DropRequest, 1)
	return nil, &transport.Refusal{Code: transport.CodeProtocol, Text: "too many requests"}
}

// request answers the HTTP requests of one connection, and holds the session that a CONNECT has
// opened. One goroutine owns it.
type request struct {
	*server
	session *http3.Stream // nil: no session yet
}

// ServeHTTP answers a request.
func (r *request) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	status, why := r.judge(req)
	if status != http.StatusOK {
		r.stats.Drop(why, 1)
		http.Error(w, http.StatusText(status), status)
		return
	}
	w.WriteHeader(status)
	session, err := w.(http3.HTTPStreamer).HTTPStream()
	if err == nil {
		r.session = session
	}
}

// judge returns the status of the answer and, unless it is 200, the reason to count.
func (r *request) judge(req *http.Request) (status int, why transport.Drop) {
	switch {
	case req.URL.Path != endpoint.Path:
		return http.StatusNotFound, transport.DropRequest
	case req.Method != http.MethodConnect || req.Proto != protocol && req.Proto != protocolNewest:
		return http.StatusMethodNotAllowed, transport.DropRequest
	case len(req.Header["Origin"]) > 1 || !r.pages.Allows(req.Header.Get("Origin"), req.Host):
		return http.StatusForbidden, transport.DropOrigin
	case r.session != nil:
		return http.StatusTooManyRequests, transport.DropRequest
	}
	return http.StatusOK, 0
}

// opens reads the head of a stream, and reports whether the stream belongs to the session.
func (r *request) opens(stream *quic.Stream) bool {
	in := quicvarint.NewReader(stream)
	_, _ = quicvarint.Read(in) // The stream's kind, peeked before.
	id, err := quicvarint.Read(in)
	return err == nil && quic.StreamID(id) == r.session.StreamID()
}

// accepted creates the session.
func (r *request) accepted(conn *quic.Conn, stream *quic.Stream) *session {
	connect := r.session.QUICStream()
	for _, s := range []*quic.Stream{connect, stream} {
		_ = s.SetDeadline(noDeadline)
	}
	return newSession(conn, stream, bounded{r.session, &frames{r: connect, left: maxCapsules}}, connect.StreamID())
}

// bounded reads a CONNECT stream, at most maxCapsules bytes of it.
type bounded struct {
	*http3.Stream
	frames *frames
}

// Read implements io.Reader.
func (b bounded) Read(p []byte) (int, error) { return b.frames.Read(p) }
