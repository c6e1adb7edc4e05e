package boundedio

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errBroken = errors.New("disk full")

// output blocks until it is open, and refuses the writes with the numbers in broken.
type output struct {
	open   chan struct{} // nil is open
	broken map[int]bool

	mu     sync.Mutex
	writes int
	bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	if o.open != nil {
		<-o.open
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.writes++
	if o.broken[o.writes] {
		return 0, errBroken
	}
	return o.Buffer.Write(p)
}

func missing(n uint64) []byte { return fmt.Appendf(nil, "(%d missing)", n) }

func TestAllPiecesAreWrittenCompletelyAndInOrder(t *testing.T) {
	for _, notice := range []func(uint64) []byte{nil, missing} {
		var out output
		w := New(Config{Out: &out, Limit: 1 << 20, Notice: notice})
		var want []byte
		for i := range 1000 {
			piece := bytes.Repeat([]byte{byte(i)}, i%7)
			want = append(want, piece...)
			if n, err := w.Write(piece); err != nil || n != len(piece) {
				t.Fatalf("%d bytes, error %v", n, err)
			}
		}
		if err := w.Close(t.Context()); err != nil || !bytes.Equal(out.Bytes(), want) || w.Lost() != 0 {
			t.Fatalf("%d bytes of %d, %d lost, error %v", out.Len(), len(want), w.Lost(), err)
		}
	}
}

// fill writes numbered pieces of 10 bytes while the output is blocked in the first of them.
func fill(t *testing.T, w *Writer, pieces int) (taken int, err error) {
	for i := range pieces {
		var n int
		if n, err = fmt.Fprintf(w, "%010d", i); err != nil {
			return taken, err
		}
		if n != 10 {
			t.Errorf("%d bytes of a piece were taken", n)
		}
		taken++
		if i == 0 {
			synctest.Wait()
		}
	}
	return taken, err
}

// A caller never waits, and two buffers are all the memory in use.
func TestAFullWriterWritesItsAcceptedPieces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &output{open: make(chan struct{})}
		w := New(Config{Out: out, Limit: 100})
		taken, err := fill(t, w, 1000)
		if taken != 1+10 || !errors.Is(err, ErrFull) || cap(w.pending) > 2*100 {
			t.Errorf("%d pieces were taken, %d bytes are held, error %v", taken, cap(w.pending), err)
		}
		close(out.open)
		synctest.Wait() // There is room again, but too late.
		if n, err := w.Write([]byte("after a gap")); n != 0 || !errors.Is(err, ErrFull) {
			t.Errorf("%d bytes were taken after a gap, error %v", n, err)
		}
		if err := w.Close(t.Context()); !errors.Is(err, ErrFull) || out.Len() != 10*taken || w.Lost() != 0 {
			t.Errorf("%d bytes were written, %d pieces lost, error %v", out.Len(), w.Lost(), err)
		}
	})
}

func TestNothingIsWrittenAfterAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &output{broken: map[int]bool{2: true}}
		w := New(Config{Out: out, Limit: 100})
		for i, want := range []error{nil, nil, errBroken} {
			if _, err := w.Write([]byte{'a' + byte(i)}); !errors.Is(err, want) {
				t.Errorf("piece %d: error %v, want %v", i, err, want)
			}
			synctest.Wait()
		}
		if err := w.Close(t.Context()); !errors.Is(err, errBroken) || out.String() != "a" {
			t.Errorf("%q was written, error %v", out, err)
		}
	})
}

// Pieces that are written while the output fails would follow a gap. A lossy Writer writes them.
func TestPendingPiecesAfterAnErrorAreNotWritten(t *testing.T) {
	for _, c := range []struct {
		notice func(uint64) []byte
		want   string
		err    error
	}{{nil, "", errBroken}, {missing, "00000000010000000002(1 missing)", nil}} {
		synctest.Test(t, func(t *testing.T) {
			out := &output{open: make(chan struct{}), broken: map[int]bool{1: true}}
			w := New(Config{Out: out, Limit: 100, Notice: c.notice})
			if _, err := fill(t, w, 3); err != nil {
				t.Error(err)
			}
			close(out.open)
			if err := w.Close(t.Context()); !errors.Is(err, c.err) || out.String() != c.want {
				t.Errorf("%q was written, error %v, want %q, %v", out, err, c.want, c.err)
			}
		})
	}
}

// A lossy Writer returns no error to its caller: all pieces are written, or counted and reported.
func TestALossyWriterContinuesAfterErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &output{open: make(chan struct{})}
		w := New(Config{Out: out, Limit: 100, Notice: missing})
		if taken, err := fill(t, w, 1000); taken != 1000 || err != nil || w.Lost() != 989 || cap(w.pending) > 2*100 {
			t.Errorf("%d pieces, %d lost, %d bytes are held, error %v", taken, w.Lost(), cap(w.pending), err)
		}
		close(out.open)
		synctest.Wait()
		if n := strings.Count(out.String(), "(989 missing)"); n != 1 || out.Len() != 11*10+len("(989 missing)") {
			t.Errorf("told %d times: %q", n, out)
		}
		// Two batches and a notice were written. The next batch fails, and then a notice.
		out.broken = map[int]bool{4: true, 6: true}
		for _, piece := range []string{"lost", "next", "last"} {
			if _, err := w.Write([]byte(piece)); err != nil {
				t.Error(err)
			}
			synctest.Wait()
		}
		if !strings.HasSuffix(out.String(), "nextlast(1 missing)") || w.Lost() != 990 {
			t.Errorf("%d lost: %q", w.Lost(), out)
		}
		if err := w.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if n, err := w.Write([]byte("late")); n != 4 || err != nil || w.Lost() != 991 {
			t.Errorf("%d bytes after the end, %d lost, error %v", n, w.Lost(), err)
		}
	})
}

func TestAClosedWriterRefusesPieces(t *testing.T) {
	var out output
	w := New(Config{Out: &out, Limit: 100})
	for range 2 {
		if err := w.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if n, err := w.Write([]byte("late")); n != 0 || !errors.Is(err, ErrClosed) || out.Len() != 0 {
		t.Errorf("%d bytes, error %v", n, err)
	}
}

func TestCloseReturnsWhenItsContextEnds(t *testing.T) {
	out := &output{open: make(chan struct{})}
	w := New(Config{Out: out, Limit: 100})
	if _, err := w.Write([]byte("stuck")); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.Close(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	close(out.open)
	if err := w.Close(t.Context()); err != nil || out.String() != "stuck" {
		t.Errorf("%q, error %v", out, err)
	}
}

func TestWritingAllocatesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New(Config{Out: io.Discard, Limit: 100, Notice: missing})
		piece := make([]byte, 100)
		write := func() {
			if _, err := w.Write(piece); err != nil {
				t.Error(err)
			}
			synctest.Wait()
		}
		write()
		write() // Both buffers are allocated now.
		if n := testing.AllocsPerRun(100, write); n != 0 || w.Lost() != 0 {
			t.Errorf("%v allocations, %d lost", n, w.Lost())
		}
		if err := w.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
