package sealed

import (
	"net"
	"net/netip"
	"testing"
	"time"
)

// move gives the client another address.
func (w *world) move(addr string) netip.AddrPort {
	w.client.addr = netip.MustParseAddrPort(addr)
	return w.client.addr
}

// to returns the number of records and of bytes that were sent to an address, of datagrams only if
// datagrams is true.
func (w *world) to(addr netip.AddrPort, datagrams bool) (n, bytes int) {
	for _, p := range w.sent {
		if p.to == addr && (!datagrams || p.kind() == kindDatagram) {
			n, bytes = n+1, bytes+len(p.b)
		}
	}
	return n, bytes
}

// After its address changes, a client gets datagrams at the new one after a challenge: one round
// trip after its first record from there. It sends a packet of QUIC, so that QUIC follows.
func TestRecordsFollowTheClient(t *testing.T) {
	w := newWorld(t)
	w.play(time.Second)
	for i, addr := range []string{"192.0.2.3:1", "192.0.2.3:2", "198.51.100.1:1", "[2001:db8::1]:1", "192.0.2.2:1000", "192.0.2.2:1001"} {
		w.server.local = "local " + addr
		at := w.move(addr)
		began, from, nudges := w.now, len(w.sent), w.client.nudges
		before, _ := w.to(at, true)
		w.play(40 * ms) // The first record arrives after 20 ms.
		if n, _ := w.to(at, true); n != before {
			t.Fatalf("%d datagrams were sent to %v before it was proven", n-before, at)
		}
		c, s := w.play(60 * ms)
		if c == 0 || s != 3 {
			t.Errorf("at %v the client has got %d datagrams %v after the move, the server %d", at, c, w.now-began, s)
		}
		if got := w.server.RemoteAddr().(*net.UDPAddr).AddrPort(); got != at || w.server.stats.Moves.Load() != uint64(i+1) {
			t.Errorf("records are sent to %v, want %v, after %d moves", got, at, w.server.stats.Moves.Load())
		}
		if w.client.nudges == nudges {
			t.Error("QUIC does not follow")
		}
		for _, p := range w.sent[from:] {
			if p.from == w.server.addr && p.to == at && p.control != w.server.local {
				t.Errorf("record %d leaves from %q", p.kind(), p.control)
			}
		}
		w.play(time.Second)
		w.active(true)
	}
	if n := w.client.stats.Returns.Load() + w.server.stats.Returns.Load(); n > 0 {
		t.Errorf("the ends have returned to QUIC %d times", n)
	}
}

// The first datagram to a client's new address already leaves from the one to which the client sent
// its response.
func TestTheFirstRecordToANewAddressLeavesFromTheRightOne(t *testing.T) {
	w := newWorld(t)
	w.play(time.Second)
	at := w.move("192.0.2.3:1")
	w.server.local = "elsewhere"
	w.client.Send(1, []byte("data"))
	w.run(60 * ms) // To the server, its challenge, and the response.
	w.server.Send(1, []byte("data"))
	if p := w.sent[len(w.sent)-1]; p.to != at || p.control != "elsewhere" || w.server.next != nil {
		t.Errorf("a record is sent to %v from %q, and the server challenges %v", p.to, p.control, w.server.next)
	}
}

// A client does not follow its server: servers do not move.
func TestAClientDoesNotFollow(t *testing.T) {
	w := newWorld(t)
	w.play(time.Second)
	before := w.client.RemoteAddr()
	w.server.addr = netip.MustParseAddrPort("192.0.2.8:4433")
	w.server.Send(1, []byte("data"))
	w.run(time.Second)
	moved := w.count(func(p packet) bool { return p.kind() == kindMoved })
	if n, _ := w.to(w.server.addr, true); n+moved > 0 || w.client.RemoteAddr() != before {
		t.Errorf("%d datagrams and %d challenges were sent to the server's new address", n, moved)
	}
	if w.client.got[len(w.client.got)-1] != 1 {
		t.Error("a record from another address is not received")
	}
}

// capture returns the client's next record, which does not arrive.
func (w *world) capture(number uint32) packet {
	w.drops = func(packet) bool { return true }
	w.client.Send(number, []byte("data"))
	w.drops = nil
	return w.sent[len(w.sent)-1]
}

