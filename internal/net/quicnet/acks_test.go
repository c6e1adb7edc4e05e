package quicnet

import (
	"cmp"
	"errors"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/netloop/netloop/internal/transport"
)

// Two ends that send a datagram in turn send no other packets: datagrams carry QUIC's
// acknowledgements. A peer that allows no streams gets packets that only acknowledge, one for two
// datagrams.
func TestAcknowledgementsRideAlong(t *testing.T) {
	for _, streams := range []int64{peerUniStreams, -1} {
		conf := clientQUIC()
		conf.MaxIncomingUniStreams = streams
		onBench(t, conf, func(t *testing.T, b *bench) {
			client, link := transport.NewSession(transport.SessionConfig{
				Client: true, ID: 1, Inbox: transport.NewInbox(0, b.stats), Clock: b.clock, Stats: b.stats,
			})
			go func() { link.End(b.carry(b.peer, b.stream, link)) }()
			const turns = 200
			before := [2]uint64{b.conn.ConnectionStats().PacketsSent, b.peer.ConnectionStats().PacketsSent}
			for range turns {
				client.Flush(b.clock())
				time.Sleep(8 * time.Millisecond)
				b.say()
				time.Sleep(8 * time.Millisecond)
			}
			for i, conn := range []*quic.Conn{b.conn, b.peer} {
				// QUIC sends packets of its own at times.
				least, most := uint64(turns), uint64(turns+turns/20)
				if i == 0 && streams < 0 {
					least, most = turns*14/10, turns*16/10
				}
				if n := conn.ConnectionStats().PacketsSent - before[i]; n < least || n > most {
					t.Errorf("end %d sends %d packets for %d datagrams, want %d to %d (streams %d)", i, n, turns, least, most, streams)
				}
			}
		})
	}
}

// Datagrams are sent while no stream byte may be, because the peer does not read.
func TestDatagramsLeaveBesideStreamsThatAreBlocked(t *testing.T) {
	conf := clientQUIC()
	conf.InitialStreamReceiveWindow, conf.InitialConnectionReceiveWindow = 1000, 1000
	conf.MaxStreamReceiveWindow, conf.MaxConnectionReceiveWindow = 1000, 1000
	onBench(t, conf, func(t *testing.T, b *bench) {
		b.session.Send(transport.Message{Method: 1, Reliable: true, Payload: make([]byte, 2000)})
		b.session.Flush(b.clock())
		got := 0
		go func() {
			for ; ; got++ {
				if _, err := b.peer.ReceiveDatagram(t.Context()); err != nil {
					return
				}
			}
		}()
		const turns = 300 // of 16 ms: nearly five seconds
		for range turns {
			if err := b.peer.SendDatagram([]byte{0}); err != nil {
				t.Fatal(err)
			}
			b.say()
			time.Sleep(16 * time.Millisecond)
		}
		synctest.Wait()
		if got < turns-2*6 || got > turns { // Two per second wait for the next one.
			t.Errorf("%d of %d datagrams came", got, turns)
		}
	})
}

// slowStream is a stream with writes that take some time, or end with its deadline.
type slowStream struct {
	takes    time.Duration
	fails    error
	deadline chan struct{}
	late     atomic.Bool
	calls    int
}

func (s *slowStream) WriteWithLimit(b []byte, limiter func(int) int) (int, error) {
	if s.calls++; s.late.Load() {
		return 0, os.ErrDeadlineExceeded
	}
	select {
	case <-time.After(s.takes):
		return limiter(len(b)), s.fails
	case <-s.deadline:
		return 0, os.ErrDeadlineExceeded
	}
}

func (s *slowStream) SetWriteDeadline(at time.Time) error {
	if s.late.Store(!at.IsZero()); !at.IsZero() {
		s.deadline <- struct{}{}
	}
	return nil
}

// Arrivals are flushed once. If a flush takes long, or fails, there is none for a second, and none
// ever again after eight failures without a success.
func TestAConnectionThatIsBlockedIsLeftAlone(t *testing.T) {
	type step struct {
		takes, after time.Duration // of the write, and before the flush
		fails        error         // instead of the limit that is reached
		nothing      bool          // no packet arrived
		calls        int
	}
	gone := errors.New("the connection has ended")
	for name, steps := range map[string][]step{
		"now and then": {
			{nothing: true}, {calls: 1}, {nothing: true},
			{takes: flushPatience - 1, calls: 1}, {takes: flushPatience, calls: 1},
			{after: flushRest - 1}, {after: 1, calls: 1}, {calls: 1},
			{fails: gone, calls: 1}, {after: flushRest - 1}, {after: 1, calls: 1},
		},
		"from the first on":   append(slices.Repeat([]step{{fails: gone, after: flushRest, calls: 1}}, 8), step{after: time.Hour}),
		"but the last chance": append(slices.Repeat([]step{{fails: gone, after: flushRest, calls: 1}}, 7), step{after: flushRest, calls: 1}, step{fails: gone, calls: 1}, step{after: flushRest, calls: 1}),
	} {
		synctest.Test(t, func(t *testing.T) {
			s := new(slowStream)
			a := acks{opened: true, stream: s}
			for i, step := range steps {
				time.Sleep(step.after)
				s.takes, s.calls, s.fails = step.takes, 0, cmp.Or(step.fails, quic.ErrWriteLimitReached)
				a.due.Store(!step.nothing)
				if a.flush(nil); s.calls != step.calls {
					t.Errorf("%s: step %d: %d calls, want %d", name, i, s.calls, step.calls)
				}
			}
		})
	}
}

// A flush that waits in vain is ended by a sender with more data, but not before its time.
func TestAFlushIsHurried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slowStream{takes: time.Hour, fails: quic.ErrWriteLimitReached, deadline: make(chan struct{}, 1)}
		a := acks{opened: true, stream: s, asked: true}
		a.hurry()
		a.due.Store(true)
		began := time.Now()
		go func() {
			for range 10 {
				time.Sleep(flushPatience / 4)
				a.hurry()
			}
		}()
		if a.flush(nil); time.Since(began) != flushPatience {
			t.Errorf("it has waited for %v, want %v", time.Since(began), flushPatience)
		}
		time.Sleep(time.Hour)
		if len(s.deadline) > 0 {
			t.Error("what has ended is ended again")
		}
		s.takes = 0
		for range 2 {
			a.due.Store(true)
			a.flush(nil)
		}
		if s.calls != 3 {
			t.Errorf("%d writes, want 3: the deadline is over", s.calls)
		}
	})
}
