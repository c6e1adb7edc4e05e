package driver

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/netloop/netloop/internal/netem"
	"github.com/netloop/netloop/internal/transport"
)

// An operator may put an emulated network around one connection of any transport:
//
//	Conn.Read, ReceiveDatagram ────────▶ up ───▶ Link.ReceiveStream, ReceiveDatagram
//	Link.AppendStream, SendDatagrams ──▶ down ─▶ Conn.Write, SendDatagram
//
// Bytes of the stream arrive in order, and a lost piece delays the later ones by a round trip.
// Datagrams are lost, doubled and overtaken, unless the stream carries them too.

const (
	// maxUnderWay bounds the bytes in one direction: beyond it datagrams are dropped, and the
	// stream waits. A client sends and receives 100 kB in a second of delay.
	maxUnderWay = 128 << 10
	// simulatedHeaders are the bytes of a datagram's IPv4, UDP and QUIC headers.
	simulatedHeaders = 60
	// retransmission is the time, in addition to a round trip, after which lost bytes of the
	// stream are sent again, at most maxRetransmissions times.
	retransmission     = 20 * time.Millisecond
	maxRetransmissions = 100
)

// simulation is the emulated network of a connection, from the first Simulate until its end.
type simulation struct {
	up, down way
	works    sync.WaitGroup
}

// way is one direction. Any goroutine may call its methods.
type way struct {
	now     func() time.Duration
	deliver func(piece) error
	ordered bool // the stream carries the datagrams

	mu      sync.Mutex
	changed *sync.Cond
	path    netem.Path
	trip    time.Duration // a round trip
	queue   netem.Schedule[piece]
	bytes   int           // in queue
	pieces  int           // of the stream, not delivered yet
	last    time.Duration // when the newest ordered piece arrives
	failed  error         // of deliver, for a piece of the stream: later ones are dropped
	ended   bool
}

// piece is a datagram, or bytes of the stream.
type piece struct {
	data   []byte
	stream bool
}

// simulate puts a network around the connection, or changes it; the empty text is a perfect one.
// It does not block. The text is the one of a [netem.Spec], which the caller has checked.
func (d *driver) simulate(network string) {
	spec, err := netem.Parse(network)
	if err != nil {
		return
	}
	d.simulating.Lock()
	defer d.simulating.Unlock()
	s := d.simulation.Load()
	if s == nil {
		if d.ended || spec == (netem.Spec{}) {
			return
		}
		s = d.newSimulation()
		d.simulation.Store(s)
	}
	trip := spec.Ways[netem.Up].Delay + spec.Ways[netem.Down].Delay
	s.up.set(spec.Ways[netem.Up].Link, trip)
	s.down.set(spec.Ways[netem.Down].Link, trip)
}

func (d *driver) newSimulation() *simulation {
	_, ordered := d.Conn.(Merged)
	s, seed := new(simulation), uint64(d.Clock())
	for i, w := range []*way{&s.up, &s.down} {
		w.now, w.ordered, w.changed = d.Clock, ordered, sync.NewCond(&w.mu)
		w.path = netem.NewPath(netem.Link{}, seed, uint64(i))
	}
	s.up.deliver, s.down.deliver = d.arrives, d.leaves
	s.works.Go(s.up.run)
	s.works.Go(s.down.run)
	context.AfterFunc(d.Conn.Context(), func() {
		s.up.end()
		s.down.end()
	})
	return s
}

// endSimulation waits for the goroutines of the simulation, after the end of the connection.
func (d *driver) endSimulation() {
	d.simulating.Lock()
	d.ended = true
	d.simulating.Unlock()
	if s := d.simulation.Load(); s != nil {
		s.works.Wait()
	}
}

