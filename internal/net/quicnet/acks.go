package quicnet

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"
)

const (
	// flushPatience is how long quic-go takes at most to pack what it was given, however busy the
	// machine is. When it takes longer, the congestion window is full, or that of streams.
	flushPatience = 20 * time.Millisecond
	// flushRest is for how long nothing is flushed then.
	flushRest = time.Second
	// flushChances is how many flushes may fail before the first one that works. Some do while a
	// newcomer's state fills the congestion window.
	flushChances = 8
)

// acks lets the acknowledgement of what has come travel with the next datagram.
//
// QUIC acknowledges every second packet at once, in a packet of its own if need be. quic-go has an
// acknowledgement that is not due yet ride along with stream data, but not with a datagram alone:
// two ends that answer each datagram by one would send half as many packets again. So a stream
// that nothing is ever sent on claims to have a byte. quic-go packs the acknowledgement, asks how
// much of the stream may leave, and hears that nothing may. The peer learns of none of it.
type acks struct {
	due   atomic.Bool  // something has come since the last flush
	began atomic.Int64 // the flush that is under way, as Unix time in ns; 0: there is none

	// Of who sends datagrams:
	opened bool          // the stream, if the peer allows one
	stream limitedWriter // once it is open it stays
	asked  bool          // quic-go has asked for the limit
	failed int           // flushes, before it has; after flushChances of them there are no more
	rests  time.Time     // no flush before
}

// limitedWriter is a quic.SendStream.
type limitedWriter interface {
	WriteWithLimit(b []byte, limiter func(most int) int) (int, error)
	SetWriteDeadline(at time.Time) error
}

var oneByte = []byte{0}

// flush waits until quic-go has packed what it was given, the acknowledgement with it. Over a
// connection where that took too long a moment ago it does nothing: what is given waits in
// quic-go's queue there, and whoever sends may go on.
func (a *acks) flush(conn *quic.Conn) {
	if !a.due.Swap(false) {
		return
	}
	if !a.opened {
		a.open(conn)
	}
	began := time.Now()
	if a.failed == flushChances || began.Before(a.rests) {
		return
	}
	a.began.Store(began.UnixNano())
	_, err := a.stream.WriteWithLimit(oneByte, none) // It always fails.
	a.began.Store(0)
	asked := errors.Is(err, quic.ErrWriteLimitReached)
	a.asked = a.asked || asked
	if ended := time.Now(); !asked || ended.Sub(began) >= flushPatience {
		a.rest(ended)
	}
}

// open opens the stream. A peer that allows none gets packets that only acknowledge.
func (a *acks) open(conn *quic.Conn) {
	a.opened = true
	s, err := conn.OpenUniStream()
	if err != nil {
		a.failed = flushChances
		return
	}
	a.stream = s
}

// rest leaves the connection alone for a while, and in the end for good if the peer never lets
// anybody send on such a stream.
func (a *acks) rest(now time.Time) {
	_ = a.stream.SetWriteDeadline(time.Time{}) // What hurry has set; it never fails.
	a.rests = now.Add(flushRest)
	if !a.asked {
		a.failed++
	}
}

// hurry ends a flush that takes too long. Any goroutine may call it.
func (a *acks) hurry() {
	began := a.began.Load()
	if began == 0 {
		return
	}
	if now := time.Now(); now.UnixNano()-began >= int64(flushPatience) {
		_ = a.stream.SetWriteDeadline(now)
	}
}

func none(int) int { return 0 }
