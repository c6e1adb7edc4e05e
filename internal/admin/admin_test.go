package admin

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
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
		Listen: "127.0.0.1:0",
		Routes: s.routes(),
		Topics: map[string]Topic{
			"count": {Rounds: 1, Next: func(_ context.Context, query url.Values, last *uint64) (any, error) {
				if *last++; query.Has("broken") {
					return nil, errors.New("no room")
				}
				return *last, nil
			}},
			"once": {Rounds: 2, Next: func(_ context.Context, _ url.Values, last *uint64) (any, error) {
				if *last++; *last > 1 {
					return nil, nil
				}
				return "news", nil
			}},
			"nan": {Rounds: 1, Next: func(context.Context, url.Values, *uint64) (any, error) { return math.NaN(), nil }},
		},
		Progress: func() (since, period time.Duration) {
			return time.Duration(s.since.Load()), time.Duration(s.period.Load())
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

// routes returns the pages of a test server.
func (s *state) routes() []Route {
	read := func(v any) func(context.Context, url.Values) (any, error) {
		return func(context.Context, url.Values) (any, error) { return v, nil }
	}
	return []Route{
		{Path: "/metrics", Page: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "netloop_ticks_total 1\n") })},
		{Path: "/ticks", Query: "?room=a", Text: "tick counts", Read: func(_ context.Context, query url.Values) (any, error) {
			if query.Has("room") {
				return nil, Refuse(http.StatusNotFound, "there is no room")
			}
			t := ticks.Snapshot{Ticks: 7, Budget: time.Second / 60}
			t.Tick.Record(time.Millisecond)
			return &t, nil
		}},
		{Path: "/ticks/last", Large: true, Read: read([]string{"the last"})},
		{Path: "/ticks/slow", Large: true, Read: func(context.Context, url.Values) (any, error) {
			if s.reading != nil {
				s.reading()
			}
			return []string{"the worst"}, nil
		}},
		{Path: "/loop", Read: func(context.Context, url.Values) (any, error) {
			if s.stuck {
				return nil, errors.New("no tick ended")
			}
			return []string{"the loop"}, nil
		}},
		{Path: "/explain", Read: func(_ context.Context, query url.Values) (any, error) {
			switch {
			case s.stuck:
				return nil, errors.New("no tick ended")
			case query.Get("client") == "":
				return nil, Refuse(http.StatusBadRequest, "give a client")
			}
			return query, nil
		}},
		{Path: "/rooms", Read: func(_ context.Context, query url.Values) (any, error) { return query, nil }},
		{Path: "/writes", Read: func(ctx context.Context, _ url.Values) (any, error) { return MayWrite(ctx), nil }},
		{Path: "/rooms/close", Text: "closes a room", Act: func(_ context.Context, query url.Values) (string, error) {
			if query.Get("room") == "" {
				return "", Refuse(http.StatusBadRequest, "room: give a name")
			}
			s.closed = append(s.closed, query.Get("room"))
			return "it closes", nil
		}},
	}
}

