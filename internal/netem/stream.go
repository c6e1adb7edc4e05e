package netem

import (
	"bytes"
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

const (
	// streamHeaders is the size of the IPv4 and TCP headers of a segment.
	streamHeaders = 52
	// maxStream bounds the bytes that wait in one direction of a stream: beyond it reads stop and
	// writes block, as with TCP.
	maxStream = 256 << 10
	// maxBacklog is the queueing time at the bottleneck above which writes block: the writer
	// notices a slow link, as with a small send buffer.
	maxBacklog = 20 * time.Millisecond
	// streamRetry is the time, in addition to a round trip, after which a lost segment is sent
	// again, and for which a segment waits for room in the router's queue.
	streamRetry = 20 * time.Millisecond
)

// Stream is a connection behind an emulated network, at the server's end. TCP hides loss,
// duplication and reordering: only delay remains. So each piece arrives in order, after its delay,
// and a lost piece delays the later ones by a round trip. A rebind and damage have no effect on
// it. Deadlines are set on the wrapped connection. It has two goroutines of its own until Close.
type Stream struct {
	net.Conn
	start time.Time
	in    *pipe // from the client
	out   *pipe // to the client
	works sync.WaitGroup
}

// pipe is one direction of a stream.
type pipe struct {
	way   *Way
	d     Direction
	trip  time.Duration // a round trip
	stats *Stats

	mu      sync.Mutex
	changed *sync.Cond
	path    Path
	pieces  []piece
	bytes   int
	last    time.Duration // when the newest piece arrives
	err     error         // after all pieces
	closed  bool
}

type piece struct {
	at   time.Duration
	data []byte
}

// NewStream puts a network in front of a connection, which belongs to the Stream from now on. n is
// the number of the stream: each has its own random numbers.
func NewStream(c net.Conn, cfg Config, n uint64) *Stream {
	if cfg.Stats == nil {
		cfg.Stats = new(Stats)
	}
	s := &Stream{Conn: c, start: time.Now()}
	made := func(d Direction) *pipe {
		ways := &cfg.Spec.Ways
		p := &pipe{way: &ways[d], d: d, trip: ways[Up].Delay + ways[Down].Delay, stats: cfg.Stats}
		p.path = NewPath(ways[d].Link, cfg.Seed, ^(n*directions + uint64(d)))
		p.changed = sync.NewCond(&p.mu)
		return p
	}
	s.in, s.out = made(Up), made(Down)
	// The real connection was made without delay, so its first bytes also get the delay of the
	// round trips of TCP's handshake and of the request.
	s.in.last = 2*s.in.trip + cfg.Spec.Ways[Up].Delay
	s.works.Go(s.receive)
	s.works.Go(s.send)
	return s
}

func (s *Stream) now() time.Duration { return time.Since(s.start) }

// receive reads the connection until it ends.
func (s *Stream) receive() {
	buf := make([]byte, 16<<10)
	for {
		n, err := s.Conn.Read(buf)
		if n > 0 && s.in.put(s.now, buf[:n]) != nil {
			return
		}
		if err != nil && !s.in.fail(err) {
			return
		}
	}
}

// send writes each piece when it arrives.
func (s *Stream) send() {
	for {
		p, err := s.out.take(s.now, maxStream)
		if err != nil {
			return
		}
		if _, err := s.Conn.Write(p); err != nil {
			s.out.end(err)
			return
		}
	}
}

// Read implements net.Conn.
func (s *Stream) Read(b []byte) (int, error) {
	p, err := s.in.take(s.now, len(b))
	return copy(b, p), err
}

// Write implements net.Conn. It waits while too many bytes are under way.
func (s *Stream) Write(b []byte) (int, error) {
	if err := s.out.put(s.now, b); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Close implements net.Conn. Bytes that have not arrived by then are lost.
func (s *Stream) Close() error {
	s.in.end(net.ErrClosed)
	s.out.end(net.ErrClosed)
	err := s.Conn.Close()
	s.works.Wait()
	return err
}

// put sends bytes, once there is room for them.
func (p *pipe) put(now func() time.Duration, b []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.closed {
		behind := p.path.Backlog(now()) - maxBacklog
		if p.bytes < maxStream && behind <= 0 {
			break
		}
		t := time.AfterFunc(max(behind, streamRetry), p.wake)
		p.changed.Wait()
		t.Stop()
	}
	if p.closed {
		return p.err
	}
	p.last = max(p.last, p.arrival(now(), len(b)+streamHeaders))
	p.pieces = append(p.pieces, piece{p.last, bytes.Clone(b)})
	p.bytes += len(b)
	p.changed.Broadcast()
	return nil
}

// arrival returns the arrival time of a piece that is sent now, and again after each loss.
func (p *pipe) arrival(now time.Duration, size int) time.Duration {
	for tries := 0; ; tries++ {
		t := p.path.Send(now, size)
		switch {
		case p.way.Hole.has(now):
			p.stats.add(p.d, Blackout)
			now = p.way.Hole.At + p.way.Hole.For
		case t.Tail:
			p.stats.add(p.d, Queue)
		case t.Copies > 0 || tries >= maxRetries:
			p.stats.add(p.d, Passed)
			return max(t.At[0], now)
		default:
			p.stats.add(p.d, Lost)
			now += p.trip
		}
		now += streamRetry
	}
}

// maxRetries bounds the losses of one piece, also on a link that loses all.
const maxRetries = 100

// take waits for the next piece to arrive, and returns at most so many of its bytes.
func (p *pipe) take(now func() time.Duration, most int) ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		switch {
		case p.closed:
			return nil, p.err
		case len(p.pieces) == 0 && p.err != nil:
			err := p.err
			if errors.Is(err, os.ErrDeadlineExceeded) {
				p.err = nil // The next read has another deadline, if any.
				p.changed.Broadcast()
			}
			return nil, err
		case len(p.pieces) == 0:
			p.changed.Wait()
			continue
		}
		first := &p.pieces[0]
		if wait := first.at - now(); wait > 0 {
			t := time.AfterFunc(wait, p.wake)
			p.changed.Wait()
			t.Stop()
			continue
		}
		b := first.data[:min(most, len(first.data))]
		if first.data = first.data[len(b):]; len(first.data) == 0 {
			p.pieces = p.pieces[1:]
		}
		p.bytes -= len(b)
		p.changed.Broadcast()
		return b, nil
	}
}

func (p *pipe) wake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.changed.Broadcast()
}

// fail stores an error of the connection, which the reader gets after all pieces. If a deadline
// expired, it waits until the reader has got the error, and reports whether to continue reading.
func (p *pipe) fail(err error) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.err = err
	p.changed.Broadcast()
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	for p.err != nil && !p.closed {
		p.changed.Wait()
	}
	return !p.closed
}

// end ends the direction at once.
func (p *pipe) end(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	p.closed, p.err, p.pieces = true, err, nil
	p.changed.Broadcast()
}
