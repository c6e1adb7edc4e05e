package driver

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/netloop/netloop/internal/net/udpbatch"
	"github.com/netloop/netloop/internal/testing/nettest"
	"github.com/netloop/netloop/internal/transport"
)

// rig is a session over a wire; the test drives the peer's end.
type rig struct {
	t *testing.T
	*nettest.Wire
	*transport.Session
	own, peers *nettest.Owner
	link, far  *transport.Link
	peer       *transport.Session
	waits      *udpbatch.Peers
	stats      transport.Stats       // of link
	over       chan transport.Closed // result of Run
}

// play runs a test with a rig, on a wire that is read by one goroutine or by two.
func play(t *testing.T, name string, test func(*rig)) {
	for of, wrap := range map[string]func(*nettest.Wire) Conn{
		"two read":  func(w *nettest.Wire) Conn { return w },
		"one reads": func(w *nettest.Wire) Conn { return &nettest.Merged{Wire: w} },
	} {
		t.Run(name+", "+of, func(t *testing.T) { playOn(t, wrap, test) })
	}
}

// playOn runs a test with a rig.
func playOn(t *testing.T, wrap func(*nettest.Wire) Conn, test func(*rig)) {
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t, Wire: nettest.NewWire(), own: nettest.NewOwner(nil), peers: nettest.NewOwner(nil), waits: new(udpbatch.Peers), over: make(chan transport.Closed, 1)}
		r.Session, r.link = transport.NewSession(transport.SessionConfig{ID: 1, Inbox: r.own.Arrivals, Stats: &r.stats, Limits: transport.DefaultLimits})
		r.peer, r.far = transport.NewSession(transport.SessionConfig{ID: 1, Inbox: r.peers.Arrivals, Client: true, Limits: transport.DefaultLimits})
		began := time.Now()
		run := func() {
			peer := r.RemoteAddr()
			r.over <- Run(Config{
				Conn: wrap(r.Wire), Link: r.link, Clock: func() time.Duration { return time.Since(began) }, Chunks: new(Chunks), Peer: peer, Follow: func(at net.Addr) Arrivals { return r.waits.Follow(at) },
			})
		}
		r.Send(transport.Message{Method: 1, Payload: []byte("before"), Reliable: true})
		r.Send(transport.Message{Method: 2, Payload: []byte("before")})
		r.Session.Flush(0)
		go run()
		synctest.Wait()
		test(r)
		r.Cut()
		synctest.Wait()
	})
}

// says sends the data that the peer has flushed.
func (r *rig) says() {
	r.peer.Flush(0)
	if b := r.far.AppendStream(nil, 1<<20); len(b) > 0 {
		r.Stream <- b
	}
	_ = r.far.SendDatagrams(func() time.Duration { return 0 }, func(b []byte) error {
		r.Grams <- append([]byte(nil), b...)
		synctest.Wait()
		return nil
	})
	synctest.Wait()
	r.own.Poll()
}

// heard passes the written and sent bytes to the peer.
func (r *rig) heard() (err error) {
	synctest.Wait()
	r.Mu.Lock()
	defer r.Mu.Unlock()
	for _, b := range r.Sent {
		r.far.ReceiveDatagram(0, b)
	}
	if len(r.Wrote) > 0 {
		err = r.far.ReceiveStream(0, r.Wrote)
	}
	r.Sent, r.Wrote = nil, nil
	r.peers.Poll()
	return err
}

// methods returns the methods of the arrived messages.
func methods(o *nettest.Owner) (all []uint32) {
	for _, a := range o.Seen {
		if a.Kind == transport.MessageArrived {
			all = append(all, a.Message.Method)
		}
	}
	return all
}

// ended returns the result of Run, the time until then, and the closes of the wire.
func (r *rig) ended() (c transport.Closed, after time.Duration, closes []transport.Closed) {
	r.t.Helper()
	began := time.Now()
	c = <-r.over
	r.Mu.Lock()
	defer r.Mu.Unlock()
	return c, time.Since(began), r.Closes
}

