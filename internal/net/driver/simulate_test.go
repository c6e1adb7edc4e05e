package driver

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/netloop/netloop/internal/netem"
	"github.com/netloop/netloop/internal/testing/nettest"
	"github.com/netloop/netloop/internal/transport"
)

// speak sends a message over the stream and one in a datagram, in both directions.
func (r *rig) speak(method uint32) {
	for i := range uint32(2) {
		r.Send(transport.Message{Method: method + i, Reliable: i == 0, Payload: []byte("x")})
		r.peer.Send(transport.Message{Method: method + i, Reliable: i == 0, Payload: []byte("x")})
	}
	r.Session.Flush(0)
	r.says()
}

// both returns the number of messages that have arrived in each direction.
func (r *rig) both() (up, down int) {
	r.own.Poll()
	if err := r.heard(); err != nil {
		r.t.Error(err)
	}
	return len(methods(r.own)), len(methods(r.peers)) - 2 // Without those before Run.
}

// An emulated network delays the stream and the datagrams of a connection, until it is removed: by
// then nothing is lost, and the stream is in order.
func TestASimulatedConnectionIsDelayed(t *testing.T) {
	play(t, "delay", func(r *rig) {
		r.Trip.Store(int64(30 * time.Millisecond))
		if r.speak(10); !r.Simulate("up.delay=100ms,down.delay=40ms") || r.Simulated() != "up.delay=100ms,down.delay=40ms" {
			r.t.Error("it cannot be simulated")
		}
		if up, down := r.both(); up != 2 || down != 2 {
			r.t.Errorf("before, %d and %d have arrived", up, down)
		}
		const ms = time.Millisecond
		began := time.Now()
		r.speak(20)
		for _, step := range []struct {
			at       time.Duration
			up, down int
		}{{39 * ms, 2, 2}, {41 * ms, 2, 4}, {99 * ms, 2, 4}, {101 * ms, 4, 4}} {
			time.Sleep(step.at - time.Since(began))
			if up, down := r.both(); up != step.up || down != step.down {
				r.t.Errorf("%d and %d have arrived, want %d and %d", up, down, step.up, step.down)
			}
		}
		time.Sleep(rttPeriod)
		r.speak(30)
		if rtt := r.LinkFacts().SRTT; rtt != 170*time.Millisecond {
			r.t.Errorf("the round trip is %v", rtt)
		}
		r.Simulate("")
		r.speak(40) // Its part of the stream must not overtake.
		time.Sleep(time.Second)
		if up, down := r.both(); up != 8 || down != 8 {
			r.t.Errorf("in the end %d and %d have arrived", up, down)
		}
		for _, o := range []*nettest.Owner{r.own, r.peers} {
			inOrder := slices.DeleteFunc(methods(o), func(m uint32) bool { return m%2 == 1 || m < 10 })
			if !slices.Equal(inOrder, []uint32{10, 20, 30, 40}) {
				r.t.Errorf("the stream has brought %v", inOrder)
			}
		}
	})
}

// Datagrams are lost, but not the stream. On a stream that carries them too, losses are delays.
func TestASimulatedConnectionLosesDatagrams(t *testing.T) {
	lossy := func(r *rig) (up, down int) {
		r.Simulate("loss=50%")
		for n := range uint32(40) {
			r.speak(10 + 2*n)
			time.Sleep(20 * time.Millisecond)
		}
		time.Sleep(5 * time.Second)
		return r.both()
	}
	playOn(t, func(w *nettest.Wire) Conn { return w }, func(r *rig) {
		if up, down := lossy(r); up < 41 || up > 79 || down < 41 || down > 79 {
			t.Errorf("of 80 messages %d and %d have arrived", up, down)
		}
	})
	playOn(t, func(w *nettest.Wire) Conn { return &nettest.Merged{Wire: w} }, func(r *rig) {
		if up, down := lossy(r); up != 80 || down != 80 {
			t.Errorf("of 80 messages on a stream %d and %d have arrived", up, down)
		}
	})
}

// The datagrams beside a connection are delayed as well.
func TestDatagramsBesideAreSimulated(t *testing.T) {
	besides(t, func(r *rig, s *sideway) {
		s.active.Store(true)
		r.Simulate("delay=50ms")
		r.Send(transport.Message{Method: 10})
		r.Session.Flush(0)
		if synctest.Wait(); s.sends.Load() != 0 {
			t.Errorf("%d datagrams have left at once", s.sends.Load())
		}
		s.receive(append(make([]byte, 20), "no datagram of the protocol"...), 20, 7, 0)
		time.Sleep(49 * time.Millisecond)
		before := r.stats.DatagramsIn.Load()
		time.Sleep(2 * time.Millisecond)
		if synctest.Wait(); s.sends.Load() != 1 || before != 0 || r.stats.DatagramsIn.Load() != 1 {
			t.Errorf("%d datagrams have left, and %d have arrived", s.sends.Load(), r.stats.DatagramsIn.Load())
		}
	})
}

