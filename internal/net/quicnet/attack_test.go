package quicnet

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/ipv4"

	"github.com/netloop/netloop/internal/net/sealed"
	"github.com/netloop/netloop/internal/testing/nettest"
	"github.com/netloop/netloop/internal/transport"
)

// tap is a client's socket: an attacker reads the records that it sends.
type tap struct {
	net.PacketConn
	mu      sync.Mutex
	records [][]byte
}

func (s *tap) WriteTo(b []byte, to net.Addr) (int, error) {
	if sealed.Is(b) {
		s.mu.Lock()
		s.records = append(s.records, bytes.Clone(b))
		s.mu.Unlock()
	}
	return s.PacketConn.WriteTo(b, to)
}

// SetReadBuffer and SetWriteBuffer keep quic-go from logging.
func (s *tap) SetReadBuffer(int) error  { return nil }
func (s *tap) SetWriteBuffer(int) error { return nil }

// seen returns the sent records.
func (s *tap) seen() [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.records)
}

// tapped connects a client behind a tap, and waits until both ends send records.
func tapped(t *testing.T, h *host) (*testClient, *tap) {
	t.Helper()
	socket, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	s := &tap{PacketConn: socket}
	d := NewDialerOn(s)
	t.Cleanup(func() { _ = d.Close() })
	g := mustDial(t, h, d)
	nettest.Eventually(t, "records in both directions", func() bool {
		g.chat(h, 1)
		return h.records().Received.Load() > 3 && h.records().Begins.Load() > 0
	})
	return g, s
}

func (h *host) records() *sealed.Stats { return h.listener.cfg.Records }

// chat sends an unreliable message each way.
func (g *testClient) chat(h *host, method uint32) {
	for _, s := range []*transport.Session{g.Session, h.session(g)} {
		s.Send(transport.Message{Method: method})
		s.Flush(0)
	}
}

// talks waits until an unreliable message has arrived at each end.
func (g *testClient) talks(t *testing.T, h *host, method uint32) {
	t.Helper()
	nettest.Eventually(t, "messages both ways", func() bool {
		g.chat(h, method)
		h.Poll()
		g.Poll()
		is := nettest.Message(method)
		return slices.ContainsFunc(h.Seen, func(a transport.Arrival) bool { return is(&a) }) &&
			slices.ContainsFunc(g.Seen, func(a transport.Arrival) bool { return is(&a) })
	})
}

// onEachSocket runs a test with each kind of a server's socket.
func onEachSocket(t *testing.T, test func(t *testing.T, h *host)) {
	for name, change := range map[string]func(*ServerConfig){
		"batched": nil,
		"plain":   func(c *ServerConfig) { c.PlainSocket = true },
		"wrapped": func(c *ServerConfig) {
			c.Through = func(s net.PacketConn) net.PacketConn { return &tap{PacketConn: s} }
		},
	} {
		t.Run(name, func(t *testing.T) { test(t, serve(t, change)) })
	}
}

// An attacker that reads the client's records sends copies, and forgeries with its id, from other
// sockets: the path is kept, the attacker gets no packet, and the client still sends records.
func TestForeignRecordsMoveNoClient(t *testing.T) {
	onEachSocket(t, func(t *testing.T, h *host) {
		g, s := tapped(t, h)
		attacker, err := net.Dial("udp", h.listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = attacker.Close() }()
		rng := rand.New(rand.NewPCG(1, 2))
		stats := h.records()
		for method := range uint32(20) {
			for _, b := range s.seen()[:3] {
				for kind := range byte(4) {
					forged := bytes.Clone(b)
					forged[1] = 96 + kind | b[1]&128
					forged[3+rng.IntN(2)*9] ^= 1 << rng.IntN(8)
					forged[len(forged)-1-rng.IntN(16)]++
					forged[1] ^= byte(rng.IntN(2)) << 7
					for _, p := range [][]byte{b, forged, forged[:rng.IntN(len(forged))]} {
						_, _ = attacker.Write(p)
					}
				}
			}
			g.talks(t, h, 100+method)
		}
		nettest.Eventually(t, "the forgeries to be counted", func() bool { return stats.Forged.Load() > 20 && stats.Invalid.Load() > 20 })
		before := stats.Received.Load()
		nettest.Eventually(t, "records of the client", func() bool {
			g.chat(h, 2)
			return stats.Received.Load() > before+3
		})
		if n := stats.Moves.Load(); n > 0 {
			t.Errorf("the path has moved %d times", n)
		}
		_ = attacker.SetReadDeadline(time.Now())
		if n, err := attacker.Read(make([]byte, 1500)); err == nil || !os.IsTimeout(err) {
			t.Errorf("the attacker has got %d bytes: %v", n, err)
		}
	})
}

