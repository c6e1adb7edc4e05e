package sealed

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Records are counted by their fate.
func TestArrivalsAreCounted(t *testing.T) {
	w := newWorld(t)
	w.play(time.Second)
	p := w.capture(1)
	s := &w.server.stats
	for _, c := range []struct {
		name   string
		count  *atomic.Uint64
		change func(b []byte) []byte
	}{
		{"a short one", &s.Invalid, func(b []byte) []byte { return b[:Overhead-1] }},
		{"one with padding", &s.Invalid, func(b []byte) []byte { b[0] |= 32; return b }},
		{"one of no connection", &s.Unknown, func(b []byte) []byte { b[8]++; return b }},
		{"a forged one", &s.Forged, func(b []byte) []byte { b[len(b)-1]++; return b }},
		{"a good one", &s.Received, func(b []byte) []byte { return b }},
		{"a repeated one", &s.Invalid, func(b []byte) []byte { return b }},
	} {
		before, all := c.count.Load(), s.sum()
		w.server.table.Receive(c.change(bytes.Clone(p.b)), p.from, nil, 0)
		if c.count.Load() != before+1 || s.sum() != all+1 {
			t.Errorf("%s is not counted once, or elsewhere", c.name)
		}
	}
}

func (s *Stats) sum() uint64 {
	return s.Received.Load() + s.Unknown.Load() + s.Invalid.Load() + s.Forged.Load() + s.Throttled.Load()
}

// A second channel with an id stays with QUIC, and does not take the first one's records, also not
// when it ends. The id is free once the first one has ended.
func TestTwoChannelsOfOneID(t *testing.T) {
	w := newWorld(t)
	second := w.end("192.0.2.9:1", 1)
	second.Channel = w.server.table.open(second.keys, net.UDPAddrFromAddrPort(second.addr), func() {})
	before := len(w.sent)
	second.start()
	if len(w.sent) != before {
		t.Error("the second channel probes")
	}
	second.Stop()
	w.run(time.Second)
	w.active(true)
	w.server.Stop()
	third := w.end("192.0.2.9:1", 1)
	third.Channel = w.server.table.open(third.keys, net.UDPAddrFromAddrPort(third.addr), func() {})
	if third.start(); len(w.server.table.channels) != 1 {
		t.Error("the id is not free again")
	}
	if w.server.Stop(); len(w.server.table.channels) != 1 {
		t.Error("an ended channel removes another one")
	}
}

// The timer runs while there are channels.
func TestAnEmptyTableHasNoTimer(t *testing.T) {
	w := newWorld(t)
	w.run(time.Second)
	w.client.Stop()
	w.server.Stop()
	for _, e := range w.ends() {
		if all := e.table.all; cap(all) == 0 || all[:1][0] != nil {
			t.Errorf("the timer's list holds %v", all[:cap(all)])
		}
	}
	w.run(time.Second)
	if len(w.timers) > 0 {
		t.Errorf("%d timers run", len(w.timers))
	}
	w.client.start()
	w.client.stopped = false
	second := w.end("192.0.2.9:1", 2)
	second.Channel = w.client.table.open(second.keys, net.UDPAddrFromAddrPort(second.addr), func() {})
	second.start()
	w.drops = func(packet) bool { return true }
	if w.run(time.Second); len(w.timers) != 1 || len(w.client.table.channels) != 2 {
		t.Errorf("%d timers run for %d channels", len(w.timers), len(w.client.table.channels))
	}
}

// distinct chooses the hash of the server's throttle so that addresses have different counters.
func distinct(w *world, addrs ...string) {
	t := &w.server.table.throttle
	for seen := map[*uint16]bool{}; len(seen) < len(addrs); {
		t.init()
		clear(seen)
		for _, addr := range addrs {
			seen[t.bucket(w.server.counter(netip.MustParseAddrPort(addr)))] = true
		}
	}
}

