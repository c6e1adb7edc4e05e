package admin

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/netloop/netloop/internal/metrics/ticks"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// state is the data of a test server's pages.
type state struct {
	since, period atomic.Int64
	notReady      atomic.Bool
	sick          atomic.Bool
	note          string
	stuck         bool // no tick ends
	closed        []string
	reading       func() // called while /ticks/slow is made
}

func (s *state) config() Config {
	return Config{
		Listen:  "127.0.0.1:0",
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "netloop_ticks_total 1\n") }),
		Ticks: func(query url.Values) (any, error) {
			if query.Has("room") {
				return nil, &Refusal{http.StatusNotFound, "there is no room"}
			}
			t := ticks.Snapshot{Ticks: 7, Budget: time.Second / 60}
			t.Tick.Record(time.Millisecond)
			return &t, nil
		},
		Progress: func() (since, period time.Duration) {
			return time.Duration(s.since.Load()), time.Duration(s.period.Load())
		},
		Last: func() any { return []string{"the last"} },
		Loop: func(context.Context, url.Values) (any, error) {
			if s.stuck {
				return nil, errors.New("no tick ended")
			}
			return []string{"the loop"}, nil
		},
		Explain: func(_ context.Context, query url.Values) (any, error) {
			switch {
			case s.stuck:
				return nil, errors.New("no tick ended")
			case query.Get("client") == "":
				return nil, &Refusal{http.StatusBadRequest, "give a client"}
			}
			return query, nil
		},
		Rooms: func(query url.Values) (any, error) { return query, nil },
		CloseRoom: func(query url.Values) (string, error) {
			if query.Get("room") == "" {
				return "", &Refusal{http.StatusBadRequest, "room: give a name"}
			}
			s.closed = append(s.closed, query.Get("room"))
			return "it closes", nil
		},
		Slow: func() any {
			if s.reading != nil {
				s.reading()
			}
			return []string{"the worst"}
		},
		Health: func() (string, error) {
			if s.sick.Load() {
				return "", errors.New("tick 7 hangs")
			}
			return s.note, nil
		},
		Ready: func() (string, error) {
			if s.notReady.Load() {
				return "", errors.New("the room is draining")
			}
			return s.note, nil
		},
		Counts: new(Counts),
		Log:    slog.New(slog.DiscardHandler),
	}
}

// start serves until the test ends and checks that no goroutine is left.
func start(t *testing.T, cfg Config) (base string) {
	t.Helper()
	s, err := Listen(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return "http://" + s.Addr().String()
}

func get(t *testing.T, url string) (status int, body string) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

func TestPages(t *testing.T) {
	base := start(t, (&state{}).config())
	for path, want := range map[string]string{
		"/": "/healthz", "/metrics": "netloop_ticks_total 1", "/healthz": "ok", "/readyz": "ready", "/ticks": `"ticks":7`,
		"/loop": `["the loop"]`, "/ticks/last": `["the last"]`, "/explain?client=3": `{"client":["3"]}`, "/ticks/slow": `["the worst"]`,
		"/rooms?sort=late": `{"sort":["late"]}`,
	} {
		if status, body := get(t, base+path); status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: %d %q", path, status, body)
		}
	}
	if status, _ := get(t, base+"/nothing"); status != http.StatusNotFound {
		t.Errorf("unknown page: %d", status)
	}
	if status, body := get(t, base+"/ticks?room=x"); status != http.StatusNotFound || body != "there is no room\n" {
		t.Errorf("the ticks of no room: %d %q", status, body)
	}
	if status, body := get(t, base+"/explain"); status != http.StatusBadRequest || body != "give a client\n" {
		t.Errorf("a refusal: %d %q", status, body)
	}
	resp, err := http.Post(base+"/ticks", "text/plain", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", resp.StatusCode)
	}
	_, body := get(t, base+"/ticks")
	if s, err := ticks.Decode([]byte(body)); err != nil || s.Ticks != 7 || s.Tick.Count() != 1 {
		t.Errorf("decoded %+v, %v", s, err)
	}
}