// Data flushed before Run is sent at once, and so is later data: in both directions, over the
// stream and in datagrams.
func TestADriverSendsAllDataOfASession(t *testing.T) {
	play(t, "both ways", func(r *rig) {
		if err := r.heard(); err != nil || len(methods(r.peers)) != 2 {
			r.t.Errorf("of what was there before %v have arrived: %v", methods(r.peers), err)
		}
		for n := range uint32(3) {
			r.Send(transport.Message{Method: 10 + n, Reliable: n < 2, Payload: make([]byte, 3*chunkSize/4)[:1000+n]})
			r.peer.Send(transport.Message{Method: 20 + n, Reliable: n < 2, Payload: []byte("x")})
			r.Session.Flush(0)
			r.says()
			if err := r.heard(); err != nil {
				r.t.Error(err)
			}
		}
		// More than a chunk at once.
		r.Send(transport.Message{Method: 13, Reliable: true, Payload: make([]byte, 3*chunkSize)})
		r.peer.Send(transport.Message{Method: 23, Reliable: true, Payload: make([]byte, 3*chunkSize)})
		r.Session.Flush(0)
		r.says()
		if err := r.heard(); err != nil {
			r.t.Error(err)
		}
		if got := methods(r.peers); len(got) != 6 || got[5] != 13 {
			r.t.Error("the peer has got", got)
		}
		if got := methods(r.own); len(got) != 4 || got[3] != 23 {
			r.t.Error("the owner has got", got)
		}
		r.Cut()
		if c, _, closes := r.ended(); c != r.Closed() || closes != nil {
			r.t.Errorf("it has ended with %+v, after %v", c, closes)
		}
	})
}

// An end that closes ends its stream and waits for the peer to close the connection, at most
// Linger. It does not wait for a peer that does not read.
func TestAnEndWaitsForThePeer(t *testing.T) {
	play(t, "a peer that closes", func(r *rig) {
		r.Session.Close(transport.CodeKicked, "cheated")
		err := r.heard()
		var c *transport.Closed
		if !errors.As(err, &c) || c.Code != transport.CodeKicked || c.Text != "cheated" {
			r.t.Error("the peer reads", err)
		}
		r.Mu.Lock()
		if !r.Wire.Ended || r.Closes != nil {
			r.t.Errorf("the stream has ended: %v, and the connection was closed: %v", r.Wire.Ended, r.Closes)
		}
		r.Mu.Unlock()
		time.Sleep(Linger / 2)
		r.Cut()
		if _, after, closes := r.ended(); after != 0 || closes != nil {
			r.t.Errorf("after the peer has closed it took %v and %v", after, closes)
		}
	})
	play(t, "a peer that does not", func(r *rig) {
		r.Session.Close(transport.CodeKicked, "cheated")
		if _, after, closes := r.ended(); after != Linger || len(closes) != 1 || closes[0] != (transport.Closed{Code: transport.CodeKicked, Text: "cheated"}) {
			r.t.Errorf("after %v it was closed: %v", after, closes)
		}
	})
	play(t, "a peer that does not read", func(r *rig) {
		r.link.Shutdown(transport.CodeSlow, "too much waits")
		if _, after, closes := r.ended(); after != 0 || len(closes) != 1 || closes[0].Code != transport.CodeSlow || r.Wire.Ended {
			r.t.Errorf("after %v it was closed: %v; its stream has ended: %v", after, closes, r.Wire.Ended)
		}
	})
}

// Run returns the peer's own close with its text, and closes the connection.
func TestThePeersCloseIsTold(t *testing.T) {
	play(t, "a close", func(r *rig) {
		r.peer.Close(transport.CodeLeft, "bye")
		r.says()
		c, after, closes := r.ended()
		if c != (transport.Closed{Code: transport.CodeLeft, Text: "bye", Remote: true}) || after != 0 {
			r.t.Errorf("it tells %+v after %v", c, after)
		}
		if len(closes) != 1 || closes[0] != (transport.Closed{Code: transport.CodeLeft}) {
			r.t.Errorf("the connection was closed with %+v", closes)
		}
	})
}