// A site that forges records has few of them examined in a second. Records of other sites, and the
// peer's own, are examined.
func TestForgedRecordsAreThrottled(t *testing.T) {
	w := newWorld(t)
	w.play(time.Second)
	w.server.local = ""
	forged := w.capture(1)
	forged.b[len(forged.b)-1]++
	distinct(w, "198.51.100.1:1", "203.0.113.1:1", "192.0.2.2:2000", "[2001:db8::1]:1", w.client.addr.String())
	s := &w.server.stats
	flood := func(n int, from func(i int) string) (examined uint64) {
		before, throttled := s.Forged.Load(), s.Throttled.Load()
		for i := range n {
			p := forged
			p.from = netip.MustParseAddrPort(from(i))
			w.arrive(p)
		}
		examined = s.Forged.Load() - before
		if got := s.Throttled.Load() - throttled; got != uint64(n)-examined {
			t.Errorf("of %d records %d are examined, and %d throttled", n, examined, got)
		}
		return examined
	}
	same := func(addr string) func(int) string { return func(int) string { return addr } }
	ports := func(i int) string { return fmt.Sprintf("192.0.2.2:%d", 2000+i) }
	network := func(i int) string { return fmt.Sprintf("[2001:db8::%x:0:0:%x]:1", i%2<<15, i) }
	for second := range 3 {
		for name, from := range map[string]func(int) string{
			"one address":        same("198.51.100.1:1"),
			"its IPv6 form":      same("[::ffff:203.0.113.1]:1"),
			"a client's site":    ports,
			"a network":          network,
			"the peer's address": same(w.client.addr.String()),
		} {
			if n := flood(3*maxForged, from); n != maxForged {
				t.Errorf("second %d: of %s %d records are examined, want %d", second, name, n, maxForged)
			}
		}
		if n := flood(1, same("203.0.113.1:2")); n != 0 {
			t.Error("an address has another counter as an address of IPv6")
		}
		w.run(999 * ms)
		if n := flood(1, same("198.51.100.1:1")); n != 0 {
			t.Error("a forged record is examined within the second")
		}
		w.run(ms)
	}
	if n := s.Throttled.Load(); n < 3*(5*2*maxForged+2) {
		t.Errorf("%d records are counted as throttled", n)
	}
	// The peer's neighbours forge; the peer's records arrive.
	w.play(time.Second)
	flood(3*maxForged, ports)
	if _, n := w.play(200 * ms); n < 9 {
		t.Errorf("%d datagrams of 10 arrived", n)
	}
	if n := flood(1, network); n != 1 {
		t.Error("another site is throttled")
	}
}

// A second begins with its first forged record. Later ones do not extend it.
func TestAThrottledSecondEnds(t *testing.T) {
	var h throttle
	h.init()
	at := netip.MustParseAddrPort("198.51.100.1:0")
	for range maxForged {
		h.add(at, time.Second)
	}
	h.add(netip.MustParseAddrPort("203.0.113.1:0"), 2*time.Second-1)
	if !h.full(at, 2*time.Second-1) || h.full(at, 2*time.Second) {
		t.Error("forged records are not throttled for one second")
	}
}

// A peer shares its counter with no site, even at port 1.
func TestAPeerHasACounterOfItsOwn(t *testing.T) {
	var c Channel
	for port := range 10 {
		peer := netip.AddrPortFrom(netip.MustParseAddr("192.0.2.2"), uint16(port+1))
		c.peer.Store(net.UDPAddrFromAddrPort(peer))
		if other := netip.AddrPortFrom(peer.Addr(), 2000); c.counter(peer) == c.counter(other) {
			t.Errorf("%v shares its counter with %v", peer, other)
		}
	}
}

// A channel stops while records arrive at it, its timer runs, and its owner sends.
func TestAChannelStopsAtAnyTime(t *testing.T) {
	for range 20 {
		var wg, readers sync.WaitGroup
		var now, received [2]atomic.Int64
		addrs := [2]*net.UDPAddr{{IP: net.IPv4(192, 0, 2, 1), Port: 1}, {IP: net.IPv4(192, 0, 2, 2), Port: 2}}
		sockets := [2]chan []byte{make(chan []byte, 100), make(chan []byte, 100)}
		var channels [2]*Channel
		for i := range channels {
			table := NewTable(Config{
				Clock: func() time.Duration { return time.Duration(now[i].Add(int64(ms))) },
				After: func(_ time.Duration, do func()) { wg.Go(func() { runtime.Gosched(); do() }) },
				Write: func(b, _ []byte, _ *net.UDPAddr) error {
					select {
					case sockets[1-i] <- bytes.Clone(b):
					default:
					}
					return nil
				},
			})
			channels[i] = table.open(keysOf(1), addrs[1-i], []func(){func() {}, nil}[i])
			readers.Go(func() {
				for b := range sockets[i] {
					table.Receive(b, addrs[1-i].AddrPort(), []byte{1}, 0)
				}
			})
		}
		for i, c := range channels {
			c.Start(func([]byte, int, uint32, time.Duration) { received[i].Add(1) }, func() { c.Active(); c.RTT(); c.RemoteAddr() })
			wg.Go(func() {
				for received[1-i].Load() < 50 {
					c.Send(1, []byte("data"))
					c.PeerReturned()
					runtime.Gosched()
				}
			})
		}
		for received[0].Load() < 50 || received[1].Load() < 50 {
			runtime.Gosched()
		}
		for _, c := range channels {
			wg.Go(c.Stop)
		}
		wg.Wait()
		for _, s := range sockets {
			close(s)
		}
		readers.Wait()
		for _, c := range channels {
			if c.Active() || len(c.table.channels) > 0 {
				t.Error("a stopped channel is active, or in its table")
			}
		}
	}
}

// The id of a record is at its place.
func TestTheIDIsThatOfTheExporter(t *testing.T) {
	w := newWorld(t)
	for _, p := range w.sent {
		if id := binary.BigEndian.Uint32(p.b[8:]); id != 0x0a0b0c01 || id != w.server.id {
			t.Errorf("the id is %x", id)
		}
	}
	if t := NewTable(Config{}); t.cfg.Stats == nil {
		panic("a table without counts")
	}
}