// Of a flood of forged records only few are opened, and messages travel both ways.
func TestAFloodOfForgedRecords(t *testing.T) {
	onEachSocket(t, func(t *testing.T, h *host) {
		const packets, sockets, perSecond = 20_000, 4, 500
		g, s := tapped(t, h)
		forged := s.seen()[0]
		forged[len(forged)-1]++
		began := time.Now()
		var wg sync.WaitGroup
		for range sockets {
			attacker, err := net.Dial("udp", h.listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			wg.Go(func() {
				defer func() { _ = attacker.Close() }()
				for i := range packets / sockets {
					b := bytes.Clone(forged)
					b[2], b[3] = byte(i>>8), byte(i)
					_, _ = attacker.Write(b)
				}
			})
		}
		for method := range uint32(5) {
			g.talks(t, h, 200+method)
		}
		wg.Wait()
		g.talks(t, h, 300)
		stats := h.records()
		seconds := uint64(time.Since(began)/time.Second) + 2
		if n := stats.Forged.Load(); n > perSecond*seconds || n == 0 {
			t.Errorf("%d forged records were opened within %d s, %d were not", n, seconds, stats.Throttled.Load())
		}
		if stats.Throttled.Load() == 0 || stats.Moves.Load() > 0 {
			t.Errorf("%d were throttled, and the path has moved %d times", stats.Throttled.Load(), stats.Moves.Load())
		}
	})
}

// scripted is a socket with packets to read.
type scripted struct {
	net.PacketConn
	packets [][]byte
	buffers [2]int
}

func (s *scripted) SetReadBuffer(n int) error  { s.buffers[0] = n; return nil }
func (s *scripted) SetWriteBuffer(n int) error { s.buffers[1] = n; return nil }

func (s *scripted) ReadFrom(b []byte) (int, net.Addr, error) {
	if len(s.packets) == 0 {
		return 0, nil, os.ErrDeadlineExceeded
	}
	p := s.packets[0]
	s.packets = s.packets[1:]
	return copy(b, p), &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: int(p[1])}, nil
}

// A filtered socket has QUIC's packets in order, and the table the records.
func TestAFilterPassesRecordsOn(t *testing.T) {
	stats := new(sealed.Stats)
	table := newRecords(stats, nil)
	var packets [][]byte
	for i := range byte(20) {
		packets = append(packets, append([]byte{64 + i%3/2*64, i}, make([]byte, 30)...))
	}
	f := filtered(&scripted{packets: packets}, table)
	b := make([]byte, 100)
	for i := range byte(20) {
		if i%3 == 2 {
			continue
		}
		if n, from, err := f.ReadFrom(b); n != 32 || err != nil || b[1] != i || from.(*net.UDPAddr).Port != int(i) {
			t.Fatalf("instead of packet %d it is % x of %v: %v", i, b[:n], from, err)
		}
	}
	if _, _, err := f.ReadFrom(b); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the error is", err)
	}
	if n := stats.Unknown.Load(); n != 6 {
		t.Errorf("the table has got %d records of 6", n)
	}
	socket := new(scripted)
	if filtered(socket, nil) != net.PacketConn(socket) {
		t.Error("a socket without records is filtered")
	}
	f = filtered(socket, table)
	r, w := f.(*filter).SetReadBuffer(7), f.(*filter).SetWriteBuffer(8)
	if r != nil || w != nil || socket.buffers != [2]int{7, 8} {
		t.Errorf("the buffers have %d bytes: %v, %v", socket.buffers, r, w)
	}
	f = filtered(struct{ net.PacketConn }{socket}, table)
	if f.(*filter).SetReadBuffer(7) == nil || f.(*filter).SetWriteBuffer(8) == nil {
		t.Error("a socket without buffers has set their sizes")
	}
}

