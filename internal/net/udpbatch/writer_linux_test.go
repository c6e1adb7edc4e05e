package udpbatch

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/netloop/netloop/internal/testing/seeds"
)

// wire replaces the kernel: it splits messages into packets.
type wire struct {
	// fail returns the largest number of messages accepted by a call, and its error; nil: all are.
	fail func(messages [][][]byte) (most int, err error)

	mu       sync.Mutex
	calls    int
	messages []string            // the sizes of the packets of each
	sent     map[string][][]byte // packets by peer
}

func (k *wire) hand(_ int, headers []mmsghdr) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.calls++
	var all [][][]byte
	for i := range headers {
		all = append(all, packetsOf(&headers[i].Msghdr))
	}
	most := len(all)
	if k.fail != nil {
		var err error
		if most, err = k.fail(all); err != nil {
			return 0, err
		}
	}
	for i, packets := range all[:most] {
		to := (*sockaddr)(unsafe.Pointer(headers[i].Name)).addr().String()
		sizes := ""
		for _, p := range packets {
			k.sent[to] = append(k.sent[to], p)
			sizes += fmt.Sprint(" ", len(p))
		}
		k.messages = append(k.messages, to[len("10.0.0."):]+sizes)
	}
	return most, nil
}

// packetsOf splits a message into packets as the kernel does.
func packetsOf(h *unix.Msghdr) (packets [][]byte) {
	var all []byte
	for _, v := range unsafe.Slice(h.Iov, h.Iovlen) {
		all = append(all, unsafe.Slice(v.Base, v.Len)...)
	}
	segment := len(all)
	if h.Control != nil {
		for rest := unsafe.Slice(h.Control, h.Controllen); len(rest) > 0; {
			c, body, more, err := unix.ParseOneSocketControlMessage(rest)
			if err != nil {
				panic(err)
			}
			if c.Level == unix.IPPROTO_UDP && c.Type == unix.UDP_SEGMENT {
				if segment = int(binary.NativeEndian.Uint16(body)); segment >= len(all) {
					panic("a single packet has a size of segments")
				}
			}
			rest = more
		}
	}
	return slices.Collect(slices.Chunk(all, segment))
}

// newWriter returns a writer that sends to a wire.
func newWriter(tb testing.TB, cfg Config) (*writer, *wire) {
	if cfg.Stats == nil {
		cfg.Stats = new(Stats)
	}
	k := &wire{sent: make(map[string][][]byte)}
	w := new(writer)
	w.open(-1, unix.AF_INET, &cfg)
	w.hand = k.hand
	w.merge.Store(true)
	tb.Cleanup(func() { w.close() })
	return w, k
}

func peerAddr(n int) *net.UDPAddr { return &net.UDPAddr{IP: net.IPv4(10, 0, 0, byte(n)), Port: 9} }

func mustWrite(tb testing.TB, w *writer, b, control []byte, to *net.UDPAddr) {
	if n, oobn, err := w.WriteMsgUDP(b, control, to); n != len(b) || oobn != len(control) || err != nil {
		tb.Error("a write failed:", n, oobn, err)
	}
}

