package term

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
)

// scripted is a server with prepared streams, one after another; the last one lasts until its
// context ends.
type scripted struct {
	mu      sync.Mutex
	streams []string
	queries []url.Values
	refuse  error // of each stream after the last one
}

func (s *scripted) Now() time.Duration { return time.Second }

func (s *scripted) Ask(_ context.Context, method, page string, query url.Values) ([]byte, error) {
	if page == "api/clients/kick" {
		return fmt.Appendf(nil, "%s %s\n", method, query.Encode()), nil
	}
	return []byte(`{"budget_ns":1,"ticks":[{"tick":7}]}`), nil
}

func (s *scripted) Stream(ctx context.Context, _ string, query url.Values) (io.ReadCloser, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queries = append(s.queries, query)
	if len(s.streams) == 0 {
		return nil, s.refuse
	}
	content := s.streams[0]
	s.streams = s.streams[1:]
	if len(s.streams) > 0 || s.refuse != nil {
		return io.NopCloser(strings.NewReader(content)), nil
	}
	r, w := io.Pipe()
	go func() {
		_, _ = io.WriteString(w, content) // The reader may have ended.
		<-ctx.Done()
		_ = w.CloseWithError(ctx.Err()) // It returns nil.
	}()
	return r, nil
}

const (
	comment = ": still here\n\n"
	tickOne = "event: ticks\ndata: {\"budget_ns\":16666666,\"ticks\":[{\"tick\":1,\"cause\":\"gc\"}]}\n\n"
	trouble = "event: trouble\ndata: {\"topic\":\"clients\",\"text\":\"the room sleeps\"}\n\n"
	unknown = "event: weather\ndata: 7\n\n"
)

// fed returns the messages of a feed that has run for a time.
func fed(t *testing.T, s Server, d time.Duration, during func(*feed)) (all []tea.Msg) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), d)
	defer stop()
	f := &feed{server: s, send: func(m tea.Msg) {
		if m != nil {
			all = append(all, m)
		}
	}}
	ended := make(chan struct{})
	go func() { defer close(ended); f.run(ctx) }()
	if during != nil {
		synctest.Wait()
		during(f)
	}
	<-ended
	return all
}

// The feed decodes the events of a stream, connects again after its end, and says so.
func TestTheFeedConnectsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{streams: []string{comment + tickOne + unknown + trouble, tickOne}}
		got := ""
		for _, m := range fed(t, s, 10*time.Second, nil) {
			switch m := m.(type) {
			case link:
				got += m.text + "; "
			case ticksEvent:
				got += fmt.Sprintf("tick %d %s; ", m.Ticks[0].Tick, m.Ticks[0].Cause)
			case note:
				got += m.text + "; "
			}
		}
		const want = "live; tick 1 gc; clients: the room sleeps; the server has closed the stream: trying again; live; tick 1 gc; "
		if got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	})
}

// Pauses between attempts grow to two seconds.
func TestTheFeedPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{refuse: errors.New("too many streams")}
		all := fed(t, s, 10*time.Second, nil)
		if want := (link{text: "too many streams: trying again"}); len(all) < 6 || len(all) > 8 || all[0] != want {
			t.Errorf("%d attempts, %v", len(all), all)
		}
	})
}

// Another room is another stream, at once.
func TestTheFeedFollowsAnotherRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{streams: []string{tickOne}}
		all := fed(t, s, time.Second, func(f *feed) {
			s.mu.Lock()
			s.streams = []string{tickOne}
			s.mu.Unlock()
			f.follow("lobby")
		})
		if len(all) != 4 || len(s.queries) != 2 || s.queries[0].Has("room") || s.queries[1].Get("room") != "lobby" || len(s.queries[1]["topic"]) != 5 {
			t.Errorf("%v, %v", all, s.queries)
		}
	})
}

// An event that is not of this version ends the stream with a line.
func TestTheFeedNamesAnotherVersion(t *testing.T) {
	for topic, data := range map[string]string{"overview": "{}", "ticks": "[]", "clients": "7", "rooms": "[]", "metrics": "7", "trouble": "7"} {
		if _, err := decode(topic, []byte(data), 0); err == nil {
			t.Errorf("%s of %s is decoded", topic, data)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		all := fed(t, &scripted{streams: []string{"event: overview\ndata: {}\n\n"}}, time.Millisecond, nil)
		if len(all) != 2 || !strings.HasPrefix(all[1].(link).text, "the server is of another version: overview") {
			t.Errorf("%v", all)
		}
	})
}

// A kick and the slowest ticks are asked for in the shown room.
func TestTheFeedAsks(t *testing.T) {
	f := &feed{server: &scripted{}}
	if got := f.kick(t.Context(), "lobby", 3); got != (note{text: "POST client=3&room=lobby"}) {
		t.Error(got)
	}
	if got := f.worst(t.Context(), ""); got.(worstEvent).Ticks[0].Tick != 7 {
		t.Error(got)
	}
}

// Without a terminal each fifth overview is a line, and the end of a stream another one.
func TestPrintWritesLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const overview = "event: overview\ndata: {\"budget_ns\":16666667,\"rate_hz\":60,\"windows\":[{},{},{}],\"overload\":\"none\",\"time\":\"2026-01-02T03:04:05Z\"}\n\n"
		ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
		defer stop()
		var out bytes.Buffer
		s := &scripted{streams: []string{strings.Repeat(overview, 7)}, refuse: errors.New("the server does not answer")}
		if err := Print(ctx, s, "", &out); err != nil {
			t.Error(err)
		}
		line := "2026-01-02T03:04:05Z 60.0 Hz, tick p99 0.00 of 16.7 ms, lateness p99 0.00 ms, 0 clients, overload none, heap 0 B\n"
		want := line + line + "the server has closed the stream: trying again\nthe server does not answer: trying again\n"
		if got := out.String(); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	})
	if err := Print(t.Context(), &scripted{streams: []string{"", ""}}, "", &closed{}); err == nil {
		t.Error("a closed output is no error")
	}
}

// closed is an output that cannot be written.
type closed struct{}

func (*closed) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