// roleOf returns the role of a token.
func roleOf(t *Tokens, token string) role {
	have, _ := t.find(token)
	return have
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
		"/": "/healthz", "/metrics": "netloop_ticks_total 1", "/healthz": "ok\n", "/readyz": "ready\n", "/ticks": `"ticks":7`,
		"/loop": `["the loop"]`, "/ticks/last": `["the last"]`, "/explain?client=3": `{"client":["3"]}`, "/ticks/slow": `["the worst"]`,
		"/rooms?sort=late": `{"sort":["late"]}`, "/api": `{"method":"POST","path":"/rooms/close","role":"write","text":"closes a room"}`,
	} {
		if status, body := get(t, base+path); status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: %d %q", path, status, body)
		}
	}
	_, list := get(t, base+"/")
	for line := range strings.Lines(list) {
		if before, _, writes := strings.Cut(line, "; for tokens with the role write"); writes != (strings.Contains(line, "closes a room") || strings.Contains(line, " profiles")) {
			t.Errorf("the list has %q, and for tokens of role write: %v", before, writes)
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

func TestHealthNamesAHangingRoom(t *testing.T) {
	var s state
	base := start(t, s.config())
	s.sick.Store(true)
	if status, body := get(t, base+"/healthz"); status != http.StatusServiceUnavailable || body != "tick 7 hangs\n" {
		t.Errorf("%d %q", status, body)
	}
}

func TestHealthNamesProblems(t *testing.T) {
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

// The limits of a listener are those of docs/LIMITS.md and of the comments.
func TestTheListenersLimits(t *testing.T) {
	s, err := Listen((&state{}).config())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	type limits struct {
		read, write, idle, ask, stall time.Duration
		header, conns, pages          int
	}
	got := limits{s.http.ReadTimeout, s.http.WriteTimeout, s.http.IdleTimeout, askTimeout, stallFloor, s.http.MaxHeaderBytes, maxConns, maxPages}
	if want := (limits{5 * time.Second, 15 * time.Second, 2 * time.Minute, 3 * time.Second, 2 * time.Second, 8 << 10, 64, 32}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// An answer has one text, one kind, and the time after which to ask again if it is worth it.
func TestAnswersAreWhole(t *testing.T) {
	var s state
	var log bytes.Buffer
	cfg := s.config()
	cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
	s.since.Store(int64(3 * time.Second))
	var busy sync.Mutex
	busy.Lock()
	closes := act(cfg, cfg.Routes[len(cfg.Routes)-1])
	const plain, binary = "text/plain; charset=utf-8", "application/octet-stream"
	for name, c := range map[string]struct {
		page              http.HandlerFunc
		query             string
		status            int
		kind, body, waits string
	}{
		"a tick that lasts":     {func(w http.ResponseWriter, _ *http.Request) { healthz(w, cfg) }, "", 503, plain, "no tick ended for 3s, limit 2s\n", ""},
		"a room without a name": {closes, "", 400, plain, "room: give a name\n", ""},
		"a room that closes":    {closes, "?room=den", 200, plain, "it closes\n", ""},
		"no JSON":               {func(w http.ResponseWriter, _ *http.Request) { asJSON(w, math.NaN()) }, "", 500, plain, "json: unsupported value: NaN\n", ""},
		"a large page":          {serialized(&busy, nil), "", 503, plain, "somebody else reads the ticks: try again\n", "1"},
		"a busy profile": {func(w http.ResponseWriter, r *http.Request) {
			timed(w, r, 0, func() error { return errors.New("it runs") }, nil)
		}, "", 503, plain, "it runs: try again later\n", ""},
		"a short recording":   {func(w http.ResponseWriter, r *http.Request) { timed(w, r, 0, func() error { return nil }, func() {}) }, "", 200, binary, "", ""},
		"a profile":           {profile, "", 200, binary, "\x1f\x8b", ""},
		"a profile as a text": {profile, "?debug=1", 200, plain, "goroutine profile:", ""},
	} {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/"+c.query, nil)
		r.SetPathValue("name", "goroutine")
		c.page(w, r)
		h := w.Header()
		if w.Code != c.status || h.Get("Content-Type") != c.kind || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Retry-After") != c.waits {
			t.Errorf("%s: %d %v", name, w.Code, h)
		}
		if h.Get("Cache-Control") != "no-store" && c.kind == plain && c.query != "?debug=1" {
			t.Errorf("%s may be stored", name)
		}
		if body := w.Body.String(); body != c.body && (c.status != 200 || !strings.HasPrefix(body, c.body)) {
			t.Errorf("%s: %q", name, body)
		}
	}
	w := httptest.NewRecorder()
	if asJSON(w, 7); w.Header().Get("Content-Type") != "application/json" || w.Body.String() != "7" {
		t.Errorf("%v %s", w.Header(), w.Body)
	}
	if n := strings.Count(log.String(), "an action of"); n != 1 || !strings.Contains(log.String(), `action=/rooms/close query="room=den"`) {
		t.Errorf("the log says %s", &log)
	}
}

// A server that is never served, and one that cannot listen, close their tokens: no goroutine is
// left.
func TestTokensAreClosedWithTheServer(t *testing.T) {
	for at, listens := range map[string]bool{"127.0.0.1:0": true, "nonsense": false} {
		tokens, err := OpenTokens(tokenFile(t, "read "+readToken), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		cfg := (&state{}).config()
		cfg.Listen, cfg.Tokens = at, tokens
		s, err := Listen(cfg)
		if (err == nil) != listens {
			t.Fatal(err)
		}
		if listens {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
