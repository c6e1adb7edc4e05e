package quicnet

import (
	"context"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/netloop/netloop/internal/testing/nettest"
	"github.com/netloop/netloop/internal/testing/proctest"
	"github.com/netloop/netloop/internal/transport"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// verifying reports whether floods run at full length.
var verifying = os.Getenv("NETLOOP_VERIFY") != ""

// flood begins handshakes at a rate from one address until stop is called, which returns the
// numbers begun and completed. Complete ones send the bytes say and are kept open. A process of
// its own does it, at the lowest priority, so that it does not delay players.
func flood(t *testing.T, addr string, perSecond int, say []byte) (stop func() string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := proctest.Command(t, self, "TestFloodProgram")
	cmd.Env = append(os.Environ(), "NETLOOP_FLOOD="+addr, "NETLOOP_FLOOD_RATE="+strconv.Itoa(perSecond), "NETLOOP_FLOOD_BYTES="+hex.EncodeToString(say))
	return proctest.Start(t, cmd, "BEGUN ")
}

// aimAt returns the parts of a program that a test has started against a server: a transport at an
// address of its own, and a context that ends when its parent closes the pipe.
func aimAt(t *testing.T, addr string) (context.Context, *quic.Transport, *net.UDPAddr) {
	t.Helper()
	to, err := net.ResolveUDPAddr("udp", addr)
	if err != nil {
		t.Fatal(err)
	}
	socket, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 9, 9, 9)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, _ = os.Stdin.Read(make([]byte, 1))
		cancel()
	}()
	return ctx, &quic.Transport{Conn: socket}, to
}

// TestFloodProgram is the program of flood.
func TestFloodProgram(t *testing.T) {
	addr := os.Getenv("NETLOOP_FLOOD")
	if addr == "" {
		t.Skip("TestOneHostDoesNotKeepOthersOut starts it")
	}
	perSecond, err := strconv.Atoi(os.Getenv("NETLOOP_FLOOD_RATE"))
	if err != nil {
		t.Fatal(err)
	}
	say, err := hex.DecodeString(os.Getenv("NETLOOP_FLOOD_BYTES"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, tr, to := aimAt(t, addr)
	var begun, complete atomic.Int64
	attempt := func() {
		conn, err := tr.Dial(ctx, to, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{ALPN}}, clientQUIC())
		if err != nil {
			return
		}
		complete.Add(1)
		if stream, err := conn.OpenStream(); err == nil && len(say) > 0 {
			_, _ = stream.Write(say)
		}
	}
	var all sync.WaitGroup
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil {
		<-tick.C
		for range perSecond / 100 {
			begun.Add(1)
			all.Go(attempt)
		}
	}
	all.Wait()
	_ = tr.Close()
	_ = tr.Conn.Close()
	fmt.Printf("BEGUN %d handshakes begun, %d complete\n", begun.Load(), complete.Load())
}

// One host that begins as many handshakes as it can, and then is silent or hangs in admission, does
// not keep out clients of other hosts.
func TestOneHostDoesNotKeepOthersOut(t *testing.T) {
	rate, players, length := 200, 10, time.Duration(0)
	if verifying {
		rate, players, length = 1000, 100, 3*time.Second
	}
	hostile := nettest.Hello()
	hostile.Token = "hang"
	hang, err := transport.AppendHello(nil, hostile)
	if err != nil {
		t.Fatal(err)
	}
	for name, say := range map[string][]byte{"silent": nil, "hanging in admission": hang} {
		t.Run(name, func(t *testing.T) {
			h := serve(t, func(c *ServerConfig) { c.MaxConns, c.MaxUnadmitted = 256, 64 })
			h.admitBy(func(ctx context.Context, hello *netloopv1.Hello) error {
				if hello.Token == "hang" {
					<-ctx.Done()
				}
				return ctx.Err()
			})
			stop := flood(t, h.listener.Addr().String(), rate, say)
			nettest.Eventually(t, "all places that the flood may take to be taken", func() bool {
				return h.stats.Unadmitted.Load() >= 8 // As many as a site has places for.
			})
			time.Sleep(length)
			took := make(chan time.Duration, players)
			var all sync.WaitGroup
			for n := range players {
				d := dialerAt(t, net.IPv4(127, 1, 1, byte(n)))
				all.Go(func() {
					began := time.Now()
					if _, err := dial(t, h, d, nettest.Hello()); err != nil {
						t.Error("a player is kept out: ", err)
					}
					took <- time.Since(began)
				})
			}
			all.Wait()
			said := stop()
			var worst time.Duration
			for range players {
				worst = max(worst, <-took)
			}
			t.Logf("%d players came in within %v, while %s; %d refused for their site, %d for the rate, %d dismissed",
				players, worst, said, h.stats.Dropped(transport.DropHandshakeSite), h.stats.Dropped(transport.DropHandshakeRate), h.stats.Dropped(transport.DropDismissed))
			if verifying && worst > 2*time.Second {
				t.Error("a player came in after", worst)
			}
		})
	}
}

// shutterbug is a socket that stores the first packets of a client, and sends none.
type shutterbug struct {
	*net.UDPConn
	mu      sync.Mutex
	packets [][]byte
}

func (s *shutterbug) WriteTo(b []byte, _ net.Addr) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.packets = append(s.packets, append([]byte(nil), b...))
	return len(b), nil
}

