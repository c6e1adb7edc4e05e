package quicnet

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"
)

const (
	// flushPatience is the longest time in which quic-go packs its data, even on a busy machine. If
	// it takes longer, the congestion window or a stream's window is full.
	flushPatience = 20 * time.Millisecond
	// flushRest is the pause without flushes after a flush that took longer than flushPatience.
	flushRest = time.Second
	// flushChances is the number of flushes that may fail before the first success. Some fail while
	// a new client's state fills the congestion window.
	flushChances = 8
)

// acks makes quic-go send the acknowledgement of received packets together with the next datagram.
//
// QUIC acknowledges every second packet at once, if necessary in a separate packet. quic-go adds an
// acknowledgement that is not due yet to stream data, but not to a packet with only a datagram: two
// ends that answer each datagram with a datagram would send 1.5 times as many packets. So acks uses
// an otherwise unused stream that pretends to have a byte to send. quic-go packs the
// acknowledgement, asks for the stream's limit, and gets zero. The peer receives no data of the
// stream.
type acks struct {
	due   atomic.Bool  // a packet has arrived since the last flush
	began atomic.Int64 // start of the current flush, as Unix time in ns; 0: none

	// Fields of the goroutine that sends datagrams:
	opened bool          // the stream was opened, if the peer permits one
	stream limitedWriter // the stream, which remains open
	asked  bool          // quic-go has asked for the limit at least once
	failed int           // failed flushes while asked is false; at most flushChances
	rests  time.Time     // no flush before this time
}

// limitedWriter is a quic.SendStream.
type limitedWriter interface {
	WriteWithLimit(b []byte, limiter func(most int) int) (int, error)
	SetWriteDeadline(at time.Time) error
}

var oneByte = []byte{0}

// flush waits until quic-go has packed its pending data, with the acknowledgement. It has no effect
// if a recent flush took too long: then the data waits in quic-go's queue, and the sender
// continues.
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
	_, err := a.stream.WriteWithLimit(oneByte, none) // This always returns an error.
	a.began.Store(0)
	asked := errors.Is(err, quic.ErrWriteLimitReached)
	a.asked = a.asked || asked
	if ended := time.Now(); !asked || ended.Sub(began) >= flushPatience {
		a.rest(ended)
	}
}

// open opens the stream. If the peer permits no stream, acknowledgements are sent in separate
// packets.
func (a *acks) open(conn *quic.Conn) {
	a.opened = true
	s, err := conn.OpenUniStream()
	if err != nil {
		a.failed = flushChances
		return
	}
	a.stream = s
}

// rest stops flushes for flushRest. After flushChances calls it stops them permanently if quic-go
// has never asked for the limit, because then the peer permits no data on such a stream.
func (a *acks) rest(now time.Time) {
	_ = a.stream.SetWriteDeadline(time.Time{}) // Undoes hurry; it never fails.
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
