package wsnet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/coder/websocket"
	"golang.org/x/time/rate"

	"github.com/netloop/netloop/internal/net/driver"
	"github.com/netloop/netloop/internal/transport"
)

// The first byte of a message, which tells the kind of its data.
const (
	streamMessage   = 0
	datagramMessage = 1
)

const (
	// Protocol is the WebSocket subprotocol of both ends.
	Protocol = "netloop.1"
	// MaxMessage is the size in bytes of the largest message, including its first byte. A sender
	// splits longer stream data.
	MaxMessage = 1 + 32<<10
	// streamPiece is the largest amount of stream data in one message that this end sends.
	streamPiece = 4 << 10
	// messageRate is the number of messages per second that an end accepts, in bursts of
	// messageBurst, regardless of their size: each message takes a microsecond before its bytes are
	// counted.
	messageRate  = 6000
	messageBurst = 10_000
	// controlRate is the number of pings and pongs per second that an end accepts, in bursts of
	// controlBurst.
	controlRate  = 10
	controlBurst = 50
	// maxUnsent is the number of unsent bytes in the kernel up to which a datagram is written, and
	// maxUnsentStream is the same number for stream data: the congestion window and a few packets,
	// so that TCP sends written data within moments.
	maxUnsent       = 6 << 10
	maxUnsentStream = 3 << 10
	// maxBehind is the longest time for which a datagram waits until fewer bytes are unsent. After
	// that it is dropped: the next datagram will contain newer data.
	maxBehind = 100 * time.Millisecond
	// behindStep is the interval at which a waiting writer checks the number of unsent bytes.
	behindStep = 2 * time.Millisecond
)

// Close codes: firstStatus plus the code of netloop, at most lastStatus. The exact code and text
// are in the stream's last frame.
const (
	firstStatus = 4000
	lastStatus  = 4999
	maxReason   = 123 // bytes of a close frame's text (RFC 6455, section 5.5)
)

// Conn is a WebSocket as a driver.Conn.
type Conn struct {
	ws     *websocket.Conn
	socket net.Conn // under the WebSocket and TLS
	kernel kernel   // queries the socket
	remote net.Addr
	ctx    context.Context
	cancel context.CancelFunc

	// Only the reading goroutine uses these.
	message  io.Reader // the current message; nil: none
	datagram bool      // message is a datagram
	ahead    [1]byte   // the next byte of message, if peeked
	peeked   bool
	first    [1]byte
	scratch  [transport.MaxDatagram + 1]byte
	taken    *rate.Limiter // messages
	control  *rate.Limiter // pings and pongs

	out   [1 + transport.MaxDatagram]byte // used by the goroutine that sends datagrams
	piece []byte                          // used by the goroutine that writes the stream
	began time.Time
	rtt   atomic.Int64 // measured by the last ping
	// Times in nanoseconds since began; 0: none.
	waits   atomic.Int64 // start of the blocked read of the socket
	writeBy atomic.Int64 // the write deadline

	mu  sync.Mutex
	why *transport.Closed // under mu: the first reason for the connection's end
	err error             // under mu: the error of the socket
}

var _ driver.Merged = (*Conn)(nil)