// Closes travel like other bytes of the stream.
func TestClosesAreSimulated(t *testing.T) {
	play(t, "the own one", func(r *rig) {
		r.Simulate("delay=100ms")
		r.Session.Close(transport.CodeKicked, "cheated")
		time.Sleep(99 * time.Millisecond)
		r.Mu.Lock()
		early := r.Wire.Ended || len(r.Wrote) > 0 && string(r.Wrote[len(r.Wrote)-7:]) == "cheated"
		r.Mu.Unlock()
		time.Sleep(2 * time.Millisecond)
		err := r.heard()
		var c *transport.Closed
		if early || !errors.As(err, &c) || c.Text != "cheated" || !r.Wire.Ended {
			r.t.Errorf("early %v, then %v", early, err)
		}
	})
	for _, ends := range []bool{false, true} {
		play(t, "the peer's", func(r *rig) {
			r.Simulate("delay=100ms")
			r.peer.Close(transport.CodeLeft, "bye")
			r.says()
			if ends { // The peer ends its stream behind the close.
				r.Stream <- []byte{}
			}
			c, after, closes := r.ended()
			if c != (transport.Closed{Code: transport.CodeLeft, Text: "bye", Remote: true}) || after != 100*time.Millisecond || len(closes) == 0 || closes[0].Code != transport.CodeLeft {
				r.t.Errorf("it tells %+v after %v, %+v", c, after, closes)
			}
		})
	}
}

// A full network drops datagrams and delays the stream. It ends with its connection.
func TestASimulatedConnectionIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &way{now: func() time.Duration { return 0 }, path: netem.NewPath(netem.Link{Delay: time.Hour}, 1, 1)}
		w.changed = sync.NewCond(&w.mu)
		for range 200 {
			w.datagram(make([]byte, 1000))
		}
		if w.bytes != maxUnderWay/1000*1000 || w.queue.Len() != maxUnderWay/1000 {
			t.Errorf("%d bytes of %d datagrams are under way", w.bytes, w.queue.Len())
		}
		small := &way{now: w.now, path: w.path}
		small.changed = sync.NewCond(&small.mu)
		if err := errors.Join(small.write(nil), small.write([]byte{1})); err != nil || small.bytes != 1 || small.queue.Len() != 1 {
			t.Errorf("%v, %d bytes in %d pieces", err, small.bytes, small.queue.Len())
		}
		written := false
		go func() { _ = w.write(make([]byte, 1000)); written = true }()
		if synctest.Wait(); written {
			t.Error("a full network takes bytes of the stream")
		}
		w.end()
		if synctest.Wait(); !written || w.queue.Len() != 0 {
			t.Error("the writer waits for a network that has ended")
		}
	})
	play(t, "the end", func(r *rig) {
		r.Simulate("delay=1h")
		for range 4 {
			r.Send(transport.Message{Method: 1, Reliable: true, Payload: make([]byte, 60<<10)})
			r.Session.Flush(0)
			r.Stream <- make([]byte, 60<<10)
			synctest.Wait()
		}
		r.Cut()
		if c, after, _ := r.ended(); after != 0 || c != r.Closed() {
			r.t.Errorf("it ends with %+v after %v", c, after)
		}
		r.Simulate("delay=2h") // It has no effect, and leaves no goroutine.
	})
}

// A network is put around a connection only if it is one, and not after the end.
func TestNoNetworkIsSimulated(t *testing.T) {
	for text, ended := range map[string]bool{"": false, "nonsense": false, "loss=1%": true} {
		d := &driver{}
		d.ended = ended
		if d.simulate(text); d.simulation.Load() != nil {
			t.Errorf("%q is simulated", text)
		}
	}
}

// A stream that carries datagrams too gets each of them once, up to a bound.
func TestOrderedDatagramsAreSentOnce(t *testing.T) {
	w := &way{now: func() time.Duration { return 0 }, ordered: true, path: netem.NewPath(netem.Link{}, 1, 1)}
	w.changed = sync.NewCond(&w.mu)
	for i := range 3 {
		if w.datagram(make([]byte, maxUnderWay/2)); w.bytes != min(i+1, 2)*(maxUnderWay/2) {
			t.Errorf("after %d datagrams %d bytes are under way", i+1, w.bytes)
		}
	}
}
