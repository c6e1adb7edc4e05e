package udpbatch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"

	"github.com/netloop/netloop/internal/testing/seeds"
)

func mustOffer(tb testing.TB, w *writer, b, control []byte, to *net.UDPAddr) {
	if err := w.Offer(b, control, to); err != nil {
		tb.Error("an offer failed:", err)
	}
}

// Offered packets and QUIC's leave in the order of the calls, each offered one as a message of its
// own, to which no later packet of QUIC is added.
func TestOffersLeaveInOrder(t *testing.T) {
	w, k := newWriter(t, Config{})
	open := make(chan struct{})
	k.fail = func(m [][][]byte) (int, error) { <-open; return len(m), nil }
	for _, p := range []struct {
		size  int
		offer bool
	}{{700, false}, {600, true}, {600, true}, {600, false}, {600, false}, {300, false}, {300, true}} {
		if p.offer {
			mustOffer(t, w, make([]byte, p.size), nil, peerAddr(1))
		} else {
			mustWrite(t, w, make([]byte, p.size), nil, peerAddr(1))
		}
	}
	close(open)
	w.close()
	if sizes := fmt.Sprint(sizesOf(k.sent[peerAddr(1).String()])); sizes != "[700 600 600 600 600 300 300]" {
		t.Errorf("packets of %s bytes were sent", sizes)
	}
	if w.cfg.Stats.Sent.Load() != 7 || w.cfg.Stats.Full.Load() != 0 {
		t.Errorf("%d packets are counted as sent", w.cfg.Stats.Sent.Load())
	}
	b := newBatch()
	b.add(make([]byte, 600), nil, peerAddr(1), false)
	b.messages[0].offered = true
	if b.add(make([]byte, 600), nil, peerAddr(1), true); len(b.messages) != 2 {
		t.Error("QUIC's packet is lost with an offered one")
	}
}

func sizesOf(packets [][]byte) (sizes []int) {
	for _, p := range packets {
		sizes = append(sizes, len(p))
	}
	return sizes
}

// An offer does not wait: while the kernel accepts no packets, a bounded number of offered packets
// waits, and further ones are lost and counted. QUIC's writers wait, and lose no packet.
func TestOffersDoNotWait(t *testing.T) {
	for _, size := range []int{1, 1200} {
		synctest.Test(t, func(t *testing.T) {
			w, k := newWriter(t, Config{})
			open := make(chan struct{})
			k.fail = func(m [][][]byte) (int, error) { <-open; return len(m), nil }
			mustWrite(t, w, []byte("first"), nil, peerAddr(1))
			synctest.Wait() // The sender waits for the kernel.
			const most = (maxReady + 1) * batchPackets
			full := 0
			for range 2 * most {
				if err := w.Offer(make([]byte, size), nil, peerAddr(2)); errors.Is(err, ErrFull) {
					full++
				} else if err != nil {
					t.Fatal(err)
				}
			}
			if full != most || w.cfg.Stats.Full.Load() != most {
				t.Errorf("%d offers fail, and %d are counted, want %d", full, w.cfg.Stats.Full.Load(), most)
			}
			var written atomic.Int64
			go func() {
				for range 300 {
					mustWrite(t, w, []byte("more"), nil, peerAddr(1))
					written.Add(1)
				}
			}()
			synctest.Wait()
			if n := written.Load(); n > 0 {
				t.Errorf("%d packets of QUIC found room", n)
			}
			close(open)
			synctest.Wait()
			if q, o := len(k.sent[peerAddr(1).String()]), len(k.sent[peerAddr(2).String()]); q != 301 || o != most {
				t.Errorf("%d packets of QUIC and %d offered ones were sent, want 301 and %d", q, o, most)
			}
		})
	}
}