// TestPacketsLeaveOnceAndInOrder writes random bursts from many goroutines to a kernel that accepts
// a random number of messages, and has no room at times.
func TestPacketsLeaveOnceAndInOrder(t *testing.T) {
	for seed := range seeds.Of(t, 4) {
		synctest.Test(t, func(t *testing.T) {
			w, k := newWriter(t, Config{})
			rng := rand.New(rand.NewPCG(seed, 0))
			k.fail = func(messages [][][]byte) (int, error) {
				switch rng.IntN(6) {
				case 0:
					return 0, []error{unix.ENOBUFS, unix.EAGAIN, unix.EINTR, unix.EPERM}[rng.IntN(4)]
				case 1:
					return 1 + rng.IntN(len(messages)), nil
				}
				return len(messages), nil
			}
			want := make(map[string][][]byte)
			var wg sync.WaitGroup
			for peer := range 5 {
				burst := rand.New(rand.NewPCG(seed, uint64(peer)+1))
				to := peerAddr(peer)
				var packets [][]byte
				for range 300 {
					p := make([]byte, []int{1150, 700, 1150, 4 + burst.IntN(1200)}[burst.IntN(4)])
					binary.BigEndian.PutUint32(p, uint32(peer<<16|len(packets)))
					packets = append(packets, p)
				}
				want[to.String()] = packets
				wg.Go(func() {
					for _, p := range packets {
						mustWrite(t, w, slices.Clone(p), nil, to)
					}
				})
			}
			wg.Wait()
			w.close()
			sent, refused := int(w.cfg.Stats.Sent.Load()), int(w.cfg.Stats.Unsent.Load())
			if sent+refused != 5*300 {
				t.Errorf("seed %d: of %d packets %d are counted as sent, %d as refused", seed, 5*300, sent, refused)
			}
			for to, packets := range want {
				if sent -= len(k.sent[to]); !inOrder(packets, k.sent[to]) {
					t.Errorf("seed %d: %s got something else than was written", seed, to)
				}
			}
			if sent != 0 {
				t.Errorf("seed %d: %d packets are counted as sent and were not", seed, sent)
			}
		})
	}
}

// inOrder reports whether sent is a subsequence of packets.
func inOrder(packets, sent [][]byte) bool {
	for _, s := range sent {
		i := slices.IndexFunc(packets, func(p []byte) bool { return bytes.Equal(p, s) })
		if i < 0 {
			return false
		}
		packets = packets[i+1:]
	}
	return true
}

// TestPacketsToOnePeerAreOneMessage, if UDP can split the message again, at one size.
func TestPacketsToOnePeerAreOneMessage(t *testing.T) {
	type write struct {
		peer, size int
		control    []byte
	}
	mark := appendSegment(nil, 5)
	mark[unix.SizeofCmsghdr-4]++ // Some other control message.
	many := slices.Repeat([]write{{1, 10, nil}}, messagePackets+1)
	big := slices.Repeat([]write{{1, 20_000, nil}}, 4)
	for _, c := range []struct {
		name   string
		writes []write
		want   string
	}{
		{"a shorter one ends it", []write{{1, 1150, nil}, {1, 700, nil}, {1, 700, nil}}, "1:9 1150 700,1:9 700"},
		{"a longer one", []write{{1, 700, nil}, {1, 1150, nil}}, "1:9 700,1:9 1150"},
		{"peers in turn", []write{{1, 90, nil}, {2, 80, nil}, {1, 90, nil}, {2, 70, nil}}, "1:9 90 90,2:9 80 70"},
		{"other control messages", []write{{1, 90, nil}, {1, 90, mark}, {1, 90, mark}}, "1:9 90,1:9 90 90"},
		{"QUIC's own segments", []write{{1, 250, appendSegment(nil, 100)}, {1, 100, nil}}, "1:9 100 100 50,1:9 100"},
		{"… of one size", []write{{1, 200, appendSegment(nil, 100)}, {1, 150, appendSegment(nil, 100)}}, "1:9 100 100 100 50"},
		{"… of another", []write{{1, 200, nil}, {1, 150, appendSegment(nil, 100)}}, "1:9 200,1:9 100 50"},
		{"a segment larger than all", []write{{1, 60, appendSegment(nil, 100)}, {1, 60, nil}}, "1:9 60 60"},
		{"as many as a kernel takes", many, "1:9" + string(bytes.Repeat([]byte(" 10"), messagePackets)) + ",1:9 10"},
		{"as many bytes", big, "1:9 20000 20000 20000,1:9 20000"},
	} {
		b, k := newBatch(), &wire{sent: make(map[string][][]byte)}
		for _, w := range c.writes {
			b.add(make([]byte, w.size), w.control, peerAddr(w.peer), true)
		}
		w := &writer{family: unix.AF_INET, cfg: &Config{Stats: new(Stats)}, hand: k.hand}
		if w.write(b); joined(k.messages) != c.want {
			t.Errorf("%s: messages %q, want %q", c.name, joined(k.messages), c.want)
		}
	}
}

