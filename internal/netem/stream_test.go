package netem

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// streamed is a stream of a spec in virtual time, and its client's end.
func streamed(t *testing.T, spec string, play func(t *testing.T, s *Stream, client net.Conn, st *Stats)) {
	t.Helper()
	parsed, err := Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		st := new(Stats)
		s := NewStream(server, Config{Spec: parsed, Seed: 7, Stats: st}, 1)
		play(t, s, client, st)
		_ = s.Close()
		_ = client.Close()
	})
}

func write(t *testing.T, to io.Writer, text string) {
	t.Helper()
	if _, err := io.WriteString(to, text); err != nil {
		t.Error(err)
	}
}

// reads expects a text, and returns how long it took.
func reads(t *testing.T, from io.Reader, want string) time.Duration {
	t.Helper()
	began, got := time.Now(), make([]byte, len(want))
	if _, err := io.ReadFull(from, got); err != nil || string(got) != want {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
	return time.Since(began)
}

// Both directions of a stream are delayed, and pieces that are sent one after the other arrive in
// that order.
func TestAStreamIsDelayedBothWays(t *testing.T) {
	streamed(t, "rtt=150ms", func(t *testing.T, s *Stream, client net.Conn, st *Stats) {
		const way = 75 * time.Millisecond
		write(t, s, "a")
		time.Sleep(10 * time.Millisecond)
		write(t, s, "b")
		if a, b := reads(t, client, "a"), reads(t, client, "b"); a != way-10*time.Millisecond || b != 10*time.Millisecond {
			t.Errorf("down after %v and %v more", a, b)
		}
		write(t, client, "0")
		// Two round trips and the delay, of which 85 ms have passed.
		if took := reads(t, s, "0"); took != 4*way-10*time.Millisecond {
			t.Errorf("the first bytes came up after %v more", took)
		}
		write(t, client, "c")
		time.Sleep(10 * time.Millisecond)
		write(t, client, "d")
		if c, d := reads(t, s, "c"), reads(t, s, "d"); c != way-10*time.Millisecond || d != 10*time.Millisecond {
			t.Errorf("up after %v and %v more", c, d)
		}
		if st.Get(Up, Passed) != 3 || st.Get(Down, Passed) != 2 {
			t.Errorf("counts: %v", st)
		}
	})
}

// No piece of a stream is lost or overtaken: a lost piece is late, and so are the pieces after it.
func TestALossDelaysAStream(t *testing.T) {
	streamed(t, "rtt=100ms,jitter=50ms,loss=30%,reorder=20%,dup=20%", func(t *testing.T, s *Stream, client net.Conn, st *Stats) {
		want := ""
		for i := range 100 {
			text := string(rune('a' + i%26))
			want += text
			write(t, s, text)
			time.Sleep(time.Millisecond)
		}
		if took := reads(t, client, want); took < 100*time.Millisecond || took > 2*time.Second {
			t.Errorf("it took %v", took)
		}
		if st.Get(Down, Lost) < 10 || st.Get(Down, Passed) != 100 {
			t.Errorf("counts: %v", st)
		}
	})
}

// A stream is no faster than its bottleneck, and a writer waits while too many bytes are in
// flight.
func TestAStreamHasABottleneck(t *testing.T) {
	streamed(t, "rate=800kbit/s", func(t *testing.T, s *Stream, client net.Conn, _ *Stats) {
		const size, pieces = 10_000, 60
		began, wrote := time.Now(), time.Duration(0)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range pieces {
				_, _ = s.Write(make([]byte, size))
			}
			wrote = time.Since(began)
		}()
		_, _ = io.ReadFull(client, make([]byte, size*pieces))
		if took := time.Since(began); took < 6*time.Second || took > 8*time.Second {
			t.Errorf("600 kB took %v over 100 kB/s", took)
		}
		<-done
		if wrote < 5*time.Second {
			t.Errorf("the writer was done after %v", wrote)
		}
	})
}

// A deadline of the underlying connection ends reads only. The end of the stream follows all sent
// data. Close ends reads and writes at once.
func TestAStreamEnds(t *testing.T) {
	streamed(t, "rtt=100ms", func(t *testing.T, s *Stream, client net.Conn, _ *Stats) {
		_ = s.SetReadDeadline(time.Now().Add(time.Second))
		if _, err := s.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("past the deadline: %v", err)
		}
		_ = s.SetReadDeadline(time.Time{})
		write(t, client, "late")
		_ = client.Close()
		if took := reads(t, s, "late"); took != 50*time.Millisecond {
			t.Errorf("after %v", took)
		}
		if _, err := s.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("after the end: %v", err)
		}
	})
	streamed(t, "rtt=10s", func(t *testing.T, s *Stream, client net.Conn, _ *Stats) {
		write(t, client, "x")
		done := make(chan error)
		go func() { _, err := s.Read(make([]byte, 1)); done <- err }()
		time.Sleep(time.Second)
		_ = s.Close()
		if err := <-done; !errors.Is(err, net.ErrClosed) {
			t.Errorf("a read of a closed stream: %v", err)
		}
		if _, err := s.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
			t.Errorf("a write: %v", err)
		}
	})
	streamed(t, "loss=100%,hole=3s@0s", func(t *testing.T, s *Stream, client net.Conn, _ *Stats) {
		write(t, s, "x")
		if took := reads(t, client, "x"); took < 3*time.Second || took > 10*time.Second {
			t.Errorf("with every packet lost a piece took %v", took)
		}
	})
}

// A stream without Stats counts for itself.
func TestAStreamWithoutStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		s := NewStream(server, Config{}, 1)
		write(t, s, "a")
		reads(t, client, "a")
		_ = s.Close()
		_ = client.Close()
	})
}

// lingering is a connection whose Read ends a second after its Close.
type lingering struct {
	net.Conn
	ended bool
}

func (l *lingering) Read(b []byte) (int, error) {
	n, err := l.Conn.Read(b)
	time.Sleep(time.Second)
	l.ended = true
	return n, err
}

// Close returns only after the goroutines of the stream have ended.
func TestCloseWaitsForItsGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		l := &lingering{Conn: server}
		s := NewStream(l, Config{}, 1)
		if err := s.Close(); err != nil || !l.ended {
			t.Errorf("the goroutine has ended: %v, %v", l.ended, err)
		}
		_ = client.Close()
	})
}