// A writer that waits for room continues when an offer has made room.
func TestAWriterWaitsBesideOffers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, k := newWriter(t, Config{})
		open := make(chan struct{})
		k.fail = func(m [][][]byte) (int, error) { <-open; return len(m), nil }
		mustWrite(t, w, []byte("first"), nil, peerAddr(1))
		synctest.Wait()
		for range batchPackets {
			mustOffer(t, w, []byte("x"), nil, peerAddr(2))
		}
		go mustWrite(t, w, []byte("waits"), nil, peerAddr(1))
		synctest.Wait()
		mustOffer(t, w, []byte("turns"), nil, peerAddr(2))
		close(open)
		synctest.Wait()
		if q, o := len(k.sent[peerAddr(1).String()]), len(k.sent[peerAddr(2).String()]); q != 2 || o != batchPackets+1 {
			t.Errorf("%d packets of QUIC and %d offered ones were sent", q, o)
		}
	})
}

// An offered packet is not sent again if the kernel has no room, and is counted; QUIC's packets
// around it have all their tries.
func TestAnOfferIsNotRepeated(t *testing.T) {
	for _, reason := range []error{unix.EAGAIN, unix.ENOBUFS} {
		synctest.Test(t, func(t *testing.T) {
			var failed []error
			k := &wire{sent: make(map[string][][]byte)}
			calls := map[int]int{}
			k.fail = func(m [][][]byte) (int, error) {
				peer := int(m[0][0][0])
				if calls[peer]++; peer == 1 || peer == 2 || calls[peer] <= maxRetries {
					return 0, reason
				}
				return 1, nil
			}
			w := &writer{family: unix.AF_INET, cfg: &Config{Stats: new(Stats), Failed: func(err error) { failed = append(failed, err) }}, hand: k.hand}
			b := newBatch()
			for peer := range 5 {
				b.add([]byte{byte(peer)}, nil, peerAddr(peer), false)
				b.messages[peer].offered = peer == 1 || peer == 2
			}
			w.write(b)
			s := w.cfg.Stats
			if calls[1] != 1 || calls[2] != 1 || s.Full.Load() != 2 || s.Unsent.Load() != 0 || failed != nil {
				t.Errorf("%v: the offered packets had %d and %d tries, %d are counted", reason, calls[1], calls[2], s.Full.Load())
			}
			if s.Sent.Load() != 3 || s.Retries.Load() != 3*maxRetries {
				t.Errorf("%v: %d packets of QUIC were sent, after %d retries", reason, s.Sent.Load(), s.Retries.Load())
			}
		})
	}
	// An interrupted call is no reason to lose it, nor to give the next packet fewer tries.
	synctest.Test(t, func(t *testing.T) {
		k := &wire{sent: make(map[string][][]byte)}
		k.fail = func(m [][][]byte) (int, error) {
			switch {
			case k.calls <= maxRetries:
				return 0, unix.EINTR
			case k.calls <= 2*maxRetries+1:
				return 0, unix.ENOBUFS
			}
			return 1, nil
		}
		w := &writer{family: unix.AF_INET, cfg: &Config{Stats: new(Stats)}, hand: k.hand}
		b := newBatch()
		b.add([]byte("offered"), nil, peerAddr(1), false)
		b.messages[0].offered = true
		b.add([]byte("QUIC's"), nil, peerAddr(2), false)
		w.write(b)
		if s := w.cfg.Stats; s.Full.Load() != 1 || s.Sent.Load() != 1 || s.Retries.Load() != maxRetries {
			t.Errorf("%d lost, %d sent, after %d retries", s.Full.Load(), s.Sent.Load(), s.Retries.Load())
		}
	})
}