func joined(parts []string) string {
	var all []byte
	for i, p := range parts {
		if i > 0 {
			all = append(all, ',')
		}
		all = append(all, p...)
	}
	return string(all)
}

// TestAnErrorCostsItsPacketAlone: the other packets of the message and of the batch are sent.
func TestAnErrorCostsItsPacketAlone(t *testing.T) {
	for _, c := range []struct {
		err                       error
		tooLarge, unsent, retries uint64
		merges                    bool
	}{
		{unix.EMSGSIZE, 1, 0, 0, true},
		{unix.EPERM, 0, 1, 0, true},
		{unix.EIO, 0, 1, 0, false},
		{unix.EINVAL, 0, 1, 0, false},
		{unix.ENOBUFS, 0, 1, maxRetries, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			var failed []error
			w, k := newWriter(t, Config{Failed: func(err error) { failed = append(failed, err) }})
			k.fail = func(messages [][][]byte) (int, error) {
				bad := slices.IndexFunc(messages, func(m [][]byte) bool {
					return slices.ContainsFunc(m, func(p []byte) bool { return len(p) == 66 })
				})
				if bad == 0 {
					return 0, c.err // The next call returns the error of the next message.
				}
				return cmp.Or(max(bad, 0), len(messages)), nil
			}
			for _, p := range [][2]int{{1, 64}, {2, 70}, {2, 66}, {3, 64}} {
				mustWrite(t, w, make([]byte, p[1]), nil, peerAddr(p[0]))
			}
			w.close()
			s := w.cfg.Stats
			if a, b, r := s.TooLarge.Load(), s.Unsent.Load(), s.Retries.Load(); a != c.tooLarge || b != c.unsent || r != c.retries {
				t.Errorf("%v: counted %d too large, %d refused, %d retries", c.err, a, b, r)
			}
			if got, want := joined(k.messages), "1:9 64,2:9 70,3:9 64"; got != want || s.Sent.Load() != 3 {
				t.Errorf("%v: sent %q, want %q, and %d are counted", c.err, got, want, s.Sent.Load())
			}
			if w.merge.Load() != c.merges || len(failed) != int(c.unsent) {
				t.Errorf("%v: packets are merged: %v; told %v", c.err, w.merge.Load(), failed)
			}
		})
	}
}

// TestACallThatIsInterruptedIsMadeAgain: any number of times, at once, without a count.
func TestACallThatIsInterruptedIsMadeAgain(t *testing.T) {
	w, k := newWriter(t, Config{})
	left := 3 * maxRetries
	k.fail = func(m [][][]byte) (int, error) {
		if left--; left >= 0 {
			return 0, unix.EINTR
		}
		return len(m), nil
	}
	mustWrite(t, w, make([]byte, 64), nil, peerAddr(1))
	w.close()
	if s := w.cfg.Stats; s.Sent.Load() != 1 || s.Unsent.Load() != 0 || s.Retries.Load() != 0 {
		t.Errorf("%d sent, %d refused, %d retries", s.Sent.Load(), s.Unsent.Load(), s.Retries.Load())
	}
}

