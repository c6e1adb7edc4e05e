package transport

import (
	"sync/atomic"
	"time"

	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// Link is one connection after its handshake as its driver sees it: bytes that have arrived
// go in, bytes to send come out. One goroutine calls ReceiveDatagram or ReceiveWaited, one
// ReceiveStream, one SendDatagrams, and one AppendStream and CloseRequested; the other methods
// are for any goroutine. A driver with a single goroutine may call them all from there.
//
// A link carries one session, and after it another if its client moves: see move.go. The driver
// need not notice.
type Link struct {
	leg    atomic.Pointer[leg] // of the session that it carries
	wakers atomic.Pointer[wakers]
	moves  atomic.Pointer[Moves] // nil: its clients cannot move
}

// OnWake lets functions be called whenever there may be datagrams, or stream bytes, to send, or the
// end has begun. Any goroutine calls them, the owner's too and with the connection locked, so they
// must neither wait nor call the link. What there is when OnWake is called they are not told.
func (l *Link) OnWake(datagrams, stream func()) {
	l.wakers.Store(&wakers{datagrams, stream})
	l.leg.Load().wakers.Store(l.wakers.Load())
}

// Welcome queues the server's answer to the hello in front of all that the session sends. The
// driver calls it before [Admission.Joined]: a client that does not read its welcome has joined,
// and leaves like every other client.
func (l *Link) Welcome(w *netloopv1.Welcome) error { return l.leg.Load().welcome(w) }

// SetRTT tells the smoothed round trip that the link measures.
func (l *Link) SetRTT(srtt time.Duration) { l.leg.Load().srtt.Store(int64(srtt)) }

// Moved tells at which address the peer is now, when that has changed, and reports whether the
// inbox has taken it.
func (l *Link) Moved(addr string) bool { return l.leg.Load().moved(addr) }

// Closing returns a channel that is closed once an end is under way, and Cause says why: from then
// on a driver waits for the stream only for so long.
func (l *Link) Closing() <-chan struct{} { return l.leg.Load().Closing() }

// Cause returns why the connection is ending, once it is.
func (l *Link) Cause() (Closed, bool) { return l.leg.Load().Cause() }

// Shutdown ends the connection on the driver's behalf: the peer gets code and text after all
// that the owner has flushed.
func (l *Link) Shutdown(code Code, text string) {
	for {
		at := l.leg.Load()
		if at.shutdown(code, text) || l.leg.Load() == at {
			return
		}
	}
}

// CloseRequested reports, with the reason, that this end wants the connection closed and
// that AppendStream has nothing more to give.
func (l *Link) CloseRequested() (Closed, bool) { return l.leg.Load().closeRequested() }

// End says that the link is gone. The owner gets the arrival Gone, exactly once: with the
// reason why this end closed, if it did, otherwise with c.
func (l *Link) End(c Closed) { l.leg.Load().end(c) }

// ReceiveDatagram takes a datagram that arrived at a time. The session keeps b: nobody
// may write to it afterwards. Whatever is wrong with it is counted, and harms nothing else.
func (l *Link) ReceiveDatagram(at time.Duration, b []byte) { l.ReceiveWaited(at, 0, b) }

// ReceiveWaited is ReceiveDatagram for one that is read at a time and has waited for that: the
// peer's clock goes by its arrival, all else by when it is here.
func (l *Link) ReceiveWaited(at, waited time.Duration, b []byte) {
	l.leg.Load().receiveDatagram(at, waited, b)
}

// ReceiveStream takes the next bytes of the stream; b may be used again. An error, always
// a *Closed, ends the reading: the peer has closed, or it has broken the protocol, in
// which case the session has begun to close by itself. It waits while a client that moves is
// admitted.
func (l *Link) ReceiveStream(at time.Duration, b []byte) error {
	for {
		err := l.leg.Load().receiveStream(at, b)
		next, ok := err.(*handover) //nolint:errorlint // It is never wrapped.
		if !ok {
			return err
		}
		if err := l.moveOn(next.frame); err != nil {
			return err
		}
		b = next.rest
	}
}

// SendDatagrams hands every datagram that waits to send, which must not keep it. What follows
// a datagram stands here alone: the snapshot's slot is free once its last packet has been
// handed over, and the time that each call took is choke or flush lag. A datagram for which
// send fails is counted and lost; all errors but ErrDatagramTooLarge and ErrBehind end the sending.
func (l *Link) SendDatagrams(clock func() time.Duration, send func(datagram []byte) error) error {
	return l.leg.Load().sendDatagrams(clock, send)
}

// AppendStream appends the next reliable bytes, at most limit of them; none means that
// nothing waits.
func (l *Link) AppendStream(dst []byte, limit int) []byte {
	return l.leg.Load().appendStream(dst, limit)
}