// Another error costs an offered packet as it does one of QUIC.
func TestAnOfferThatIsRefused(t *testing.T) {
	w, _ := newWriter(t, Config{})
	for size, want := range map[int]error{0: syscall.EMSGSIZE, messageBytes + 1: syscall.EMSGSIZE, 1: nil} {
		if err := w.Offer(make([]byte, size), nil, peerAddr(1)); !errors.Is(err, want) {
			t.Errorf("an offer of %d bytes: %v", size, err)
		}
	}
	w.close()
	if err := w.Offer([]byte("x"), nil, peerAddr(1)); !errors.Is(err, net.ErrClosed) {
		t.Error("an offer after the close:", err)
	}
	w, k := newWriter(t, Config{})
	k.fail = func([][][]byte) (int, error) { return 0, unix.EAGAIN }
	mustOffer(t, w, []byte("x"), nil, peerAddr(1))
	w.close()
	if s := w.cfg.Stats; s.Full.Load() != 1 || s.Retries.Load() != 0 {
		t.Errorf("%d offers without room are counted, after %d retries", s.Full.Load(), s.Retries.Load())
	}
	w, k = newWriter(t, Config{})
	k.fail = func([][][]byte) (int, error) { return 0, unix.EMSGSIZE }
	mustOffer(t, w, make([]byte, 2000), nil, peerAddr(1))
	w.close()
	if w.cfg.Stats.TooLarge.Load() != 1 {
		t.Error("an offer that is too large is not counted")
	}
}

// Close sends offered packets.
func TestCloseSendsOffers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, k := newWriter(t, Config{})
		k.fail = func(m [][][]byte) (int, error) { time.Sleep(time.Millisecond); return len(m), nil }
		for range 5 * batchPackets {
			mustOffer(t, w, []byte("x"), nil, peerAddr(1))
		}
		w.close()
		if n := len(k.sent[peerAddr(1).String()]); n != 5*batchPackets {
			t.Errorf("%d of %d packets were sent", n, 5*batchPackets)
		}
	})
}

// Offers allocate no memory, also when batches change.
func TestOfferingAllocatesNothing(t *testing.T) {
	w, _ := newWriter(t, Config{})
	w.hand = func(_ int, m []mmsghdr) (int, error) { return len(m), nil }
	b, control, to := make([]byte, 1100), make([]byte, unix.CmsgSpace(12)), peerAddr(1)
	for range 100_000 { // The batches.
		_ = w.Offer(b, control, to)
	}
	if n := testing.AllocsPerRun(200, func() {
		for range 4 * batchPackets {
			_ = w.Offer(b, control, to)
		}
	}); n != 0 {
		t.Errorf("the offers of four batches allocate %v times", n)
	}
}

// taken is a packet that Take got.
type taken struct {
	b, local []byte
	from     netip.AddrPort
	waited   time.Duration
}