// TestEachMessageHasItsOwnTries, and a call sends at most callMessages.
func TestEachMessageHasItsOwnTries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const messages, failures = 2*callMessages + 1, maxRetries/2 + 1
		k := &wire{sent: make(map[string][][]byte)}
		k.fail = func(m [][][]byte) (int, error) {
			if len(m) > callMessages {
				t.Errorf("a call of %d messages", len(m))
			}
			if k.calls%(failures+1) != 0 {
				return 0, unix.ENOBUFS
			}
			return 1, nil
		}
		w := &writer{family: unix.AF_INET, cfg: &Config{Stats: new(Stats)}, hand: k.hand}
		b := newBatch()
		for i := range messages {
			b.add([]byte("x"), nil, peerAddr(i), true)
		}
		w.write(b)
		if s := w.cfg.Stats; s.Sent.Load() != messages || s.Retries.Load() != messages*failures {
			t.Errorf("of %d messages %d were sent, after %d retries", messages, s.Sent.Load(), s.Retries.Load())
		}
		k.fail = func([][][]byte) (int, error) { return 0, unix.ENOBUFS }
		w.cfg.Stats = new(Stats)
		w.write(b)
		if s := w.cfg.Stats; s.Unsent.Load() != messages || s.Retries.Load() != messages*maxRetries {
			t.Errorf("of %d messages %d were given up, after %d retries", messages, s.Unsent.Load(), s.Retries.Load())
		}
	})
}

// TestATickBeginsBetweenTwoCallsThatTakeLong: on one core other goroutines run between long calls.
func TestATickBeginsBetweenTwoCallsThatTakeLong(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	k := &wire{sent: make(map[string][][]byte)}
	var began atomic.Int64
	turns, before := int64(0), int64(0)
	k.fail = func(m [][][]byte) (int, error) {
		turns += began.Load() - before
		before = began.Load()
		go began.Add(1)
		for called := time.Now(); time.Since(called) <= callTime; { // The kernel is busy.
		}
		return len(m), nil
	}
	w := &writer{family: unix.AF_INET, cfg: &Config{Stats: new(Stats)}, hand: k.hand}
	b := newBatch()
	for i := range batchPackets {
		b.add([]byte("x"), nil, peerAddr(i), true)
	}
	w.write(b)
	if most := int64(k.calls - 1); k.calls < batchPackets/callMessages || turns < most-1 {
		t.Errorf("somebody else came between %d of %d calls", turns, k.calls)
	}
}

// TestAFullBatchMakesWritersWait: no packet is lost while the kernel is slow.
func TestAFullBatchMakesWritersWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, k := newWriter(t, Config{})
		open := make(chan struct{})
		k.fail = func(m [][][]byte) (int, error) { <-open; return len(m), nil }
		var written atomic.Int64
		go func() {
			for range 3 * batchPackets {
				mustWrite(t, w, []byte("x"), nil, peerAddr(1))
				written.Add(1)
			}
		}()
		synctest.Wait()
		if n := written.Load(); n < batchPackets || n > 2*batchPackets {
			t.Errorf("%d packets were written while the kernel took none, of %d in each of two batches", n, batchPackets)
		}
		close(open)
		synctest.Wait()
		if n := len(k.sent[peerAddr(1).String()]); n != 3*batchPackets {
			t.Errorf("%d packets were sent, want %d", n, 3*batchPackets)
		}
	})
}

// TestBytesFillABatchToo: a batch never moves its bytes.
func TestBytesFillABatchToo(t *testing.T) {
	b, packet := newBatch(), make([]byte, 60_000)
	for b.fits(len(packet)) {
		b.add(packet, nil, peerAddr(1), false)
	}
	if n := len(b.packets); n != batchBytes/len(packet) || cap(b.data) != batchBytes {
		t.Errorf("%d packets of %d bytes fit, the batch has %d bytes", n, len(packet), cap(b.data))
	}
	if b.reset(); !b.empty() || !b.fits(batchBytes) || b.fits(batchBytes+1) {
		t.Error("a batch that was sent is not empty")
	}
}

