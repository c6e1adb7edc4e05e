package quicnet

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/testutils/simnet"

	"github.com/netloop/netloop/internal/certificate"
	"github.com/netloop/netloop/internal/net/driver"
	"github.com/netloop/netloop/internal/transport"
)

// bench is one link in virtual time: the server's end as it is, and a bare client.
type bench struct {
	delay   atomic.Int64 // of every packet
	stats   *transport.Stats
	session *transport.Session // of the driver
	link    *transport.Link
	clock   func() time.Duration
	conn    *quic.Conn // the server's end
	peer    *quic.Conn
	stream  *quic.Stream // the peer's end
	ended   chan transport.Closed
	simnet.PerfectRouter
}

// SendPacket delivers after the delay.
func (b *bench) SendPacket(p simnet.Packet) error {
	time.AfterFunc(time.Duration(b.delay.Load()), func() { _ = b.PerfectRouter.SendPacket(p) })
	return nil
}

// onBench runs a test of a link in virtual time, with a peer of this configuration.
func onBench(t *testing.T, conf *quic.Config, test func(t *testing.T, b *bench)) {
	synctest.Test(t, func(t *testing.T) {
		b := &bench{stats: new(transport.Stats), ended: make(chan transport.Closed, 1)}
		b.delay.Store(int64(10 * time.Millisecond))
		server, client := b.socket(1), b.socket(2)
		cert, err := certificate.SelfSigned()
		if err != nil {
			t.Fatal(err)
		}
		l, err := server.Listen(&tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{ALPN}}, serverQUIC(idleTimeout))
		if err != nil {
			t.Fatal(err)
		}
		b.peer, err = client.Dial(t.Context(), server.Conn.LocalAddr(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{ALPN}}, conf)
		if err == nil {
			b.stream, err = b.peer.OpenStream()
		}
		if err == nil {
			// A stream opens at the peer with its first byte: an empty frame.
			_, err = b.stream.Write([]byte{0})
		}
		if err != nil {
			t.Fatal(err)
		}
		b.serve(t, l)
		test(t, b)
		_ = b.peer.CloseWithError(0, "")
		<-b.ended
		if err := errors.Join(l.Close(), client.Close(), server.Close(), client.Conn.Close(), server.Conn.Close()); err != nil {
			t.Error(err)
		}
	})
}

func (b *bench) socket(host byte) *quic.Transport {
	return &quic.Transport{Conn: simnet.NewSimConn(&net.UDPAddr{IP: net.IPv4(10, 0, 0, host), Port: 1}, b)}
}

