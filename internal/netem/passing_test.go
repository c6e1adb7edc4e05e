package netem

import (
	"net"
	"testing"
	"testing/synctest"
)

// flaky is a socket with an error that passes, before its first datagram.
type flaky struct {
	*sock
	failed bool
}

type passing struct{ error }

func (passing) Temporary() bool { return true }

func (f *flaky) ReadFrom(b []byte) (int, net.Addr, error) {
	if !f.failed {
		f.failed = true
		return 0, nil, passing{errBroken}
	}
	return f.sock.ReadFrom(b)
}

// A socket is read on after an error that passes, and the reader does not notice the error.
func TestAPassingErrorEndsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSock()
		c := Listen(&flaky{sock: s}, Config{})
		defer c.Close()
		go func() { // Without a receiver it waits until Close.
			select {
			case s.in <- Packet{Addr: peer(1), Data: payload(1)}:
			case <-s.closed:
			}
		}()
		synctest.Wait()
		select {
		case <-c.received:
		default:
			t.Fatal("no datagram arrives after the error")
		}
		if n, _, err := c.ReadFrom(make([]byte, maxPacket)); n != 100 || err != nil {
			t.Errorf("%d bytes, %v", n, err)
		}
	})
}
