package sealed

import (
	"bytes"
	"net/netip"
	"testing"
	"time"
)

// FuzzReceive: packets of any bytes, from any address, have no effect but counts, and at most one
// record is sent for each: the client's own records are received before and afterwards. A packet is
// cut from the input by its first byte, which is its length.
func FuzzReceive(f *testing.F) {
	f.Fuzz(func(t *testing.T, b []byte) {
		w := newWorld(t)
		w.play(200 * ms)
		from := []netip.AddrPort{w.client.addr, netip.MustParseAddrPort("203.0.113.1:53"), netip.MustParseAddrPort("[2001:db8::1]:1")}
		for i := 0; i < maxForged && len(b) > 0; i++ {
			n := min(int(b[0]), len(b)-1)
			packet := bytes.Clone(b[1 : 1+n])
			b = b[1+n:]
			s := &w.server.stats
			received, all, sent := s.Received.Load(), s.sum(), s.Sent.Load()
			w.server.table.Receive(packet, from[i%len(from)], nil, 0)
			if s.Received.Load() != received || s.sum() != all+1 || s.Sent.Load() != sent {
				t.Fatalf("the packet % x is received", packet)
			}
		}
		if _, n := w.play(time.Second); n != 50 {
			t.Fatalf("of 50 datagrams %d arrived afterwards", n)
		}
		w.active(true)
	})
}

// FuzzRecord: an authentic record of any kind, number, data and address is received, and causes no
// more than three times its bytes to an address that has proven nothing.
func FuzzRecord(f *testing.F) {
	f.Fuzz(func(t *testing.T, kind byte, number uint32, data []byte, moves bool) {
		if len(data) > 1200 {
			return
		}
		w := newWorld(t)
		w.play(200 * ms)
		w.client.receive, w.server.receive = ignore, ignore
		at := w.client.addr
		if moves {
			at = netip.MustParseAddrPort("203.0.113.1:53")
		}
		w.drops = func(packet) bool { return true }
		w.client.mu.Lock()
		w.client.sendLocked(kind&^phaseBit, number, data, w.client.peer.Load(), nil)
		w.client.mu.Unlock()
		w.drops = nil
		p := w.sent[len(w.sent)-1]
		p.from = at
		received := w.server.stats.Received.Load()
		w.arrive(p)
		w.arrive(p)
		if w.server.stats.Received.Load() != received+1 || w.server.stats.Invalid.Load() != 1 {
			t.Fatal("it is not received once")
		}
		w.run(10 * time.Second)
		if _, bytes := w.to(at, false); moves && bytes > 3*len(p.b) {
			t.Fatalf("%d bytes were sent for %d", bytes, len(p.b))
		}
	})
}
