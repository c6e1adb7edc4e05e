package driver

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/netloop/netloop/internal/testing/nettest"
	"github.com/netloop/netloop/internal/transport"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// A client sends its hello, and a goodbye with a reason if the handshake fails, but none if the
// server has closed.
func TestHowAGreetingEnds(t *testing.T) {
	welcome, err := transport.AppendWelcome(nil, nettest.Welcome(7))
	if err != nil {
		t.Fatal(err)
	}
	part := func(data ...byte) []byte { // of tables whose only field, of three bytes, is unknown
		b, err := transport.AppendFrame(nil, &netloopv1.Frame{Kind: &netloopv1.Frame_SchemaPart{SchemaPart: &netloopv1.SchemaPart{Size: 3, Data: data}}})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	tables := part(0xc0, 0x3e, 1)
	inParts := func(pause time.Duration) func(*nettest.Wire, func()) {
		return func(w *nettest.Wire, _ func()) {
			for _, b := range [][]byte{part(0xc0), part(0x3e), part(1), welcome} {
				w.Stream <- b
				time.Sleep(pause)
			}
		}
	}
	refusal := &transport.Refusal{Code: transport.CodeFull, Text: "all of them"}
	for name, c := range map[string]struct {
		says  []byte // the server
		does  func(w *nettest.Wire, cancel func())
		code  transport.Code // of the error
		bye   transport.Code // with which the client closes; 0: it does not
		after time.Duration
	}{
		"a welcome":             {says: welcome},
		"a welcome in pieces":   {says: welcome[:1], does: func(w *nettest.Wire, _ func()) { w.Stream <- welcome[1:] }},
		"tables and a welcome":  {says: tables, does: func(w *nettest.Wire, _ func()) { w.Stream <- welcome }},
		"a refusal":             {says: transport.AppendRefused(nil, refusal), code: transport.CodeFull, bye: transport.CodeLeft},
		"nonsense":              {says: []byte{2, 0xff, 0xff}, code: transport.CodeProtocol, bye: transport.CodeProtocol},
		"a frame that is large": {says: []byte{0xff, 0xff, 0xff, 0x7f}, bye: transport.CodeProtocol},
		"tables in parts":       {does: inParts(400 * time.Millisecond)},
		"tables that trickle":   {does: inParts(600 * time.Millisecond), code: transport.CodeTimeout, bye: transport.CodeTimeout},
		"half of the tables":    {says: part(0xc0), code: transport.CodeTimeout, bye: transport.CodeTimeout, after: time.Second},
		"a user that gives up":  {does: func(_ *nettest.Wire, cancel func()) { cancel() }, bye: transport.CodeLeft},
		"an end":                {says: []byte{}, bye: transport.CodeLeft, after: Linger},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := nettest.NewWire()
				ctx, cancel := context.WithCancel(context.Background())
				var does sync.WaitGroup
				if c.says != nil {
					w.Stream <- c.says
				}
				if c.does != nil {
					does.Go(func() {
						time.Sleep(2 * time.Second) // All patience with tables is over by then.
						c.does(w, cancel)
					})
				}
				began := time.Now()
				g := transport.Greeting{Hello: nettest.Hello(), Adapt: func(*netloopv1.SchemaTables) error { return nil }}
				got, err := Greet(ctx, w, &g, []byte("hello"), time.Second)
				if took := time.Since(began); c.does == nil && took != c.after {
					t.Errorf("it took %v, want %v", took, c.after)
				}
				if well := c.bye == 0; (err == nil) != well || well && got.GetClientId() != 7 || !bytes.HasPrefix(w.Wrote, []byte("hello")) {
					t.Errorf("%v, %v; the server reads %q", got, err, w.Wrote)
				}
				var closed *transport.Closed
				var refused *transport.Refusal
				if errors.As(err, &refused) {
					closed = &transport.Closed{Code: refused.Code}
				}
				if c.code != 0 && (closed == nil && !errors.As(err, &closed) || closed.Code != c.code) {
					t.Errorf("the error is %v, want %v", err, c.code)
				}
				cancel()
				does.Wait()
				synctest.Wait()
				if (len(w.Closes) != 0) != (c.bye != 0) || c.bye != 0 && w.Closes[0].Code != c.bye {
					t.Errorf("the client closes with %v, want %v", w.Closes, c.bye)
				}
				if err == nil && !w.Deadline.IsZero() {
					t.Error("a deadline is left")
				}
			})
		})
	}
}

// A client that gives up an attempt after its limit leaves, unless it has a seat, which the server
// may have resumed already: then it reports a timeout. A user that cancels leaves in both cases.
func TestAnAttemptIsGivenUp(t *testing.T) {
	for _, seat := range []string{"", "secret"} {
		for _, cancelled := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				w := nettest.NewWire()
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if cancelled {
					cancel()
				}
				hello := nettest.Hello()
				hello.Resume = &netloopv1.Resume{Token: []byte(seat)}
				_, err := Greet(ctx, w, &transport.Greeting{Hello: hello}, nil, time.Second)
				synctest.Wait()
				want := transport.CodeLeft
				if seat != "" && !cancelled {
					want = transport.CodeTimeout
				}
				if err == nil || len(w.Closes) == 0 || w.Closes[0].Code != want {
					t.Errorf("seat %q, cancelled %v: %v; it closes with %v, want %v", seat, cancelled, err, w.Closes, want)
				}
			})
		}
	}
}