// firstPackets returns the first packets of so many clients.
func firstPackets(t *testing.T, n int) [][]byte {
	t.Helper()
	socket, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	s := &shutterbug{UDPConn: socket}
	tr := &quic.Transport{Conn: struct{ net.PacketConn }{s}}
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			_, _ = tr.Dial(ctx, &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9}, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{ALPN}}, clientQUIC())
		})
	}
	nettest.Eventually(t, "the first packets", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.packets) >= n
	})
	s.mu.Lock()
	packets := s.packets
	s.mu.Unlock()
	cancel()
	all.Wait()
	_ = tr.Close()
	_ = socket.Close()
	return packets[:n]
}

// meter is a socket that counts.
type meter struct {
	net.PacketConn
	in, out atomic.Int64
}

func (m *meter) ReadFrom(b []byte) (int, net.Addr, error) {
	n, from, err := m.PacketConn.ReadFrom(b)
	m.in.Add(int64(n))
	return n, from, err
}

func (m *meter) SetReadBuffer(int) error  { return nil }
func (m *meter) SetWriteBuffer(int) error { return nil }

func (m *meter) WriteTo(b []byte, to net.Addr) (int, error) {
	m.out.Add(int64(len(b)))
	return m.PacketConn.WriteTo(b, to)
}

// First packets with forged addresses cost the server some half-open handshakes, and the owners of
// the addresses little: goroutines, memory and answers are bounded.
func TestForgedFirstPacketsCostLittle(t *testing.T) {
	rate, length := 1000, 300*time.Millisecond
	if verifying {
		length = 10 * time.Second
	}
	packets := firstPackets(t, int(length.Seconds()*float64(rate)))
	var m *meter
	h := serve(t, func(c *ServerConfig) {
		c.Listen = "0.0.0.0:0"
		c.Through = func(socket net.PacketConn) net.PacketConn {
			m = &meter{PacketConn: socket}
			return m
		}
	})
	to := &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: h.listener.Addr().(*net.UDPAddr).Port}
	var victims []*net.UDPConn
	for n := range 100 {
		socket, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 5, 5, byte(n))})
		if err != nil {
			t.Skip("this machine has one loopback address only: ", err)
		}
		defer func() { _ = socket.Close() }()
		victims = append(victims, socket)
	}
	runtime.GC()
	var before, now runtime.MemStats
	runtime.ReadMemStats(&before)
	goroutines := runtime.NumGoroutine()
	mostGoroutines, mostBytes, began := 0, uint64(0), time.Now()
	tick := time.NewTicker(time.Second / time.Duration(rate))
	defer tick.Stop()
	for n, packet := range packets {
		<-tick.C
		if _, err := victims[n%len(victims)].WriteToUDP(packet, to); err != nil {
			t.Fatal(err)
		}
		if n%50 == 0 {
			runtime.ReadMemStats(&now)
			mostBytes = max(mostBytes, now.HeapInuse+now.StackInuse)
			mostGoroutines = max(mostGoroutines, runtime.NumGoroutine())
		}
	}
	more := int64(mostBytes) - int64(before.HeapInuse+before.StackInuse)
	in, out := m.in.Load(), m.out.Load()
	t.Logf("%d first packets: %d goroutines and %d KiB more, %d bytes in, %d out: %.3f; %d addresses were to be proven",
		len(packets), mostGoroutines-goroutines, more>>10, in, out, float64(out)/float64(in), h.stats.Retries.Load())
	if mostGoroutines-goroutines > 64 || more > 32<<20 {
		t.Errorf("%d goroutines and %d bytes more", mostGoroutines-goroutines, more)
	}
	// At first, half-open handshakes are answered with three times the received bytes, and some
	// Retries are sent at once.
	share := float64(out) / float64(in)
	switch slow := time.Since(began) > 2*length; {
	case verifying && slow:
		t.Log("the machine is too slow for this flood: what is answered is not judged")
	case verifying && share > 0.1, share > 0.5:
		t.Errorf("%d bytes were answered with %d", in, out)
	}
	mustDialAt(t, to.String(), nil) // Players are still admitted.
}
