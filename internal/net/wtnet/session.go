package wtnet

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/quic-go/quic-go/quicvarint"

	"github.com/netloop/netloop/internal/net/driver"
	"github.com/netloop/netloop/internal/net/quicnet"
	"github.com/netloop/netloop/internal/transport"
)

// connectStream is a CONNECT stream: capsules are read from it, and one is written.
type connectStream interface {
	io.ReadWriteCloser
	SetWriteDeadline(at time.Time) error
}

// session is a WebTransport session, the only one of its connection.
type session struct {
	quicnet.Conn // with the session's stream
	connect      connectStream
	id           uint64        // the session's id in datagrams: its stream's id divided by 4
	buf          []byte        // used by the goroutine that sends datagrams
	read         chan struct{} // closed when the reading of the CONNECT stream ends

	mu  sync.Mutex
	end error // reason of the end that closed first; nil while open
}

var _ driver.Flusher = (*session)(nil)

// newSession makes a session and starts to read the CONNECT stream until the connection ends.
func newSession(conn *quic.Conn, stream *quic.Stream, connect connectStream, id quic.StreamID) *session {
	s := &session{
		Conn:    quicnet.Conn{Stream: &quicnet.Stream{Stream: stream}, QUIC: conn},
		connect: connect, id: uint64(id) / 4, read: make(chan struct{}),
	}
	go s.readConnect()
	return s
}

// readConnect waits until the peer closes the session, and then closes the connection, because a
// peer that closes the session waits until the other one closes the connection.
func (s *session) readConnect() {
	defer close(s.read)
	c, err := readClose(s.connect)
	end := &quic.ApplicationError{Remote: true, ErrorCode: quic.ApplicationErrorCode(c.Code), ErrorMessage: c.Text}
	if err != nil { // An end without a reason.
		end = &quic.ApplicationError{ErrorCode: quic.ApplicationErrorCode(transport.CodeLost), ErrorMessage: err.Error()}
	}
	if s.ends(end) {
		_ = s.QUIC.CloseWithError(quic.ApplicationErrorCode(http3.ErrCodeNoError), "")
	}
}

// ends sets the reason for the end of the session, and reports false if the session has ended
// already.
func (s *session) ends(why error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end != nil || s.QUIC.Context().Err() != nil {
		return false
	}
	s.end = why
	return true
}

// Close implements driver.Conn. It sends a capsule and waits for the peer to close.
func (s *session) Close(code transport.Code, text string) {
	if !s.ends(&quic.ApplicationError{ErrorCode: quic.ApplicationErrorCode(code), ErrorMessage: text}) {
		return // The connection is being closed.
	}
	_ = s.connect.SetWriteDeadline(time.Now().Add(driver.Linger))
	if _, err := s.connect.Write(appendClose(nil, code, text)); err == nil && s.connect.Close() == nil {
		driver.Ended(s)
	}
	closeConn(s.QUIC, code, text)
}

// Err implements driver.Conn.
func (s *session) Err() error {
	<-s.read // Closed soon, because the connection has ended.
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end != nil {
		return s.end
	}
	return why(context.Cause(s.QUIC.Context()))
}

// Closed implements driver.Conn.
func (s *session) Closed() transport.Closed { return quicnet.ClosedBy(s.Err()) }

// SendDatagram implements driver.Conn.
func (s *session) SendDatagram(b []byte) error {
	s.buf = append(quicvarint.Append(s.buf[:0], s.id), b...)
	return quicnet.SendError(s.QUIC.SendDatagram(s.buf))
}

// ReceiveDatagram implements driver.Conn. For a datagram of another session it returns an empty
// datagram, which counts as an error of the client.
func (s *session) ReceiveDatagram() ([]byte, error) {
	b, err := s.Conn.ReceiveDatagram()
	if err != nil {
		return nil, err
	}
	id, n, err := quicvarint.Parse(b)
	if err != nil || id != s.id {
		return nil, nil
	}
	return b[n:], nil
}

// Read implements driver.Conn.
func (s *session) Read(b []byte) (int, error) {
	n, err := s.Conn.Read(b)
	return n, s.ended(err)
}

// Peek implements driver.Conn.
func (s *session) Peek(b []byte) (int, error) {
	n, err := s.Conn.Peek(b)
	return n, s.ended(err)
}

// ended converts an error of the stream. A browser that closes a session aborts its stream, and
// sends the reason on another stream, which may arrive a little later.
func (s *session) ended(err error) error {
	if (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)) && driver.Ended(s) {
		return s.Err()
	}
	return err
}