// If the user cancels at the moment of the welcome, Greet returns context.Canceled, because the
// connection is being closed. If the user cancels at the moment of a refusal, Greet returns the
// refusal.
func TestAUserGivesUpAtTheAnswer(t *testing.T) {
	refusal := &transport.Refusal{Code: transport.CodeFull, Text: "all of them"}
	welcome, err := transport.AppendWelcome(nil, nettest.Welcome(7))
	if err != nil {
		t.Fatal(err)
	}
	tables, err := transport.AppendTables(nil, &netloopv1.SchemaTables{})
	if err != nil {
		t.Fatal(err)
	}
	for _, welcomes := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			w := nettest.NewWire()
			ctx, cancel := context.WithCancel(context.Background())
			answer := transport.AppendRefused(nil, refusal)
			if welcomes {
				answer = welcome
			}
			w.Stream <- slices.Concat(tables, answer)
			g := transport.Greeting{Hello: nettest.Hello(), Adapt: func(*netloopv1.SchemaTables) error { cancel(); return nil }}
			_, err := Greet(ctx, w, &g, nil, time.Second)
			var told *transport.Refusal
			if errors.Is(err, context.Canceled) != welcomes || errors.As(err, &told) == welcomes {
				t.Errorf("with a welcome: %v; it says %v", welcomes, err)
			}
			synctest.Wait()
			if len(w.Closes) == 0 || w.Closes[0].Code != transport.CodeLeft {
				t.Errorf("it closes with %v", w.Closes)
			}
		})
	}
}

// After a failed write the error is that of the connection, if the connection has ended.
func TestAGreetingOnALostConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		other := errors.New("a pipe is broken")
		for _, lost := range []bool{true, false} {
			w := nettest.NewWire()
			w.Fails = other
			if lost {
				w.Cut()
			}
			began := time.Now()
			_, err := Greet(context.Background(), w, &transport.Greeting{Hello: nettest.Hello()}, []byte("hello"), time.Second)
			if want := map[bool]error{true: nettest.ErrGone, false: other}[lost]; !errors.Is(err, want) {
				t.Errorf("lost %v: %v, want %v", lost, err, want)
			}
			if took := time.Since(began); (took == 0) != lost || took > Linger {
				t.Errorf("lost %v: it took %v", lost, took)
			}
		}
	})
}

// A client that a server without a free place has refused dials again, each time after a longer
// pause, from 25 ms to 400 ms and half of it more or less. After 50 attempts, some 20 s, it returns
// the refusal. It returns any other error at once.
func TestAClientInsists(t *testing.T) {
	full, broken := errors.New("full"), errors.New("broken")
	isFull := func(err error) bool { return errors.Is(err, full) }
	synctest.Test(t, func(t *testing.T) {
		for run := range 300 {
			last, asked := time.Now(), 0
			_, err := Retry(t.Context(), func() (int, error) {
				pause, now := min(25*time.Millisecond<<min(max(asked-1, 0), 8), 400*time.Millisecond), time.Now()
				if gap := now.Sub(last); asked > 0 && (gap < pause/2 || gap >= pause/2+pause) {
					t.Fatalf("run %d: before question %d there is a pause of %v, want about %v", run, asked, gap, pause)
				}
				last = now
				asked++
				return 0, full
			}, isFull)
			if !isFull(err) || asked != 50 {
				t.Fatalf("after %d questions it says %v", asked, err)
			}
		}
	})
	for n, want := range map[int]error{1: nil, 3: nil, 2: broken} {
		synctest.Test(t, func(t *testing.T) {
			asked := 0
			got, err := Retry(t.Context(), func() (int, error) {
				if asked++; asked == n {
					return 5, want
				}
				return 0, full
			}, isFull)
			if asked != n || got != 5 || !errors.Is(err, want) {
				t.Errorf("after %d questions: %d, %v; want %v at question %d", asked, got, err, want, n)
			}
		})
	}
}

// When the context ends, the client returns the last refusal, if any.
func TestInsistingEndsInTime(t *testing.T) {
	full, late := errors.New("full"), errors.New("late")
	for name, c := range map[string]struct {
		fails func(asked int, cancel func()) error
		want  error
		asked int
	}{
		"in a pause": {func(_ int, cancel func()) error { time.AfterFunc(time.Millisecond, cancel); return full }, full, 1},
		"during a question": {func(asked int, cancel func()) error {
			return map[int]func() error{1: func() error { return full }, 2: func() error { cancel(); return late }}[asked]()
		}, full, 2},
		"at the first one": {func(_ int, cancel func()) error { cancel(); return late }, late, 1},
		"with an answer":   {func(int, func()) error { return nil }, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				asked := 0
				_, err := Retry(ctx, func() (int, error) {
					asked++
					return 0, c.fails(asked, cancel)
				}, func(err error) bool { return errors.Is(err, full) })
				if !errors.Is(err, c.want) || asked != c.asked {
					t.Errorf("after %d questions it says %v, want %v after %d", asked, err, c.want, c.asked)
				}
			})
		})
	}
}

// Ended waits for the end of a connection, half a second and no longer.
func TestAnEndIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := nettest.NewWire()
		began := time.Now()
		if Ended(w) || time.Since(began) != 500*time.Millisecond {
			t.Errorf("after %v it has ended", time.Since(began))
		}
		time.AfterFunc(Linger-1, w.Cut)
		if began = time.Now(); !Ended(w) || time.Since(began) != Linger-1 {
			t.Errorf("after %v it has not ended", time.Since(began))
		}
	})
}