// A batch keeps QUIC's packets, with their addresses and control messages, in the buffers of their
// places.
func TestABatchIsFiltered(t *testing.T) {
	for records := range 1 << 5 {
		var ms []ipv4.Message
		var got, want []string
		for i := range 5 {
			first := byte(64)
			if records>>i&1 == 1 {
				first = 128
			}
			p, oob := []byte{first, byte(i), byte(i)}[:2+i%2], []byte{byte(i), byte(i)}[:1+i%2]
			m := ipv4.Message{Buffers: [][]byte{append(slices.Clone(p), make([]byte, 10)...)}, OOB: append(slices.Clone(oob), make([]byte, 10)...), N: len(p), NN: len(oob), Flags: i, Addr: &net.UDPAddr{Port: i}}
			if ms = append(ms, m); first == 64 {
				want = append(want, fmt.Sprintf("%x %x %d %v", p, oob, i, m.Addr))
			}
		}
		buffers := slices.Clone(ms)
		taken := 0
		s := &socket{take: func(b []byte, from netip.AddrPort, local []byte, waited time.Duration) bool {
			if len(b) != 2+int(from.Port())%2 || local != nil || waited != 0 {
				t.Errorf("taken % x of %v", b, from)
			}
			if b[0] == 64 {
				return false
			}
			taken++
			clear(b)
			return true
		}}
		kept := s.filter(ms)
		for i, m := range ms[:kept] {
			got = append(got, fmt.Sprintf("%x %x %d %v", m.Buffers[0][:m.N], m.OOB[:m.NN], m.Flags, m.Addr))
			if &m.Buffers[0][0] != &buffers[i].Buffers[0][0] || &m.OOB[0] != &buffers[i].OOB[0] {
				t.Fatalf("message %d has another one's buffer", i)
			}
		}
		if !slices.Equal(got, want) || taken != 5-len(want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	ms := []ipv4.Message{{Buffers: [][]byte{{128}}, N: 1, Addr: &net.UDPAddr{}}}
	if n := new(socket).filter(ms); n != 1 {
		t.Error("without a table QUIC does not get all packets")
	}
}

// A socket without batches passes records on as well.
func TestASocketWithoutBatchesIsFiltered(t *testing.T) {
	udp, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	stats := new(sealed.Stats)
	for _, records := range []*sealed.Table{newRecords(stats, nil), nil} {
		s := newSocket(udp, takerOf(records), nil)
		for _, first := range []byte{128, 64} {
			if _, err := udp.WriteTo(append([]byte{first}, make([]byte, 40)...), udp.LocalAddr()); err != nil {
				t.Fatal(err)
			}
		}
		b := make([]byte, 100)
		if n, _, _, _, err := s.ReadMsgUDP(b, nil); n != 41 || b[0] != 64 && records != nil || b[0] != 128 && records == nil || err != nil {
			t.Errorf("it has read % x: %v", b[:n], err)
		}
	}
	_ = udp.Close()
	if n, _, _, _, err := newSocket(udp, takerOf(newRecords(stats, nil)), nil).ReadMsgUDP(make([]byte, 9), nil); err == nil {
		t.Errorf("a closed socket has read %d bytes", n)
	}
	if n := stats.Unknown.Load(); n != 1 {
		t.Errorf("the table has got %d records of 1", n)
	}
}

// offering is a socket that sends records without waiting.
type offering struct {
	net.PacketConn
	b, local string
	to       *net.UDPAddr
}

func (s *offering) Offer(b, local []byte, to *net.UDPAddr) error {
	s.b, s.local, s.to = string(b), string(local), to
	return nil
}

// A record leaves by Offer, where a socket has that, from the local address.
func TestRecordsAreOffered(t *testing.T) {
	s, to := new(offering), new(net.UDPAddr)
	if err := writeRecord(s, []byte("record"), []byte("local"), to); err != nil || s.b != "record" || s.local != "local" || s.to != to {
		t.Errorf("offered %q from %q to %v: %v", s.b, s.local, s.to, err)
	}
}