// A stream that ends without a close, is aborted, or is malformed violates the protocol; the end of
// the connection itself does not.
func TestAStreamThatEndsWithoutAClose(t *testing.T) {
	for name, piece := range map[string][]byte{"an end": {}, "a break": nil, "nonsense": {0xff, 0xff, 0xff, 0xff, 0xff}} {
		play(t, name, func(r *rig) {
			r.Stream <- piece
			if _, _, closes := r.ended(); len(closes) != 1 || closes[0].Code != transport.CodeProtocol {
				r.t.Errorf("it was closed with %+v", closes)
			}
			r.link.End(transport.Closed{})
			if a := r.own.Find(r.t, "the end", nettest.Kind(transport.Gone)); a.Closed.Code != transport.CodeProtocol {
				r.t.Errorf("the owner reads %+v", a.Closed)
			}
		})
	}
	play(t, "a connection that is lost", func(r *rig) {
		r.Cut()
		if c, _, _ := r.ended(); c != r.Closed() {
			r.t.Errorf("it tells %+v", c)
		}
		if why, ends := r.Cause(); ends {
			r.t.Errorf("it ends itself with %+v", why)
		}
	})
}

// Run returns when all of its goroutines have ended, however long a write, a datagram or the close
// takes on an ended connection.
func TestRunLeavesNothingBehind(t *testing.T) {
	for name, begins := range map[string]func(r *rig){
		"a write":    func(r *rig) { r.Send(transport.Message{Method: 3, Reliable: true}) },
		"a datagram": func(r *rig) { r.Send(transport.Message{Method: 3}) },
		"a close":    func(r *rig) { r.link.Shutdown(transport.CodeSlow, "") },
	} {
		play(t, name, func(r *rig) {
			r.Slow = time.Minute
			begins(r)
			r.Session.Flush(0)
			synctest.Wait()
			if r.Inside.Load() != 1 {
				r.t.Error("nothing is under way")
			}
			r.Cut()
			if _, after, _ := r.ended(); after != time.Minute || r.Inside.Load() != 0 {
				r.t.Errorf("it has ended after %v, while %d are under way", after, r.Inside.Load())
			}
		})
	}
}

// Readers and writers reuse chunks.
func TestChunksAreUsedAgain(t *testing.T) {
	w, inbox := nettest.NewWire(), transport.NewInbox(0, nil)
	defer w.Cut()
	_, link := transport.NewSession(transport.SessionConfig{Inbox: inbox, Limits: transport.DefaultLimits})
	c := &driver{Config: Config{Conn: w, Link: link, Clock: func() time.Duration { return 0 }, Chunks: new(Chunks)}}
	// A part of a frame.
	frame := append(binary.AppendUvarint(nil, transport.MaxFrame), make([]byte, 1000)...)
	for name, works := range map[string]func() error{
		"a write": c.writeChunks,
		"a read": func() error {
			w.Rest, frame = frame[:2], frame[2:]
			return c.readChunk()
		},
	} {
		if n := testing.AllocsPerRun(100, func() {
			if err := works(); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}

// A datagram that cannot be read completely is dropped, and ends the reader.
func TestADatagramThatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, stats := &nettest.Merged{Wire: nettest.NewWire(), Broken: nettest.ErrGone}, new(transport.Stats)
		_, link := transport.NewSession(transport.SessionConfig{Inbox: transport.NewInbox(0, stats), Stats: stats, Limits: transport.DefaultLimits})
		m.Grams <- []byte{1}
		m.Grams <- []byte{2}
		time.AfterFunc(time.Second, m.Cut)
		Run(Config{Conn: m, Link: link, Clock: func() time.Duration { return 0 }, Chunks: new(Chunks)})
		if n := stats.DatagramsIn.Load(); n != 0 || len(m.Grams) != 1 {
			t.Errorf("%d datagrams are taken, and %d are left", n, len(m.Grams))
		}
	})
}