// newConn returns a Conn of a socket. open sets its WebSocket.
func newConn(socket net.Conn) *Conn {
	c := &Conn{
		socket: socket, kernel: newKernel(socket), remote: socket.RemoteAddr(), began: time.Now(),
		taken: rate.NewLimiter(messageRate, messageBurst), control: rate.NewLimiter(controlRate, controlBurst),
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// open sets the WebSocket.
func (c *Conn) open(ws *websocket.Conn) {
	c.ws = ws
	ws.SetReadLimit(MaxMessage)
}

// observedConn is the socket, with or without TLS, as the WebSocket reads it. It stores the start
// of each blocked read: between messages, inside one, or for the answer to a close.
type observedConn struct {
	net.Conn
	owner *Conn
}

// Read implements net.Conn.
func (w observedConn) Read(b []byte) (int, error) {
	w.owner.waits.Store(int64(time.Since(w.owner.began)))
	defer w.owner.waits.Store(0)
	return w.Conn.Read(b)
}

// silence returns the time for which the server has waited for bytes of the peer, or 0 if the
// server is not reading.
func (c *Conn) silence() time.Duration {
	since := c.waits.Load()
	if since == 0 {
		return 0
	}
	return time.Since(c.began) - time.Duration(since)
}

// Next implements driver.Merged.
func (c *Conn) Next() (datagram bool, err error) {
	for {
		if c.message == nil {
			if err := c.nextMessage(); err != nil {
				return false, err
			}
		}
		if c.datagram || c.peeked {
			return c.datagram, nil
		}
		switch _, err := io.ReadFull(c.message, c.ahead[:]); {
		case errors.Is(err, io.EOF):
			c.message = nil
		case err != nil:
			return false, c.failed(err)
		default:
			c.peeked = true
		}
	}
}

// nextMessage waits for a message and reads its first byte.
func (c *Conn) nextMessage() error {
	kind, message, err := c.ws.Reader(context.Background()) // Returns when the socket is closed.
	switch {
	case err != nil:
		return c.failed(err)
	case !c.taken.Allow():
		return c.refuse(transport.CodeFlood, "too many messages at once")
	case kind != websocket.MessageBinary:
		return c.refuse(transport.CodeProtocol, "message is text, not binary")
	}
	switch _, err := io.ReadFull(message, c.first[:]); {
	case errors.Is(err, io.EOF):
		return c.refuse(transport.CodeProtocol, "message is empty")
	case err != nil:
		return c.failed(err)
	case c.first[0] > datagramMessage:
		return c.refuse(transport.CodeProtocol, fmt.Sprintf("message begins with %d, not 0 or 1", c.first[0]))
	}
	c.message, c.datagram = message, c.first[0] == datagramMessage
	return nil
}

// Peek implements driver.Conn. Datagrams that arrive during Peek are lost.
func (c *Conn) Peek(b []byte) (int, error) {
	for {
		datagram, err := c.Next()
		if err != nil {
			return 0, err
		}
		if !datagram {
			return copy(b, c.ahead[:]), nil
		}
		if _, err := c.ReceiveDatagram(); err != nil {
			return 0, err
		}
	}
}

// Read implements driver.Conn.
func (c *Conn) Read(b []byte) (int, error) {
	n, err := c.Peek(b)
	if err != nil || n == 0 {
		return 0, err
	}
	if c.peeked = false; len(b) == 1 {
		return 1, nil
	}
	n, err = c.message.Read(b[1:])
	switch {
	case errors.Is(err, io.EOF):
		c.message = nil
	case err != nil:
		return 1 + n, c.failed(err)
	}
	return 1 + n, nil
}

// ReceiveDatagram implements driver.Conn: it returns the datagram that Next reported. If the
// datagram is too large, it is cut to a size that the caller still refuses as too large.
func (c *Conn) ReceiveDatagram() ([]byte, error) {
	n, err := io.ReadFull(c.message, c.scratch[:])
	if err == nil {
		_, err = io.Copy(io.Discard, c.message)
	}
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, c.failed(err)
	}
	c.message = nil
	return bytes.Clone(c.scratch[:n]), nil
}

// Write implements driver.Conn.
func (c *Conn) Write(b []byte) (n int, err error) {
	for len(b) > 0 {
		if err := c.drained(); err != nil {
			return n, err
		}
		k := min(len(b), streamPiece)
		c.piece = append(append(c.piece[:0], streamMessage), b[:k]...)
		if err := c.ws.Write(context.Background(), websocket.MessageBinary, c.piece); err != nil {
			return n, c.failed(err)
		}
		b, n = b[k:], n+k
	}
	return n, nil
}

// drained waits until the kernel has sent most of the written bytes, until the write deadline, or
// until the connection has ended, which the next write reports.
func (c *Conn) drained() error {
	for c.kernel.unsent() > maxUnsentStream && c.ctx.Err() == nil {
		if by := c.writeBy.Load(); by != 0 && int64(time.Since(c.began)) >= by {
			return c.failed(os.ErrDeadlineExceeded)
		}
		time.Sleep(behindStep)
	}
	return nil
}

// SendDatagram implements driver.Conn.
func (c *Conn) SendDatagram(b []byte) error {
	if len(b) > transport.MaxDatagram {
		return transport.ErrDatagramTooLarge
	}
	for waited := time.Duration(0); c.kernel.unsent() > maxUnsent; waited += behindStep {
		if waited >= maxBehind || c.ctx.Err() != nil {
			return transport.ErrBehind
		}
		time.Sleep(behindStep)
	}
	c.out[0] = datagramMessage
	if err := c.ws.Write(context.Background(), websocket.MessageBinary, c.out[:1+copy(c.out[1:], b)]); err != nil {
		return c.failed(err)
	}
	return nil
}

// SetReadDeadline implements driver.Conn. While this end closes, the deadline of Close is kept.
func (c *Conn) SetReadDeadline(at time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.why != nil {
		return nil
	}
	return c.socket.SetReadDeadline(at)
}

// SetWriteDeadline implements driver.Conn. While this end closes, the deadline of Close is kept.
func (c *Conn) SetWriteDeadline(at time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.why != nil {
		return nil
	}
	return c.writeUntilLocked(at)
}

func (c *Conn) writeUntilLocked(at time.Time) error {
	by := int64(0)
	if !at.IsZero() {
		by = max(1, int64(at.Sub(c.began)))
	}
	c.writeBy.Store(by)
	return c.socket.SetWriteDeadline(at)
}

// CloseWrite implements driver.Conn. It has no effect: the close frame ends the stream.
func (c *Conn) CloseWrite() error { return nil }

// Context implements driver.Conn.
func (c *Conn) Context() context.Context { return c.ctx }

// Err implements driver.Conn.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return c.err
	}
	if c.why == nil {
		return nil
	}
	return c.why
}

