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
	id           uint64        // of the session, as datagrams have it: its stream's by 4
	buf          []byte        // of who sends datagrams
	read         chan struct{} // closed when nothing more is read from the CONNECT stream

	mu  sync.Mutex
	end error // what the first who closed has said; nil: nobody has
}

var _ driver.Flusher = (*session)(nil)

// newSession begins to read the CONNECT stream, until the connection ends.
func newSession(conn *quic.Conn, stream *quic.Stream, connect connectStream, id quic.StreamID) *session {
	s := &session{
		Conn:    quicnet.Conn{Stream: &quicnet.Stream{Stream: stream}, QUIC: conn},
		connect: connect, id: uint64(id) / 4, read: make(chan struct{}),
	}
	go s.readConnect()
	return s
}

// readConnect waits for the peer to close the session, and closes the connection then: whoever is
// told of an end closes, and whoever has told it waits for that.
func (s *session) readConnect() {
	defer close(s.read)
	c, err := readClose(s.connect)
	end := &quic.ApplicationError{Remote: true, ErrorCode: quic.ApplicationErrorCode(c.Code), ErrorMessage: c.Text}
	if err != nil { // It is an end all the same, but says nothing.
		end = &quic.ApplicationError{ErrorCode: quic.ApplicationErrorCode(transport.CodeLost), ErrorMessage: err.Error()}
	}
	if s.ends(end) {
		_ = s.QUIC.CloseWithError(quic.ApplicationErrorCode(http3.ErrCodeNoError), "")
	}
}

// ends notes why the session ends, and reports false if it ends already.
func (s *session) ends(why error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end != nil || s.QUIC.Context().Err() != nil {
		return false
	}
	s.end = why
	return true
}

// Close implements carrier.Conn: the peer is told by a capsule, and then has to close.
func (s *session) Close(code transport.Code, text string) {
	if !s.ends(&quic.ApplicationError{ErrorCode: quic.ApplicationErrorCode(code), ErrorMessage: text}) {
		return // And the connection is being closed.
	}
	_ = s.connect.SetWriteDeadline(time.Now().Add(driver.Linger))
	if _, err := s.connect.Write(appendClose(nil, code, text)); err == nil && s.connect.Close() == nil {
		driver.Ended(s)
	}
	closeConn(s.QUIC, code, text)
}

// Err implements carrier.Conn.
func (s *session) Err() error {
	<-s.read // The connection has ended, so this is soon.
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end != nil {
		return s.end
	}
	return why(context.Cause(s.QUIC.Context()))
}

// Closed implements carrier.Conn.
func (s *session) Closed() transport.Closed { return quicnet.ClosedBy(s.Err()) }

// SendDatagram implements carrier.Conn.
func (s *session) SendDatagram(b []byte) error {
	s.buf = append(quicvarint.Append(s.buf[:0], s.id), b...)
	return quicnet.SendError(s.QUIC.SendDatagram(s.buf))
}

// ReceiveDatagram implements carrier.Conn. One of another session is an empty one: as such it is
// charged to the client.
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

// Read implements carrier.Conn.
func (s *session) Read(b []byte) (int, error) {
	n, err := s.Conn.Read(b)
	return n, s.ended(err)
}

// Peek implements carrier.Conn.
func (s *session) Peek(b []byte) (int, error) {
	n, err := s.Conn.Peek(b)
	return n, s.ended(err)
}

// ended takes an error of the stream. A browser that closes a session breaks off its stream, and
// says on another one why: that may come a little later.
func (s *session) ended(err error) error {
	if (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)) && driver.Ended(s) {
		return s.Err()
	}
	return err
}
