package nettest

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/netloop/netloop/internal/transport"
)

// Wire is a connection with the test at the other end. It is a driver.Conn.
type Wire struct {
	Addr   atomic.Pointer[net.UDPAddr]
	Trip   atomic.Int64 // the round trip
	Grams  chan []byte
	Stream chan []byte        // an empty piece ends the stream, nil breaks it
	Rest   []byte             // of the piece being read
	Slow   time.Duration      // duration of every write, datagram and close
	Inside atomic.Int64       // number of running ones
	Cut    context.CancelFunc // ends the connection
	ctx    context.Context

	Mu       sync.Mutex
	Wrote    []byte
	Sent     [][]byte
	Ended    bool               // the stream, by CloseWrite
	Closes   []transport.Closed // every call of Close
	Deadline time.Time          // of reads
	Until    time.Time          // of writes
	WroteBy  time.Time          // Until, at the last write
	Fails    error              // error of writes and datagrams
	Why      transport.Closed   // the reason of an end by itself
}

// NewWire makes a connection from an address of another host.
func NewWire() *Wire {
	w := &Wire{Grams: make(chan []byte, 64), Stream: make(chan []byte, 64), Why: transport.Closed{Code: transport.CodeLost, Text: "torn"}}
	w.ctx, w.Cut = context.WithCancel(context.Background())
	w.Addr.Store(&net.UDPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 1})
	return w
}

// ErrGone is the error of a wire that was cut.
var ErrGone = errors.New("the wire has ended")

// next waits for a piece of the stream, if there is none.
func (w *Wire) next() error {
	if len(w.Rest) > 0 {
		return nil
	}
	w.Mu.Lock()
	var late <-chan time.Time
	if !w.Deadline.IsZero() {
		late = time.After(time.Until(w.Deadline))
	}
	w.Mu.Unlock()
	select {
	case w.Rest = <-w.Stream:
		switch {
		case w.Rest == nil:
			return io.ErrUnexpectedEOF
		case len(w.Rest) == 0:
			return io.EOF
		}
		return nil
	case <-late:
		return os.ErrDeadlineExceeded
	case <-w.ctx.Done():
		return ErrGone
	}
}

// Peek implements driver.Conn.
func (w *Wire) Peek(b []byte) (int, error) {
	if err := w.next(); err != nil {
		return 0, err
	}
	return copy(b, w.Rest), nil
}

// Read implements driver.Conn.
func (w *Wire) Read(b []byte) (int, error) {
	n, err := w.Peek(b)
	w.Rest = w.Rest[n:]
	return n, err
}

// takes waits for Slow.
func (w *Wire) takes() {
	w.Inside.Add(1)
	time.Sleep(w.Slow)
	w.Inside.Add(-1)
}

// Write implements driver.Conn.
func (w *Wire) Write(b []byte) (int, error) {
	w.takes()
	w.Mu.Lock()
	defer w.Mu.Unlock()
	if w.Fails != nil {
		return 0, w.Fails
	}
	w.Wrote, w.WroteBy = append(w.Wrote, b...), w.Until
	return len(b), nil
}

// SendDatagram implements driver.Conn.
func (w *Wire) SendDatagram(b []byte) error {
	w.takes()
	w.Mu.Lock()
	defer w.Mu.Unlock()
	if w.Fails != nil {
		return w.Fails
	}
	w.Sent = append(w.Sent, append([]byte(nil), b...))
	return nil
}

// ReceiveDatagram implements driver.Conn.
func (w *Wire) ReceiveDatagram() ([]byte, error) {
	select {
	case b := <-w.Grams:
		return b, nil
	case <-w.ctx.Done():
		return nil, ErrGone
	}
}

// CloseWrite implements driver.Conn.
func (w *Wire) CloseWrite() error {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	w.Ended = true
	return nil
}

// SetReadDeadline implements driver.Conn.
func (w *Wire) SetReadDeadline(at time.Time) error {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	w.Deadline = at
	return nil
}

// SetWriteDeadline implements driver.Conn.
func (w *Wire) SetWriteDeadline(at time.Time) error {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	w.Until = at
	return nil
}

// Context implements driver.Conn.
func (w *Wire) Context() context.Context { return w.ctx }

// RTT implements driver.Conn.
func (w *Wire) RTT() time.Duration { return time.Duration(w.Trip.Load()) }

// RemoteAddr implements driver.Conn.
func (w *Wire) RemoteAddr() net.Addr { return w.Addr.Load() }

// Err implements driver.Conn.
func (w *Wire) Err() error { return ErrGone }

// Closed implements driver.Conn.
func (w *Wire) Closed() transport.Closed {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	return w.Why
}

// Close implements driver.Conn.
func (w *Wire) Close(code transport.Code, text string) {
	w.Mu.Lock()
	w.Closes = append(w.Closes, transport.Closed{Code: code, Text: text})
	w.Mu.Unlock()
	w.Cut()
	w.takes()
}

// Merged is a wire on which one goroutine reads stream and datagrams, as on a socket. It is a
// driver.Merged.
type Merged struct {
	*Wire
	Broken error // of an announced datagram

	gram []byte // announced
}

// Next implements driver.Merged.
func (m *Merged) Next() (datagram bool, err error) {
	for len(m.Rest) == 0 {
		select {
		case m.gram = <-m.Grams:
			return true, nil
		case m.Rest = <-m.Stream:
			if len(m.Rest) == 0 {
				return false, io.EOF
			}
		case <-m.ctx.Done():
			return false, ErrGone
		}
	}
	return false, nil
}

// ReceiveDatagram implements driver.Conn.
func (m *Merged) ReceiveDatagram() ([]byte, error) {
	if m.gram == nil {
		panic("a datagram is read that was not announced")
	}
	b := m.gram
	m.gram = nil
	return b, m.Broken
}
