package driver

import (
	"bytes"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/netloop/netloop/internal/testing/nettest"
	"github.com/netloop/netloop/internal/transport"
)

// sideway is a way beside a wire.
type sideway struct {
	receive  func(b []byte, at int, number uint32, waited time.Duration)
	changed  func()
	active   atomic.Bool
	sends    atomic.Int32
	numbers  []uint32
	sent     [][]byte
	returned int
	stopped  bool
	addr     *net.UDPAddr
}

func (s *sideway) Start(receive func([]byte, int, uint32, time.Duration), changed func()) {
	s.receive, s.changed = receive, changed
}
func (s *sideway) Stop()        { s.stopped = true }
func (s *sideway) Active() bool { return s.active.Load() }
func (s *sideway) Send(number uint32, data []byte) {
	s.sends.Add(1)
	s.numbers, s.sent = append(s.numbers, number), append(s.sent, bytes.Clone(data))
}
func (s *sideway) PeerReturned()        { s.returned++ }
func (s *sideway) RTT() time.Duration   { return 30 * time.Millisecond }
func (s *sideway) RemoteAddr() net.Addr { return s.addr }

// sideWire is a wire with a way beside it.
type sideWire struct {
	*nettest.Wire
	side *sideway
}

func (w *sideWire) Beside() Beside { return w.side }

// besides runs a test with a rig that has a way beside its wire.
func besides(t *testing.T, test func(r *rig, s *sideway)) {
	s := &sideway{addr: &net.UDPAddr{IP: net.IPv4(10, 0, 0, 9), Port: 9}}
	playOn(t, func(w *nettest.Wire) Conn { return &sideWire{w, s} }, func(r *rig) { test(r, s) })
	if !s.stopped {
		t.Error("it is not stopped")
	}
}

// Datagrams are sent beside the connection while that is active, at once and with their numbers,
// and over it otherwise.
func TestDatagramsTravelBesideTheConnection(t *testing.T) {
	besides(t, func(r *rig, s *sideway) {
		if s.receive == nil {
			t.Fatal("it is not started")
		}
		say := func(method uint32) {
			r.Send(transport.Message{Method: method})
			r.Session.Flush(0)
		}
		if say(10); r.heard() != nil || len(s.sent) > 0 {
			t.Errorf("%d datagrams were sent beside the connection before it is active", len(s.sent))
		}
		s.active.Store(true)
		for method := range uint32(3) {
			if say(11 + method); len(s.sent) != int(method)+1 { // No other goroutine has run.
				t.Fatalf("%d datagrams were sent beside the connection", len(s.sent))
			}
		}
		for i, number := range s.numbers {
			if i > 0 && number != s.numbers[i-1]+1 {
				t.Errorf("the numbers are %v", s.numbers)
			}
			at := 20 + i
			r.far.ReceiveBorrowed(0, 0, transport.PutNumber(append(make([]byte, at), s.sent[i]...), at, uint64(number)))
		}
		s.active.Store(false)
		say(14)
		if err := r.heard(); err != nil {
			t.Error(err)
		}
		if got := methods(r.peers); len(got) != 7 || got[3] != 11 || got[6] != 14 {
			t.Error("the peer has got", got)
		}
	})
}

// A connection that blocks its datagrams blocks neither the session's owner nor the datagrams
// beside it.
func TestABlockedConnectionBlocksNoOwner(t *testing.T) {
	s := &sideway{addr: new(net.UDPAddr)}
	var block chan struct{}
	playOn(t, func(w *nettest.Wire) Conn { block = make(chan struct{}); return &blockedWire{sideWire{w, s}, block} }, func(r *rig) {
		s.active.Store(true)
		r.Send(transport.Message{Method: 10})
		r.Session.Flush(0)
		if synctest.Wait(); len(s.sent) != 1 {
			t.Errorf("%d datagrams were sent while the connection blocks, want 1", len(s.sent))
		}
		close(block)
		if synctest.Wait(); len(s.sent) != 1 {
			t.Errorf("%d datagrams were sent once the connection is free, want 1", len(s.sent))
		}
	})
}