// Packets that Take takes are missing in the batches; the others are complete, in order, with their
// addresses and control messages, in the buffers of their places.
func TestTakeRemovesPacketsAmongOthers(t *testing.T) {
	for seed := range seeds.Of(t, 20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		s, peers := open(t, "0.0.0.0:0")
		raw, _ := s.SyscallConn()
		_ = raw.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_PKTINFO, 1) })
		var got []taken
		s.reader.cfg.Take = func(b []byte, from netip.AddrPort, local []byte, waited time.Duration) bool {
			if b[0] != 128 {
				return false
			}
			got = append(got, taken{slices.Clone(b), slices.Clone(local), from, waited})
			clear(b) // Its memory may be changed.
			return true
		}
		clients := []*net.UDPConn{
			dial(t, &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port(s)}),
			dial(t, &net.UDPAddr{IP: net.IPv4(127, 0, 0, 2), Port: port(s)}),
		}
		peer := peers.Follow(clients[0].LocalAddr())
		var want, wantTaken [][]byte
		var from []string
		for i := range 60 {
			b := make([]byte, 5+rng.IntN(100))
			if b[0] = 64; rng.IntN(2) == 0 {
				b[0] = 128
			}
			binary.BigEndian.PutUint32(b[1:], uint32(i))
			c := clients[rng.IntN(2)]
			send(t, c, string(b))
			if b[0] == 128 {
				wantTaken = append(wantTaken, b)
			} else {
				want, from = append(want, b), append(from, c.LocalAddr().String())
			}
		}
		send(t, clients[0], "end")
		want, from = append(want, []byte("end")), append(from, clients[0].LocalAddr().String())
		ms := make([]ipv4.Message, 8)
		for i := range ms {
			ms[i].Buffers, ms[i].OOB = [][]byte{make([]byte, 200)}, make([]byte, 128)
		}
		buffers := slices.Clone(ms)
		for len(want) > 0 {
			n, err := s.ReadBatch(ms, 0)
			if n == 0 || err != nil {
				t.Fatal(n, err)
			}
			for i, m := range ms[:n] {
				if string(m.Buffers[0][:m.N]) != string(want[0]) || m.Addr.String() != from[0] {
					t.Fatalf("seed %d: got % x of %v, want % x of %v", seed, m.Buffers[0][:m.N], m.Addr, want[0], from[0])
				}
				if &m.Buffers[0][0] != &buffers[i].Buffers[0][0] {
					t.Fatalf("seed %d: the buffer of message %d is another one's", seed, i)
				}
				at, local := arrival(m.OOB[:m.NN])
				asked := byte(1) // The last byte of the address to which the packet was sent.
				if from[0] == clients[1].LocalAddr().String() {
					asked = 2
				}
				if at == 0 || len(local) != unix.CmsgSpace(12) || local[unix.CmsgLen(0)+11] != asked {
					t.Fatalf("seed %d: packet % x to 127.0.0.%d arrived at %d, at % x", seed, want[0], asked, at, local)
				}
				want, from = want[1:], from[1:]
			}
		}
		for i, p := range got {
			if string(p.b) != string(wantTaken[i]) || p.from.Port() == 0 || p.waited < 0 || p.waited > markAge {
				t.Fatalf("seed %d: taken % x of %v after %v, want % x", seed, p.b, p.from, p.waited, wantTaken[i])
			}
		}
		if len(got) != len(wantTaken) || s.reader.cfg.Stats.Received.Load() != 61 {
			t.Errorf("seed %d: %d packets were taken of %d", seed, len(got), len(wantTaken))
		}
		peer.Leave()
	}
}

// Answers leave from the address to which a packet was sent, on a socket for all addresses: the
// clients accept packets from that one alone.
func TestOffersLeaveByTheAddressThatWasAsked(t *testing.T) {
	for _, c := range []struct{ listen, ask string }{
		{"0.0.0.0:0", "127.0.0.1"}, {"0.0.0.0:0", "127.0.0.2"}, {":0", "127.0.0.1"}, {":0", "127.0.0.2"}, {":0", "::1"},
	} {
		t.Run(c.listen+" "+c.ask, func(t *testing.T) {
			s, _ := open(t, c.listen)
			raw, _ := s.SyscallConn()
			_ = raw.Control(func(fd uintptr) { // As QUIC does.
				_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_PKTINFO, 1)
				_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1)
			})
			s.reader.cfg.Take = func(b []byte, from netip.AddrPort, local []byte, _ time.Duration) bool {
				if b[0] != 128 {
					return false
				}
				if err := s.Offer(b, local, net.UDPAddrFromAddrPort(from)); err != nil || local == nil {
					t.Errorf("an answer with % x: %v", local, err)
				}
				return true
			}
			client := dial(t, &net.UDPAddr{IP: net.ParseIP(c.ask), Port: port(s)})
			send(t, client, "\x80 where are you?")
			send(t, client, "end")
			b := make([]byte, 100)
			if n, _, _, _, err := s.ReadMsgUDP(b, make([]byte, 128)); err != nil || string(b[:n]) != "end" {
				t.Fatalf("read %q: %v", b[:n], err)
			}
			if n, err := client.Read(b); err != nil || string(b[:n]) != "\x80 where are you?" {
				t.Errorf("the client read %q: %v", b[:n], err)
			}
		})
	}
}
