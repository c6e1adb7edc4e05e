package loadtest

import (
	"net"
	"sync/atomic"
	"time"

	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/bridge"
)

// The clients of --slow-readers take turns between not reading and reading their sockets. A server
// gives up a stream that no one reads after 10 s, and a client reconnects after 5 s of silence.
const (
	unreadFor  = 15 * time.Second
	readFor    = 5 * time.Second
	unreadPoll = 50 * time.Millisecond // the longest delay of the end of a pause
)

// slowReader makes a client leave its sockets unread in the measured window: the kernel's buffers
// fill up, as with a program that hangs. The frames of the client go on. It is safe for use by many
// goroutines.
type slowReader struct {
	run    *run
	joined atomic.Int64 // on the run's clock; 0 while the client joins, and reads
}

// unread reports whether the client reads nothing at a time.
func (s *slowReader) unread(now time.Duration) bool {
	joined := s.joined.Load()
	if joined == 0 || !s.run.window.holds(now) {
		return false
	}
	since := now - max(time.Duration(joined), time.Duration(s.run.window.from.Load()))
	return since%(unreadFor+readFor) < unreadFor
}

// wait returns when the client reads.
func (s *slowReader) wait() {
	for s.unread(s.run.now()) {
		s.run.sleep(s.run.now() + unreadPoll)
	}
}

// slowSocket is the UDP socket of a slow reader.
type slowSocket struct {
	net.PacketConn
	by *slowReader
}

func (s *slowSocket) ReadFrom(p []byte) (int, net.Addr, error) {
	s.by.wait()
	return s.PacketConn.ReadFrom(p)
}

// SetReadBuffer and SetWriteBuffer keep the kernel's sizes, and quic-go from logging.
func (s *slowSocket) SetReadBuffer(int) error  { return nil }
func (s *slowSocket) SetWriteBuffer(int) error { return nil }

// slowStream is a TCP connection of a slow reader.
type slowStream struct {
	net.Conn
	by *slowReader
}

func (s *slowStream) Read(p []byte) (int, error) {
	s.by.wait()
	return s.Conn.Read(p)
}

// slow makes a dialer with a socket of a slow reader, which has no other client.
func (r *run) slow(socket net.PacketConn, s *slowReader) *client.Dialer {
	d := bridge.Client.NewDialer(&slowSocket{socket, s}).(*client.Dialer)
	bridge.Client.WrapStreams(d, func(c net.Conn) net.Conn { return &slowStream{c, s} })
	return d
}
