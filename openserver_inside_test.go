package netloop

import (
	"bytes"
	"context"
	"errors"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

// shared is a game with resources of the server.
type shared struct {
	closedGame
	opens func() error
	close func(context.Context) error
	calls []string
}

func (g *shared) OpenServer(*Server) error {
	g.calls = append(g.calls, "open")
	return g.opens()
}

func (g *shared) CloseServer(ctx context.Context) error {
	g.calls = append(g.calls, "close")
	return g.close(ctx)
}

func none() error                      { return nil }
func closesNone(context.Context) error { return nil }

// CloseServer follows a successful OpenServer exactly once, after the end of the rooms.
func TestTheServersResourcesAreOpenedAndClosedOnce(t *testing.T) {
	ouch := errors.New("ouch")
	for name, c := range map[string]struct {
		opens      func() error
		room       error // of Open
		close      func(context.Context) error
		calls      string
		newErr     string
		closingErr string
	}{
		"both":           {none, nil, closesNone, "open room close", "", ""},
		"failed":         {func() error { return ouch }, nil, closesNone, "open", "the game's OpenServer: ouch", ""},
		"panicked":       {func() error { panic("ouch") }, nil, closesNone, "open", "the game's OpenServer panicked: ouch", ""},
		"room failed":    {none, ouch, closesNone, "open room close", "the game's Open: ouch", ""},
		"close failed":   {none, nil, func(context.Context) error { return ouch }, "open room close", "", "ouch"},
		"close panicked": {none, nil, func(context.Context) error { panic("ouch") }, "open room close", "", "CloseServer panicked"},
		"close exited":   {none, nil, func(context.Context) error { runtime.Goexit(); return nil }, "open room close", "", "called runtime.Goexit"},
		"close is slow":  {none, nil, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, "open room close", "", "deadline exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := &shared{opens: c.opens, close: c.close}
				g.closedGame = closedGame{&opening{fill: func(*Room) error { g.calls = append(g.calls, "room"); return c.room }}}
				s, err := New(Config{Offline: true, Watchdog: -1}, g)
				checkText(t, "New", err, c.newErr)
				if err == nil {
					checkText(t, "Close", s.Close(), c.closingErr)
				}
				if got := strings.Join(g.calls, " "); got != c.calls {
					t.Errorf("the calls are %q, want %q", got, c.calls)
				}
			})
		})
	}
}

func checkText(t *testing.T, what string, err error, want string) {
	t.Helper()
	if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("%s: %v, want %q", what, err, want)
	}
}

func TestAStuckCloseServerIsLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		g := &shared{closedGame: closedGame{new(opening)}, opens: none, close: func(context.Context) error { <-release; return nil }}
		s, err := New(Config{Offline: true, Watchdog: -1}, g)
		if err != nil {
			t.Fatal(err)
		}
		checkText(t, "Close", s.Close(), "does not return")
		counted(t, s, `netloop_left_behind_total{hook="CloseServer"} 1`)
		close(release)
		synctest.Wait()
	})
}

// A replay returns the results and errors of Fetch as they were, and calls neither its work nor
// OpenServer.
func TestFetchIsRecorded(t *testing.T) {
	type row struct{ Names []string }
	var got []row
	var errs []error
	work := []func(context.Context) (row, error){
		func(context.Context) (row, error) { return row{[]string{"a", "b"}}, nil },
		func(context.Context) (row, error) { return row{}, errors.New("no disk") },
		func(context.Context) (row, error) { return row{}, Refuse(CodeBusy, "later") },
	}
	fill := func(r *Room) error {
		got, errs = nil, nil
		for _, do := range work {
			v, err := Fetch(r, do)
			got, errs = append(got, v), append(errs, err)
		}
		return nil
	}
	var file bytes.Buffer
	g := &shared{closedGame: closedGame{&opening{fill: fill}}, opens: none, close: closesNone}
	s, err := New(Config{Offline: true, Watchdog: -1, Record: &file}, g)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s.room.fetched != nil {
		t.Error("the room keeps the recorded results")
	}
	play := func() error {
		_, err := NewReplay(Config{}, g, bytes.NewReader(file.Bytes()))
		return err
	}
	calls := len(g.calls)
	for i := range work {
		work[i] = func(context.Context) (row, error) { t.Error("a replay runs the work"); return row{}, nil }
	}
	if err := play(); err != nil {
		t.Fatal(err)
	}
	var refused *Refusal
	if !slices.Equal(got[0].Names, []string{"a", "b"}) || errs[0] != nil || errs[1] == nil || errs[1].Error() != "no disk" ||
		!errors.As(errs[2], &refused) || refused.Code != CodeBusy || refused.Text != "later" || len(g.calls) != calls {
		t.Errorf("the replay has %v and %v, after the calls %v", got, errs, g.calls)
	}
	work = append(work, work[0])
	if err := play(); err != nil || errs[3] == nil || !strings.Contains(errs[3].Error(), "fewer calls") {
		t.Errorf("a call that was not recorded: %v, %v", err, errs)
	}
}

// A result that a recording cannot store does not replay, and says so.
func TestAFetchOfAChannelDoesNotReplay(t *testing.T) {
	var err error
	fill := func(r *Room) error {
		_, err = Fetch(r, func(context.Context) (io.Reader, error) { return strings.NewReader("x"), nil })
		return nil
	}
	var file bytes.Buffer
	g := closedGame{&opening{fill: fill}}
	s, failed := New(Config{Offline: true, Watchdog: -1, Record: &file}, g)
	if failed = errors.Join(failed, s.Close(), err); failed != nil {
		t.Fatal(failed)
	}
	if _, failed := NewReplay(Config{}, g, bytes.NewReader(file.Bytes())); failed != nil {
		t.Fatal(failed)
	}
	checkText(t, "Fetch", err, "the recording lacks the result")
}

func TestFetchOutsideOfOpenPanics(t *testing.T) {
	var r *Room
	s, err := New(Config{Offline: true, Watchdog: -1}, closedGame{&opening{fill: func(room *Room) error { r = room; return nil }}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if recover() == nil {
			t.Error("Fetch does not panic")
		}
		_ = s.Close()
	}()
	_, _ = Fetch(r, func(context.Context) (int, error) { return 0, nil })
}