// A datagram that waits behind a blocked one is sent beside the connection if that is active then.
func TestAWaitingDatagramTravelsBesideTheConnection(t *testing.T) {
	s := &sideway{addr: new(net.UDPAddr)}
	var block chan struct{}
	playOn(t, func(w *nettest.Wire) Conn { block = make(chan struct{}); return &blockedWire{sideWire{w, s}, block} }, func(r *rig) {
		r.Send(transport.Message{Method: 10})
		r.Session.Flush(0)
		if synctest.Wait(); len(s.sent) != 0 {
			t.Errorf("%d datagrams were sent beside the connection before it is active", len(s.sent))
		}
		s.active.Store(true)
		close(block)
		if synctest.Wait(); len(s.sent) != 1 {
			t.Errorf("%d datagrams were sent beside the connection, want 1", len(s.sent))
		}
	})
}

// blockedWire is a wire that does not take datagrams until block is closed.
type blockedWire struct {
	sideWire
	block chan struct{}
}

func (w *blockedWire) SendDatagram(b []byte) error {
	<-w.block
	return w.Wire.SendDatagram(b)
}

// A datagram that arrives beside the connection has its low 32 bits of the number: it is the one
// next to the highest that has arrived. It counts once, also if it arrives over the connection too,
// and only the latter is a return of the peer.
func TestDatagramsArriveBesideTheConnection(t *testing.T) {
	besides(t, func(r *rig, s *sideway) {
		arrive := func(number uint64) (is bool) {
			before := len(methods(r.own))
			r.peer.Send(transport.Message{Method: 1})
			r.peer.Flush(0)
			_ = r.far.SendDatagrams(func() time.Duration { return 0 }, func(b []byte) error {
				_, rest := transport.CutNumber(b)
				s.receive(append(make([]byte, 12), rest...), 12, uint32(number), 0)
				return nil
			})
			r.own.Poll()
			return len(methods(r.own)) > before
		}
		for _, c := range []struct {
			number uint64
			is     bool
		}{
			{1, true}, {3, true}, {2, true}, {3, false}, {1<<31 - 1, true}, {2, false}, {1<<32 - 2, true},
			{1 << 32, true}, {1<<32 - 1, true}, {1 << 32, false}, {1<<32 + 1, true}, {1<<32 - 1, false},
		} {
			if arrive(c.number) != c.is {
				t.Errorf("datagram %d arrives: %v", c.number, !c.is)
			}
		}
		if s.returned != 0 {
			t.Errorf("the peer has returned %d times", s.returned)
		}
		r.peer.Send(transport.Message{Method: 2})
		if r.says(); s.returned != 1 {
			t.Errorf("after a datagram over the connection the peer has returned %d times", s.returned)
		}
		r.Session.Close(transport.CodeKicked, "")
		before := r.stats.DatagramsIn.Load()
		if arrive(1<<32+2) || r.stats.DatagramsIn.Load() != before {
			t.Error("a datagram arrives at a closing session, or is counted")
		}
	})
}

// While it is active, the session's round trip and the client's address are those of the records.
func TestTheAddressIsThatOfTheRecords(t *testing.T) {
	besides(t, func(r *rig, s *sideway) {
		moved := func() (at string) {
			s.changed()
			synctest.Wait()
			r.own.Poll()
			for _, a := range r.own.Seen {
				if a.Kind == transport.Moved {
					at = a.Message.Text
				}
			}
			return at
		}
		if at := moved(); at != "" || r.LinkFacts().SRTT != r.Wire.RTT() {
			t.Errorf("before it is active the client has moved to %q, and the round trip is %v", at, r.LinkFacts().SRTT)
		}
		s.active.Store(true)
		if at := moved(); at != s.addr.String() || r.LinkFacts().SRTT != s.RTT() {
			t.Errorf("the client has moved to %q, and the round trip is %v", at, r.LinkFacts().SRTT)
		}
	})
}
