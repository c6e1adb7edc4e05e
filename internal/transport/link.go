package transport

import (
	"sync/atomic"
	"time"

	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// Link is the driver's side of one connection after its handshake: the driver passes received bytes
// to it, and gets bytes to send. One goroutine at a time receives datagrams, one goroutine calls
// ReceiveStream, and one calls AppendStream and CloseRequested; any goroutine may call the other
// methods. A single goroutine may also call all methods.
//
// A link carries one session at a time, and another session after it if the client moves: see
// move.go. Drivers need no code for moves.
type Link struct {
	// Transport names the transport that carries the connection, such as quic. It is set before the
	// session joins, and does not change.
	Transport string

	leg    atomic.Pointer[leg] // of the current session
	wakers atomic.Pointer[wakers]
	moves  atomic.Pointer[Moves] // nil: the client cannot move

	simulate  atomic.Pointer[func(network string)] // nil: the driver cannot
	simulated atomic.Pointer[string]               // nil: no network
}

// OnWake sets the functions that are called when datagrams or stream bytes may wait to be sent, or
// when the end has begun. Any goroutine calls them, and they must not block. stream is also called
// with the connection locked, and must not call the link; datagrams may send them at once. They are
// not called for data queued before OnWake.
func (l *Link) OnWake(datagrams, stream func()) {
	l.wakers.Store(&wakers{datagrams, stream})
	l.leg.Load().wakers.Store(l.wakers.Load())
}

// OnSimulate sets the function that puts an emulated network around the connection. It must not
// block.
func (l *Link) OnSimulate(simulate func(network string)) { l.simulate.Store(&simulate) }

// Simulate puts an emulated network around the connection until it ends, or removes it with an
// empty text. It reports false if the connection's driver cannot.
func (s *Session) Simulate(network string) bool {
	simulate := s.link.simulate.Load()
	if simulate == nil {
		return false
	}
	s.link.simulated.Store(&network)
	(*simulate)(network)
	return true
}

// Simulated returns the text of Simulate.
func (s *Session) Simulated() string {
	if network := s.link.simulated.Load(); network != nil {
		return *network
	}
	return ""
}

// Welcome queues the server's answer to the hello before all other data of the session. The driver
// calls it before [Admitted.Joined], so a client that does not read its welcome has joined, and
// leaves like any other client.
func (l *Link) Welcome(w *netloopv1.Welcome) error { return l.leg.Load().welcome(w) }

// SetRTT sets the smoothed round trip that the transport measures.
func (l *Link) SetRTT(srtt time.Duration) { l.leg.Load().srtt.Store(int64(srtt)) }

// Moved pushes the peer's new address to the inbox, and reports whether the inbox accepted it.
func (l *Link) Moved(addr string) bool { return l.leg.Load().moved(addr) }

// Closing returns a channel that is closed when the connection begins to end. Cause then returns
// the reason. After this a driver waits only a limited time for the stream.
func (l *Link) Closing() <-chan struct{} { return l.leg.Load().Closing() }

// Cause returns the reason for the end once the connection has begun to end.
func (l *Link) Cause() (Closed, bool) { return l.leg.Load().Cause() }

// Shutdown ends the connection on the driver's behalf: the peer gets code and text after all data
// that the owner has flushed.
func (l *Link) Shutdown(code Code, text string) {
	for {
		at := l.leg.Load()
		if at.shutdown(code, text) || l.leg.Load() == at {
			return
		}
	}
}

// CloseRequested reports whether this end wants to close the connection and AppendStream has no
// more bytes. It returns the reason too.
func (l *Link) CloseRequested() (Closed, bool) { return l.leg.Load().closeRequested() }

// End ends the session after the end of the link. The owner gets the arrival Gone, exactly once:
// with the reason of this end's close, if any, and otherwise with c.
func (l *Link) End(c Closed) { l.leg.Load().end(c) }

// ReceiveDatagram handles a datagram that arrived at a time. The session keeps b, which must not be
// changed afterwards. A malformed datagram is counted and otherwise ignored.
func (l *Link) ReceiveDatagram(at time.Duration, b []byte) { l.ReceiveWaited(at, 0, b) }

// ReceiveWaited is ReceiveDatagram for a datagram that was read at the time at, after it had waited
// in the socket. Time sync uses the time of arrival; all other code uses the time of reading.
func (l *Link) ReceiveWaited(at, waited time.Duration, b []byte) {
	l.leg.Load().receiveDatagram(at, waited, b, false)
}

// ReceiveBorrowed is ReceiveWaited for a datagram whose memory the driver uses again.
func (l *Link) ReceiveBorrowed(at, waited time.Duration, b []byte) {
	l.leg.Load().receiveDatagram(at, waited, b, true)
}

// ReceiveStream handles the next bytes of the stream; b may be used again. An error, always a
// *Closed, ends the reading: the peer has closed, or it has violated the protocol; then the session
// has begun to close itself. ReceiveStream blocks while a moving client is being admitted.
func (l *Link) ReceiveStream(at time.Duration, b []byte) error {
	for {
		err := l.leg.Load().receiveStream(at, b)
		next, ok := err.(*handover) //nolint:errorlint // A handover is never wrapped.
		if !ok {
			return err
		}
		if err := l.moveOn(next.frame); err != nil {
			return err
		}
		b = next.rest
	}
}

// SendDatagrams passes every pending datagram to send, which must not keep it. It also frees the
// snapshot's slot after its last packet, and counts the time of each call as choke or as flush lag.
// A datagram for which send fails is counted and lost; any error but ErrDatagramTooLarge and
// ErrBehind ends the sending. While one call waits in send, other calls pass the later datagrams.
func (l *Link) SendDatagrams(clock func() time.Duration, send func(datagram []byte) error) error {
	return l.leg.Load().sendDatagrams(clock, send)
}

// AppendStream appends the next reliable bytes, at most limit of them, or none if none are queued.
func (l *Link) AppendStream(dst []byte, limit int) []byte {
	return l.leg.Load().appendStream(dst, limit)
}