// Closed implements driver.Conn.
func (c *Conn) Closed() transport.Closed {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.why == nil {
		return transport.Closed{Code: transport.CodeLost, Text: "socket is closed"}
	}
	return *c.why
}

// RTT implements driver.Conn.
func (c *Conn) RTT() time.Duration {
	if rtt := c.kernel.rtt(); rtt > 0 {
		return rtt
	}
	return time.Duration(c.rtt.Load())
}

// RemoteAddr implements driver.Conn.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// Close implements driver.Conn. It waits for the peer's answer, at most driver.Linger.
func (c *Conn) Close(code transport.Code, text string) {
	c.mu.Lock()
	if c.why == nil {
		c.why = &transport.Closed{Code: code, Text: text}
		until := time.Now().Add(driver.Linger)
		_ = c.writeUntilLocked(until)       // An error means that the socket
		_ = c.socket.SetReadDeadline(until) // has ended already.
	}
	c.mu.Unlock()
	_ = c.ws.Close(status(code), reason(text))
	c.cancel()
}

// refuse closes a connection after a protocol violation of the peer, on the reading goroutine.
func (c *Conn) refuse(code transport.Code, text string) error {
	c.Close(code, text)
	return &transport.Closed{Code: code, Text: text}
}

// because sets the reason for the end of the connection, and reports false if it is set already.
func (c *Conn) because(why transport.Closed, err error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.why != nil {
		return false
	}
	c.why, c.err = &why, err
	return true
}

// failed handles an error of the socket, which has ended unless a deadline has passed. The result
// is never io.EOF: only a close frame ends the stream.
func (c *Conn) failed(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) && !c.ending() {
		return os.ErrDeadlineExceeded
	}
	_ = c.because(closedBy(err), err)
	_ = c.ws.CloseNow()
	c.cancel()
	return fmt.Errorf("websocket: %v", err) //nolint:errorlint // See above.
}

// ending reports whether this end has begun to close.
func (c *Conn) ending() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.why != nil
}

// closedBy converts the error of a socket to a code and a text. When a user leaves the page, the
// browser closes without a code of the page: the connection is lost, and the player may resume.
func closedBy(err error) transport.Closed {
	var said websocket.CloseError
	switch {
	case errors.As(err, &said) && said.Code == lastStatus:
		return transport.Closed{Code: transport.CodeGame, Text: said.Reason, Remote: true}
	case errors.As(err, &said) && said.Code >= firstStatus && said.Code < lastStatus:
		return transport.Closed{Code: transport.Code(said.Code - firstStatus), Text: said.Reason, Remote: true}
	case errors.As(err, &said):
		return transport.Closed{Code: transport.CodeLost, Text: fmt.Sprintf("peer closed the socket with status %d", said.Code)}
	case errors.Is(err, websocket.ErrMessageTooBig):
		return transport.Closed{Code: transport.CodeProtocol, Text: fmt.Sprintf("message is larger than %d bytes", MaxMessage)}
	case errors.Is(err, io.EOF), errors.Is(err, net.ErrClosed):
		return transport.Closed{Code: transport.CodeLost, Text: "socket is closed"}
	}
	return transport.Closed{Code: transport.CodeLost, Text: err.Error()}
}

// status returns the close code of a WebSocket for a code of netloop.
func status(code transport.Code) websocket.StatusCode {
	return firstStatus + websocket.StatusCode(min(code, lastStatus-firstStatus))
}

// reason returns the text, cut to the size of a close frame.
func reason(text string) string {
	text = strings.ToValidUTF8(text, "?")
	if len(text) <= maxReason {
		return text
	}
	end := maxReason
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}