// The round trip and the address of the peer are checked when data is sent, at most five times a
// second.
func TestTheRoundTripAndTheAddressAreFollowed(t *testing.T) {
	play(t, "of a link", func(r *rig) {
		flush := func() {
			r.Send(transport.Message{Method: 3})
			r.Session.Flush(0)
			synctest.Wait()
		}
		moves := func() (n int) {
			r.own.Poll()
			for _, a := range r.own.Seen {
				if a.Kind == transport.Moved {
					n++
				}
			}
			return n
		}
		flush()
		there := &net.UDPAddr{IP: net.IPv4(10, 0, 0, 2), Port: 2}
		r.Trip.Store(int64(30 * time.Millisecond))
		r.Addr.Store(there)
		time.Sleep(200*time.Millisecond - 1)
		if flush(); r.LinkFacts().SRTT != 0 || moves() != 0 {
			r.t.Errorf("before its time the round trip is %v, and %d moves are told", r.LinkFacts().SRTT, moves())
		}
		time.Sleep(time.Nanosecond)
		if flush(); r.LinkFacts().SRTT != 30*time.Millisecond || moves() != 1 {
			r.t.Errorf("after a while the round trip is %v, and %d moves are told", r.LinkFacts().SRTT, moves())
		}
		r.Trip.Store(int64(40 * time.Millisecond))
		time.Sleep(200 * time.Millisecond)
		if flush(); r.LinkFacts().SRTT != 40*time.Millisecond || moves() != 1 {
			r.t.Errorf("later the round trip is %v, and %d moves are told", r.LinkFacts().SRTT, moves())
		}
	})
}

// Waiting times are followed for the peer's address, for the new one after a move, and for none
// after the end of the connection.
func TestNoAddressIsFollowedAfterTheEnd(t *testing.T) {
	play(t, "of a link", func(r *rig) {
		addrs := []net.Addr{r.RemoteAddr(), &net.UDPAddr{IP: net.IPv4(10, 0, 0, 2), Port: 2}}
		var followed []*udpbatch.Peer
		for i, at := range addrs {
			if i > 0 {
				r.Addr.Store(at.(*net.UDPAddr))
				time.Sleep(rttPeriod)
				r.Send(transport.Message{Method: 3})
				r.Session.Flush(0)
				synctest.Wait()
			}
			p := r.waits.Follow(at)
			if p.Leave(); r.waits.Follow(at) != p {
				r.t.Errorf("%v is not followed", at)
			}
			followed = append(followed, p)
		}
		r.Cut()
		r.ended()
		for i, p := range followed {
			if p.Leave(); r.waits.Follow(addrs[i]) == p {
				r.t.Errorf("%v is followed after the end", addrs[i])
			}
		}
	})
}

// A failed write or datagram ends its writer but not the connection, which reports its end itself.
func TestWritesThatFail(t *testing.T) {
	play(t, "all of them", func(r *rig) {
		r.Mu.Lock()
		r.Fails = nettest.ErrGone
		r.Mu.Unlock()
		r.Send(transport.Message{Method: 3, Reliable: true})
		r.Send(transport.Message{Method: 4})
		r.Session.Flush(0)
		synctest.Wait()
		r.Mu.Lock()
		r.Fails = nil
		r.Mu.Unlock()
		r.Send(transport.Message{Method: 5, Reliable: true})
		r.Send(transport.Message{Method: 6})
		r.Session.Flush(0)
		_ = r.heard()
		if got := methods(r.peers); len(got) != 2 {
			r.t.Errorf("the peer has got %v", got)
		}
		r.Cut()
		if c, _, _ := r.ended(); c != r.Closed() {
			r.t.Errorf("it tells %+v", c)
		}
	})
}