// TestCloseSendsWrittenPackets, even if the kernel has no room for a while; later writes fail.
func TestCloseSendsWrittenPackets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, k := newWriter(t, Config{})
		k.fail = func(m [][][]byte) (int, error) {
			if k.calls <= 3*closeRetries {
				return 0, unix.EAGAIN // There is no limit while the socket is open.
			}
			return len(m), nil
		}
		mustWrite(t, w, []byte("not yet"), nil, peerAddr(1))
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(k.sent[peerAddr(1).String()]) != 1 || w.cfg.Stats.Unsent.Load() != 0 {
			t.Error("a packet is given up while the socket is open")
		}
		w, k = newWriter(t, Config{})
		k.fail = func(m [][][]byte) (int, error) {
			if k.calls < closeRetries/2 {
				return 0, unix.EAGAIN
			}
			return len(m), nil
		}
		mustWrite(t, w, []byte("last words"), nil, peerAddr(1))
		if !w.close() || len(k.sent[peerAddr(1).String()]) != 1 {
			t.Error("what was written before the close has not left")
		}
		if _, _, err := w.WriteMsgUDP([]byte("more"), nil, peerAddr(1)); !errors.Is(err, net.ErrClosed) {
			t.Error("a write after the close:", err)
		}
		if w.close() {
			t.Error("a second close is a first one")
		}
		w, k = newWriter(t, Config{})
		k.fail = func([][][]byte) (int, error) { return 0, unix.EAGAIN }
		mustWrite(t, w, []byte("never"), nil, peerAddr(1))
		if w.close(); w.cfg.Stats.Unsent.Load() != 1 {
			t.Error("a kernel that never has room keeps a close")
		}
	})
}

// TestWritesThatCannotBeSentAreRefused before they are copied.
func TestWritesThatCannotBeSentAreRefused(t *testing.T) {
	w, _ := newWriter(t, Config{})
	six := &net.UDPAddr{IP: net.IPv6loopback, Port: 9}
	for _, c := range []struct {
		size, control int
		to            *net.UDPAddr
		want          error
	}{
		{0, 0, peerAddr(1), syscall.EMSGSIZE},
		{messageBytes, controlBytes, peerAddr(1), nil},
		{messageBytes + 1, 0, peerAddr(1), syscall.EMSGSIZE},
		{1, controlBytes + 1, peerAddr(1), syscall.EMSGSIZE},
		{1, 0, nil, syscall.EDESTADDRREQ},
		{1, 0, six, syscall.EDESTADDRREQ},
	} {
		n, oobn, err := w.WriteMsgUDP(make([]byte, c.size), make([]byte, c.control), c.to)
		if !errors.Is(err, c.want) || err != nil && n+oobn != 0 || err == nil && (n != c.size || oobn != c.control) {
			t.Errorf("%d bytes with %d to %v: %d and %d written, %v, want %v", c.size, c.control, c.to, n, oobn, err, c.want)
		}
	}
}

// TestLagIsOfTheFirstPacket of a batch, until the kernel has the last.
func TestLagIsOfTheFirstPacket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lags []time.Duration
		w, k := newWriter(t, Config{Stats: &Stats{Lag: func(d time.Duration) { lags = append(lags, d) }}})
		k.fail = func(m [][][]byte) (int, error) { time.Sleep(time.Second); return len(m), nil }
		mustWrite(t, w, []byte("first"), nil, peerAddr(1))
		synctest.Wait()
		mustWrite(t, w, []byte("second"), nil, peerAddr(1)) // It waits for the first to be sent.
		w.close()
		if fmt.Sprint(lags) != "[1s 2s]" || w.cfg.Stats.Sends.Load() != 2 {
			t.Errorf("lags %v of %d calls", lags, w.cfg.Stats.Sends.Load())
		}
	})
}

// TestWritingAllocatesNothing, nor does sending.
func TestWritingAllocatesNothing(t *testing.T) {
	stats := new(Stats)
	w, _ := newWriter(t, Config{Stats: stats})
	w.hand = func(_ int, m []mmsghdr) (int, error) { return len(m), nil }
	b, control, to := make([]byte, 1100), appendSegment(nil, 1100), peerAddr(1)
	if n := testing.AllocsPerRun(2000, func() { mustWrite(t, w, b, control, to) }); n != 0 {
		t.Errorf("a write allocates %v times", n)
	}
}