// arrives passes a piece from the peer to the link.
func (d *driver) arrives(p piece) error {
	if !p.stream {
		d.beside.receiving.Lock()
		defer d.beside.receiving.Unlock()
		d.Link.ReceiveDatagram(d.Clock(), p.data)
		return nil
	}
	err := d.Link.ReceiveStream(d.Clock(), p.data)
	if why := (*transport.Closed)(nil); errors.As(err, &why) && why.Remote {
		d.Conn.Close(why.Code, "") // It ends the reading: see streamEnded.
	}
	return err
}

// leaves sends a piece to the peer.
func (d *driver) leaves(p piece) error {
	if p.stream {
		_, err := d.Conn.Write(p.data)
		return err
	}
	if d.besideActive() {
		d.passBeside(p.data)
		return nil
	}
	_ = d.Conn.SendDatagram(p.data) // An error is a loss.
	if d.flush != nil {
		d.flush.Flush()
	}
	return nil
}

// set changes the path of later pieces.
func (w *way) set(l netem.Link, trip time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.path.Link, w.trip = l, trip
}

// datagram sends a datagram on its way, or drops it. It does not block, and copies b.
func (w *way) datagram(b []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended || w.bytes+len(b) > maxUnderWay {
		return
	}
	if w.ordered {
		w.push(w.inOrder(len(b)), piece{data: bytes.Clone(b)})
		return
	}
	t := w.path.Send(w.now(), len(b)+simulatedHeaders)
	for _, at := range t.At[:t.Copies] {
		w.push(at, piece{data: bytes.Clone(b)})
	}
}

// write copies bytes of the stream into the emulated network, once it has room for them. It
// returns the error of an earlier write.
func (w *way) write(b []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.bytes > 0 && w.bytes+len(b) > maxUnderWay && !w.ended && w.failed == nil {
		w.changed.Wait()
	}
	if w.ended || w.failed != nil || len(b) == 0 {
		return w.failed
	}
	w.pieces++
	w.push(w.inOrder(len(b)), piece{bytes.Clone(b), true})
	return nil
}

// inOrder returns the arrival time of a piece after the earlier ones.
func (w *way) inOrder(size int) time.Duration {
	now := w.now()
	for range maxRetransmissions {
		t := w.path.Send(now, size+simulatedHeaders)
		if t.Copies > 0 {
			now = t.At[0]
			break
		}
		now += w.trip + retransmission
	}
	w.last = max(w.last, now)
	return w.last
}

func (w *way) push(at time.Duration, p piece) {
	w.queue.Push(at, p)
	w.bytes += len(p.data)
	w.changed.Broadcast()
}

// run delivers the pieces until the end.
func (w *way) run() {
	for {
		p, ok := w.next()
		if !ok {
			return
		}
		err := w.deliver(p)
		if p.stream {
			w.delivered(err)
		}
	}
}

// next waits for the next piece to arrive. It reports false at the end.
func (w *way) next() (p piece, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for !w.ended {
		now := w.now()
		if p, _, ok = w.queue.Pop(now); ok {
			w.bytes -= len(p.data)
			w.changed.Broadcast()
			if p.stream && w.failed != nil {
				w.pieces--
				continue
			}
			return p, true
		}
		if at, waits := w.queue.Next(); waits {
			t := time.AfterFunc(at-now, w.wake)
			w.changed.Wait()
			t.Stop()
		} else {
			w.changed.Wait()
		}
	}
	return p, false
}

func (w *way) wake() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.changed.Broadcast()
}

func (w *way) delivered(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pieces--
	if w.failed == nil {
		w.failed = err
	}
	w.changed.Broadcast()
}

// drain waits until the bytes of the stream have arrived, and returns their error.
func (w *way) drain() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.pieces > 0 && !w.ended && w.failed == nil {
		w.changed.Wait()
	}
	return w.failed
}

// end drops all pieces under way.
func (w *way) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended, w.queue, w.bytes = true, netem.Schedule[piece]{}, 0
	w.changed.Broadcast()
}

// roundTrip returns the emulated round trip.
func (s *simulation) roundTrip() time.Duration {
	s.up.mu.Lock()
	defer s.up.mu.Unlock()
	return s.up.trip
}