// The server's welcome is the first data that a client can read: datagrams wait until the first
// bytes of the stream have been written, and are sent then.
func TestNoDatagramLeavesBeforeTheWelcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, own := nettest.NewWire(), nettest.NewOwner(nil)
		w.Slow = time.Second
		session, link := transport.NewSession(transport.SessionConfig{ID: 1, Inbox: own.Arrivals, Limits: transport.DefaultLimits})
		if err := link.Welcome(nettest.Welcome(1)); err != nil {
			t.Fatal(err)
		}
		session.Send(transport.Message{Method: 2})
		session.Flush(0)
		over := make(chan transport.Closed, 1)
		go func() {
			over <- Run(Config{Conn: w, Link: link, Clock: func() time.Duration { return 0 }, Chunks: new(Chunks)})
		}()
		time.Sleep(w.Slow / 2)
		if n := w.Inside.Load(); n != 1 {
			t.Errorf("while the welcome is written there are %d writes", n)
		}
		time.Sleep(2 * w.Slow)
		w.Mu.Lock()
		if len(w.Sent) != 1 || len(w.Wrote) == 0 {
			t.Errorf("after that %d datagrams and %d bytes have left", len(w.Sent), len(w.Wrote))
		}
		w.Mu.Unlock()
		w.Cut()
		<-over
	})
}

// A connection and all of its goroutines end if its welcome cannot be written.
func TestARunWithoutAWelcomeEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, c := range map[string]struct {
			slow time.Duration
			want transport.Code
		}{"it is refused": {0, transport.CodeProtocol}, "the connection is cut meanwhile": {time.Second, transport.CodeLost}} {
			w, own := nettest.NewWire(), nettest.NewOwner(nil)
			w.Slow, w.Fails = c.slow, nettest.ErrGone
			_, link := transport.NewSession(transport.SessionConfig{ID: 1, Inbox: own.Arrivals, Limits: transport.DefaultLimits})
			if err := link.Welcome(nettest.Welcome(1)); err != nil {
				t.Fatal(err)
			}
			if c.slow > 0 {
				time.AfterFunc(c.slow/2, w.Cut)
			}
			Run(Config{Conn: w, Link: link, Clock: func() time.Duration { return 0 }, Chunks: new(Chunks)})
			closed := w.Closed().Code
			if len(w.Closes) > 0 {
				closed = w.Closes[0].Code
			}
			if closed != c.want {
				t.Errorf("%s: it is closed with %v, want %v", name, closed, c.want)
			}
		}
	})
}

// batched is a wire that sends datagrams in batches.
type batched struct {
	*nettest.Wire
	flushes, hurries atomic.Int64
}

func (b *batched) Flush() { b.flushes.Add(1) }
func (b *batched) Hurry() { b.hurries.Add(1) }

// The datagrams of a flush leave in one batch, which the connection is told of before.
func TestDatagramsLeaveInBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &batched{Wire: nettest.NewWire()}
		session, link := transport.NewSession(transport.SessionConfig{ID: 1, Inbox: nettest.NewOwner(nil).Arrivals, Limits: transport.DefaultLimits})
		if err := link.Welcome(nettest.Welcome(1)); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Second, b.Cut)
		go func() {
			synctest.Wait()
			flushes, hurries := b.flushes.Load(), b.hurries.Load()
			for range 2 {
				session.Send(transport.Message{Method: 2})
			}
			session.Flush(0)
			synctest.Wait()
			if f, h := b.flushes.Load()-flushes, b.hurries.Load()-hurries; f != 1 || h != 1 {
				t.Errorf("of one flush of the session there are %d, announced %d times", f, h)
			}
		}()
		Run(Config{Conn: b, Link: link, Clock: func() time.Duration { return 0 }, Chunks: new(Chunks)})
	})
}

// A server waits for its goroutines until a second after its deadline.
func TestAServerWaitsAMomentLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for takes, want := range map[time.Duration]bool{0: true, 90 * time.Second: true, 2*time.Minute - 1: true, 2*time.Minute + 1: false} {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute-time.Second)
			began := time.Now()
			got := WaitUntil(ctx, func() { time.Sleep(takes) })
			if took := time.Since(began); got != want || took != min(takes, 2*time.Minute) {
				t.Errorf("for goroutines of %v it waits %v, and says %v", takes, took, got)
			}
			cancel()
			time.Sleep(time.Second)
		}
	})
}