// An attacker on the path that sends copies of records from another address first gets challenges
// there, at most three times as many bytes, and no datagram. The client's next record ends it.
func TestACopyFromElsewhereMovesNothing(t *testing.T) {
	w := newWorld(t)
	w.play(time.Second)
	victim := netip.MustParseAddrPort("203.0.113.1:53")
	received := 0
	for i := range uint32(100) {
		p := w.capture(i)
		original := p
		p.from = victim
		received += len(p.b)
		w.server.local = "elsewhere"
		w.arrive(p)
		w.server.local = "at 192.0.2.1:4433"
		w.arrive(original) // It is a copy now.
		w.play(20 * ms)
		if n, bytes := w.to(victim, false); bytes > 3*received {
			t.Fatalf("%d records with %d bytes were sent to an address from which %d came", n, bytes, received)
		}
	}
	if n, _ := w.to(victim, true); n > 0 || w.server.stats.Moves.Load() > 0 {
		t.Errorf("%d datagrams were sent there", n)
	}
	if n, _ := w.to(victim, false); n == 0 {
		t.Error("no challenge was sent there")
	}
	if w.server.stats.Invalid.Load() != 100 || w.server.next != nil {
		t.Errorf("%d copies are counted, and the server challenges %v", w.server.stats.Invalid.Load(), w.server.next)
	}
	w.server.Send(1, []byte("data"))
	if p := w.sent[len(w.sent)-1]; p.control != "at 192.0.2.1:4433" {
		t.Errorf("records leave from %q", p.control)
	}
	w.active(true)
}

// An address that sends all records but answers no challenge gets at most three times their bytes,
// and no bytes once they end.
func TestAnAddressThatDoesNotAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		next  func(w *world) packet
		rtt   time.Duration
		moved int // challenges in 2 s, of which the first is sent at once
	}{
		"datagrams":      {func(w *world) packet { return w.capture(1) }, 40 * ms, 25},
		"challenges":     {func(w *world) packet { return w.captureOf(kindChallenge) }, 40 * ms, 25},
		"on a slow path": {func(w *world) packet { return w.capture(1) }, 400 * ms, 10},
	} {
		w := newWorld(t)
		w.play(time.Second)
		victim, received := netip.MustParseAddrPort("203.0.113.1:53"), 0
		for range 200 {
			w.server.path.rtt = c.rtt
			p := c.next(w)
			p.from = victim
			received += len(p.b)
			w.arrive(p)
			w.run(10 * ms)
			if _, bytes := w.to(victim, false); bytes > 3*received {
				t.Fatalf("%s: %d bytes were sent to an address from which %d came", name, bytes, received)
			}
		}
		moved := w.count(func(p packet) bool { return p.kind() == kindMoved })
		if moved != c.moved {
			t.Errorf("%s: %d challenges in 2 s, want %d", name, moved, c.moved)
		}
		before, _ := w.to(victim, false)
		w.run(time.Minute)
		if n, _ := w.to(victim, false); n != before {
			t.Errorf("%s: %d records were sent to a silent address", name, n-before)
		}
		if n, _ := w.to(victim, true); n > 0 {
			t.Errorf("%s: %d datagrams were sent there", name, n)
		}
	}
}

// captureOf returns a record of the client of another kind, which does not arrive.
func (w *world) captureOf(kind byte) packet {
	w.drops = func(packet) bool { return true }
	w.client.mu.Lock()
	w.client.askLocked(w.now, kind, w.client.peer.Load(), nil)
	w.client.mu.Unlock()
	w.drops = nil
	return w.sent[len(w.sent)-1]
}

// A late record from a former address moves nothing, and is received.
func TestOnlyTheNewestRecordMoves(t *testing.T) {
	w := newWorld(t)
	w.play(time.Second)
	late := w.capture(4711)
	w.move("192.0.2.3:1")
	w.play(time.Second)
	moves := w.server.stats.Moves.Load()
	challenges := w.count(func(p packet) bool { return p.kind() == kindMoved })
	w.arrive(late)
	w.play(time.Second)
	if w.server.stats.Moves.Load() != moves || w.count(func(p packet) bool { return p.kind() == kindMoved }) != challenges {
		t.Error("a late record moves the path")
	}
	if n := 0; true {
		for _, got := range w.server.got {
			if got == 4711 {
				n++
			}
		}
		if n != 1 {
			t.Errorf("the late record was received %d times", n)
		}
	}
}
