package wsnet

import (
	"errors"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/netloop/netloop/internal/transport"
)

// asked is a socket of which a test counts how often the kernel is asked about it.
type asked struct {
	syscall.RawConn
	times int
}

func (a *asked) Control(fn func(fd uintptr)) error {
	a.times++
	return a.RawConn.Control(fn)
}

// lagging returns a connection to a peer that does not read, with more unsent bytes than a
// writer may add to.
func lagging(t *testing.T) (*Conn, *asked) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	socket, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = socket.Close() })
	_ = socket.SetWriteDeadline(time.Now().Add(200 * time.Millisecond))
	for err == nil { // Until the buffers of both ends are full.
		_, err = socket.Write(make([]byte, 64<<10))
	}
	c := newConn(socket)
	a := &asked{RawConn: c.kernel.socket}
	if c.kernel.socket = a; c.kernel.unsent() <= maxUnsent {
		t.Fatalf("%d bytes are unsent", c.kernel.unsent())
	}
	a.times = 0
	return c, a
}

// A writer that waits for a peer asks the kernel every behindStep and sleeps in between, so that a
// client that does not read costs no processor time.
func TestWritersThatWaitSleep(t *testing.T) {
	c, kernel := lagging(t)
	const wait = 100 * time.Millisecond
	c.writeBy.Store(int64(time.Since(c.began) + wait))
	if err := c.drained(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the stream's writer: %v", err)
	}
	if most := int(wait/behindStep) + 2; kernel.times < 1 || kernel.times > most {
		t.Errorf("the kernel was asked %d times in %v, want %d at most", kernel.times, wait, most)
	}
	began := time.Now()
	if err := c.SendDatagram([]byte{1}); !errors.Is(err, transport.ErrBehind) {
		t.Errorf("a datagram: %v", err)
	}
	if waited := time.Since(began); waited < maxBehind {
		t.Errorf("a datagram was given up after %v, want %v at least", waited, maxBehind)
	}
}