func TestTheLoopIsServedByTheNextTickOrNotAtAll(t *testing.T) {
	base := start(t, (&state{stuck: true}).config())
	for _, path := range []string{"/loop", "/explain?client=3"} {
		if status, body := get(t, base+path); status != http.StatusServiceUnavailable || !strings.Contains(body, "no tick ended") {
			t.Errorf("%s: %d %q", path, status, body)
		}
	}
}

func TestHealthFollowsTicks(t *testing.T) {
	var s state
	base := start(t, s.config())
	for _, c := range []struct {
		since, period time.Duration
		want          int
	}{
		{0, time.Second / 60, 200},
		{2 * time.Second, time.Second / 60, 200},
		{2*time.Second + 1, time.Second / 60, 503},
		{9 * time.Second, time.Second, 200},
		{11 * time.Second, time.Second, 503},
		{3 * time.Second, 0, 503}, // no tick yet
	} {
		s.since.Store(int64(c.since))
		s.period.Store(int64(c.period))
		if status, body := get(t, base+"/healthz"); status != c.want {
			t.Errorf("since %v, period %v: %d %q", c.since, c.period, status, body)
		}
	}
}

func TestHealthSaysWhatHangs(t *testing.T) {
	var s state
	base := start(t, s.config())
	s.sick.Store(true)
	if status, body := get(t, base+"/healthz"); status != http.StatusServiceUnavailable || body != "tick 7 hangs\n" {
		t.Errorf("%d %q", status, body)
	}
}

func TestHealthNotesWhatIsWrong(t *testing.T) {
	s := state{note: "1 system is quarantined"}
	if status, body := get(t, start(t, s.config())+"/healthz"); status != http.StatusOK || body != "ok, but 1 system is quarantined\n" {
		t.Errorf("%d %q", status, body)
	}
}

// Large pages are made for one reader at a time; others get a 503.
func TestLargePagesAreMadeOneByOne(t *testing.T) {
	var s state
	var base string
	s.reading = func() {
		for _, path := range []string{"/ticks/slow", "/ticks/last"} {
			if status, body := get(t, base+path); status != http.StatusServiceUnavailable || !strings.Contains(body, "try again") {
				t.Errorf("%s meanwhile: %d %q", path, status, body)
			}
		}
		if status, _ := get(t, base+"/ticks"); status != http.StatusOK {
			t.Errorf("/ticks meanwhile: %d", status)
		}
	}
	base = start(t, s.config())
	if status, body := get(t, base+"/ticks/slow"); status != http.StatusOK || body != `["the worst"]` {
		t.Errorf("%d %q", status, body)
	}
	if status, _ := get(t, base+"/ticks/last"); status != http.StatusOK {
		t.Errorf("afterwards: %d", status)
	}
}

func TestReadySaysWhyNot(t *testing.T) {
	var s state
	base := start(t, s.config())
	s.notReady.Store(true)
	if status, body := get(t, base+"/readyz"); status != http.StatusServiceUnavailable || body != "the room is draining\n" {
		t.Errorf("%d %q", status, body)
	}
}

func TestPortInUseNamesTheAddress(t *testing.T) {
	s, err := Listen((&state{}).config())
	if err != nil {
		t.Fatal(err)
	}
	cfg := (&state{}).config()
	cfg.Listen = s.Addr().String()
	if _, err := Listen(cfg); err == nil || !strings.Contains(err.Error(), cfg.Listen) || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v, want one line that names %s", err, cfg.Listen)
	}
	cfg.Listen = "nonsense"
	if _, err := Listen(cfg); err == nil || !strings.Contains(err.Error(), "nonsense") {
		t.Errorf("got %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestHeadersAreBounded(t *testing.T) {
	base := start(t, (&state{}).config())
	req, err := http.NewRequest(http.MethodGet, base+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Long", strings.Repeat("x", 64<<10))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("status %d", resp.StatusCode)
	}
}