// serve runs the link on the connection that the peer has opened.
func (b *bench) serve(t *testing.T, l *quic.Listener) {
	t.Helper()
	conn, err := l.Accept(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	stream, err := conn.AcceptStream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b.conn, b.clock = conn, sinceNow()
	b.session, b.link = transport.NewSession(transport.SessionConfig{ID: 1, Inbox: transport.NewInbox(0, b.stats), Clock: b.clock, Stats: b.stats})
	go func() {
		end := b.carry(conn, stream, b.link)
		b.link.End(end)
		b.ended <- end
	}()
}

// carry runs a link on one end until the connection ends.
func (b *bench) carry(conn *quic.Conn, stream *quic.Stream, link *transport.Link) transport.Closed {
	c := &plain{Conn: Conn{Stream: &Stream{stream}, QUIC: conn}}
	return driver.Run(driver.Config{Conn: c, Link: link, Clock: b.clock, Chunks: new(driver.Chunks)})
}

// say makes the link send a datagram.
func (b *bench) say() {
	b.session.Send(transport.Message{Method: 1})
	b.session.Flush(b.clock())
}

// A peer that does not read is disconnected at once: it would not read the reason. Any other peer
// has some time to read the reason and to close the connection itself.
func TestOnlyASlowPeerIsNotWaitedFor(t *testing.T) {
	for code, wait := range map[transport.Code]time.Duration{
		transport.CodeSlow:   10 * time.Millisecond,
		transport.CodeKicked: 10*time.Millisecond + driver.Linger,
	} {
		onBench(t, clientQUIC(), func(t *testing.T, b *bench) {
			began := time.Now()
			b.link.Shutdown(code, "")
			<-b.peer.Context().Done()
			if took := time.Since(began); took != wait {
				t.Errorf("%v reaches the peer after %v instead of %v", code, took, wait)
			}
			var app *quic.ApplicationError
			if !errors.As(context.Cause(b.peer.Context()), &app) || transport.Code(app.ErrorCode) != code {
				t.Errorf("instead of %v the peer reads %v", code, context.Cause(b.peer.Context()))
			}
		})
	}
}

// The session gets the round trip of the connection, at a bounded rate.
func TestRoundTripIsToldNowAndThen(t *testing.T) {
	onBench(t, clientQUIC(), func(t *testing.T, b *bench) {
		b.say()
		synctest.Wait()
		if rtt := b.session.LinkFacts().SRTT; rtt < 20*time.Millisecond || rtt > 30*time.Millisecond {
			t.Fatal("over a link of 20 ms there and back the session is told", rtt)
		}
		b.delay.Store(int64(50 * time.Millisecond))
		var told []time.Duration // times of changes of the round trip
		for last := b.session.LinkFacts().SRTT; b.clock() < 2*time.Second; {
			time.Sleep(10 * time.Millisecond)
			b.say()
			synctest.Wait()
			if rtt := b.session.LinkFacts().SRTT; rtt != last {
				last, told = rtt, append(told, b.clock())
			}
		}
		for i := 1; i < len(told); i++ {
			if d := told[i] - told[i-1]; d < 200*time.Millisecond {
				t.Errorf("the round trip is told after %v again", d)
			}
		}
		if rtt := b.session.LinkFacts().SRTT; len(told) < 5 || rtt < 90*time.Millisecond || rtt > 140*time.Millisecond {
			t.Errorf("over a link of 100 ms the session is told %v, having been told %d times", rtt, len(told))
		}
	})
}

// A datagram that the connection cannot send is counted, and only such a one.
func TestDatagramThatCannotLeaveIsCounted(t *testing.T) {
	for _, takes := range []bool{true, false} {
		conf := clientQUIC()
		conf.EnableDatagrams = takes
		onBench(t, conf, func(t *testing.T, b *bench) {
			b.say()
			synctest.Wait()
			if n := b.stats.Dropped(transport.DropDatagramUnsent); (n == 0) != takes || n > 1 {
				t.Errorf("%d datagrams are counted as unsent to a peer that takes datagrams: %v", n, takes)
			}
		})
	}
}

// A stream that ends without a close frame breaks the protocol, whichever way it ends.
func TestStreamThatEndsWithoutAClose(t *testing.T) {
	for name, end := range map[string]func(*quic.Stream){
		"closed": func(s *quic.Stream) { _ = s.Close() },
		"reset":  func(s *quic.Stream) { s.CancelWrite(7) },
	} {
		t.Run(name, func(t *testing.T) {
			onBench(t, clientQUIC(), func(t *testing.T, b *bench) {
				end(b.stream)
				time.Sleep(time.Second)
				c, ended := b.session.Cause()
				if !ended || c.Code != transport.CodeProtocol || c.Remote {
					t.Errorf("the session ended: %v, because of %v", ended, c)
				}
				var app *quic.ApplicationError
				if !errors.As(context.Cause(b.peer.Context()), &app) || transport.Code(app.ErrorCode) != transport.CodeProtocol {
					t.Errorf("the peer reads %v", context.Cause(b.peer.Context()))
				}
			})
		})
	}
}

// TestAStreamAtRestHasNoWriter: a connection has as many goroutines after a message over its stream
// as before.
func TestAStreamAtRestHasNoWriter(t *testing.T) {
	onBench(t, clientQUIC(), func(t *testing.T, b *bench) {
		b.say()
		synctest.Wait()
		before := runtime.NumGoroutine()
		for range 3 {
			b.session.Send(transport.Message{Method: 1, Reliable: true})
			b.session.Flush(b.clock())
			synctest.Wait()
		}
		n := runtime.NumGoroutine()
		for range 1000 { // Other goroutines of this process, outside the bubble, may start and end.
			runtime.Gosched()
			n = min(n, runtime.NumGoroutine())
		}
		if n > before || b.stats.StreamBytesOut.Load() == 0 {
			t.Errorf("%d goroutines, and %d before; %d bytes have left", n, before, b.stats.StreamBytesOut.Load())
		}
	})
}
