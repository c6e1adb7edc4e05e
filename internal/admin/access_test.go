package admin

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const (
	readToken  = "a-token-of-a-reader"
	writeToken = "a-token-of-a-writer"
)

func tokenFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// guarded serves with the tokens of a file, on every address of this machine.
func guarded(t *testing.T) (base string, counts *Counts) {
	t.Helper()
	tokens, err := OpenTokens(tokenFile(t, "# ours\nread "+readToken+"\n\nwrite\t"+writeToken+"\n"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	cfg := (&state{}).config()
	cfg.Listen, cfg.Tokens = "0.0.0.0:0", tokens
	base = start(t, cfg)
	return "http://127.0.0.1" + base[strings.LastIndex(base, ":"):], cfg.Counts
}

// asking sends a request with headers; Host may be one of them.
func asking(t *testing.T, url string, header ...string) (status int, body string) {
	t.Helper()
	return sending(t, http.MethodGet, url, header...)
}

func sending(t *testing.T, method, url string, header ...string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	if host := req.Header.Get("Host"); host != "" {
		req.Host = host
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if (resp.StatusCode == http.StatusUnauthorized) != (resp.Header.Get("WWW-Authenticate") != "") {
		t.Errorf("%s: %d, and a browser is asked %q", url, resp.StatusCode, resp.Header.Get("WWW-Authenticate"))
	}
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// Every page but those of probes needs a token, and profiles one of role write.
func TestPagesNeedATokenThatIsGoodForThem(t *testing.T) {
	base, counts := guarded(t)
	pages := []string{"/", "/metrics", "/ticks", "/ticks/last", "/ticks/slow", "/loop", "/rooms", "/explain?client=3"}
	for who, c := range map[string]struct {
		header        []string
		probe, look   int
		profile       int
		refused, says string
	}{
		"nobody":        {nil, 200, 401, 401, "/metrics", "--admin-token-file"},
		"wrong":         {[]string{"Authorization", "Bearer " + readToken + "x"}, 200, 401, 401, "/metrics", "--admin-token-file"},
		"empty":         {[]string{"Authorization", "Bearer "}, 200, 401, 401, "/metrics", "--admin-token-file"},
		"another way":   {[]string{"Authorization", "Digest " + writeToken}, 200, 401, 401, "/metrics", "--admin-token-file"},
		"reader":        {[]string{"Authorization", "Bearer " + readToken}, 200, 200, 403, "/debug/pprof/", "role write"},
		"writer":        {[]string{"Authorization", "bearer " + writeToken}, 200, 200, 200, "", ""},
		"by a password": {[]string{"Authorization", "Basic OmEtdG9rZW4tb2YtYS13cml0ZXI="}, 200, 200, 200, "", ""},
	} {
		for _, path := range []string{"/healthz", "/readyz"} {
			if status, _ := asking(t, base+path, c.header...); status != c.probe {
				t.Errorf("%s at %s: %d", who, path, status)
			}
		}
		for _, path := range pages {
			if status, _ := asking(t, base+path, c.header...); status != c.look {
				t.Errorf("%s at %s: %d", who, path, status)
			}
		}
		for _, path := range []string{"/debug/pprof/", "/debug/pprof/goroutine?debug=1"} {
			if status, _ := asking(t, base+path, c.header...); status != c.profile {
				t.Errorf("%s at %s: %d", who, path, status)
			}
		}
		if c.refused != "" {
			if _, body := asking(t, base+c.refused, c.header...); !strings.Contains(body, c.says) {
				t.Errorf("%s is told %q", who, body)
			}
		}
	}
	if n := counts.Token.Load(); n != 4*(8+2+1)+3 {
		t.Errorf("%d refusals were counted", n)
	}
}

// A room is closed only by a POST with a token of role write: not without tokens, and not by a page
// of another site in a browser with a stored token.
func TestClosingARoomNeedsRoleWrite(t *testing.T) {
	tokens, err := OpenTokens(tokenFile(t, "read "+readToken+"\nwrite "+writeToken+"\n"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	st := &state{}
	cfg := st.config()
	cfg.Tokens = tokens
	guarded := start(t, cfg)
	open := start(t, st.config())
	writer := []string{"Authorization", "Bearer " + writeToken}
	for name, c := range map[string]struct {
		base, method, query string
		header              []string
		status              int
		says                string
	}{
		"nobody":                {guarded, http.MethodPost, "?room=a", nil, 401, "--admin-token-file"},
		"a reader":              {guarded, http.MethodPost, "?room=a", []string{"Authorization", "Bearer " + readToken}, 403, "role write"},
		"a writer by GET":       {guarded, http.MethodGet, "?room=a", writer, 405, ""},
		"a writer of no room":   {guarded, http.MethodPost, "", writer, 400, "give a name"},
		"a page of elsewhere":   {guarded, http.MethodPost, "?room=a", append([]string{"Sec-Fetch-Site", "cross-site"}, writer...), 403, "another site"},
		"a form of elsewhere":   {guarded, http.MethodPost, "?room=a", append([]string{"Origin", "http://other.example"}, writer...), 403, "another site"},
		"where nobody has them": {open, http.MethodPost, "?room=a", nil, 403, "--admin-token-file"},
	} {
		if status, body := sending(t, c.method, c.base+"/rooms/close"+c.query, c.header...); status != c.status || !strings.Contains(body, c.says) {
			t.Errorf("%s: %d %q", name, status, body)
		}
	}
	if n := cfg.Counts.Host.Load(); n != 2 {
		t.Errorf("%d pages of elsewhere were counted", n)
	}
	if len(st.closed) > 0 {
		t.Errorf("closed %v", st.closed)
	}
	if status, body := sending(t, http.MethodPost, guarded+"/rooms/close?room=a", writer...); status != 200 || body != "it closes\n" || len(st.closed) != 1 {
		t.Errorf("a writer: %d %q, closed %v", status, body, st.closed)
	}
}

// A foreign web page cannot read the listener through a browser on this machine and a host name
// that resolves to it. A request with a token is accepted under any name.
func TestForeignNamesAreNotAnswered(t *testing.T) {
	machine, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	base := start(t, (&state{}).config())
	for host, want := range map[string]int{
		"": 200, "127.0.0.1:1": 200, "127.0.0.1": 200, "[::1]:8080": 200, "[::1]": 200, "10.1.2.3:8080": 200, "localhost:8080": 200,
		"LOCALHOST.": 200, machine + ":1": 200, "evil.example:8080": 421, "evil.example": 421, "localhost.evil.example": 421, "127.0.0.1.evil.example": 421,
	} {
		for _, path := range []string{"/metrics", "/healthz"} {
			if status, body := asking(t, base+path, "Host", host); status != want || want == 421 && !strings.Contains(body, "by localhost") {
				t.Errorf("%s by the name %q: %d %q", path, host, status, body)
			}
		}
	}
	base, counts := guarded(t)
	for who, want := range map[string]int{"Bearer " + readToken: 200, "Bearer of nothing at all": 421} {
		if status, _ := asking(t, base+"/metrics", "Host", "game.example", "Authorization", who); status != want {
			t.Errorf("by another name with %q: %d", who, status)
		}
	}
	if n := counts.Host.Load(); n != 1 {
		t.Errorf("%d refusals were counted", n)
	}
}

// The host in --admin is accepted as the listener's name.
func TestTheConfiguredNameIsAnswered(t *testing.T) {
	a := access{name: "Game.Example", counts: new(Counts)}
	for host, want := range map[string]bool{"game.example:8080": true, "other.example": false, "": false} {
		if got := a.allowedHost(discarded{}, &http.Request{Host: host}, anonymous); got != want {
			t.Errorf("%q: %v", host, got)
		}
	}
}

type discarded struct{}

func (discarded) Header() http.Header         { return http.Header{} }
func (discarded) Write(b []byte) (int, error) { return len(b), nil }
func (discarded) WriteHeader(int)             {}

// Without tokens the listener accepts only a loopback address, and serves no profiles.
func TestOtherMachinesNeedTokens(t *testing.T) {
	for _, at := range []string{"0.0.0.0:0", "[::]:0", ":0"} {
		cfg := (&state{}).config()
		cfg.Listen = at
		if _, err := Listen(cfg); !errors.Is(err, ErrOpen) || !strings.Contains(err.Error(), at) {
			t.Errorf("%s: %v", at, err)
		}
	}
	base := start(t, (&state{}).config())
	if status, _ := asking(t, base+"/metrics", "Authorization", "Bearer "+readToken); status != http.StatusOK {
		t.Errorf("with a token that nobody asks for: %d", status)
	}
	if status, body := get(t, base+"/debug/pprof/heap"); status != http.StatusForbidden || !strings.Contains(body, "--admin-token-file") {
		t.Errorf("a profile without tokens: %d %q", status, body)
	}
}

// An error in a file of tokens names the line, and never the token.
func TestBadTokenFilesAreSaid(t *testing.T) {
	for text, want := range map[string]string{
		"":                               "no token",
		"# read " + readToken:            "no token",
		"\nread short\n":                 "line 2: a token has at least 16 characters",
		"look " + readToken:              "line 1: write read or write",
		readToken:                        "line 1: write read or write",
		"read one two-and-more-o":        "line 1: a token has at least 16 characters",
		"read " + readToken + " of ours": "line 1: write read or write",
		strings.Repeat("read "+readToken+"\n", maxTokens+1): "more than 64 tokens",
		strings.Repeat("#\n", maxFile):                      "more than 65536 bytes",
	} {
		_, err := OpenTokens(tokenFile(t, text), slog.New(slog.DiscardHandler))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), readToken) {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
	}
	longest := strings.Repeat("read "+readToken[:16]+"\n", 64)
	longest += strings.Repeat("#\n", (64<<10-len(longest))/2)
	for text, want := range map[string]bool{longest: true, longest + "#": false} {
		if _, err := parseTokens([]byte(text)); (err == nil) != want {
			t.Errorf("a file of %d bytes: %v", len(text), err)
		}
	}
	if _, err := OpenTokens("none", slog.New(slog.DiscardHandler)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
	if _, err := ReadToken("none", false); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
	if got, err := ReadToken(tokenFile(t, "# read nothing\nwrite "+writeToken+"\nread "+readToken), false); err != nil || got != writeToken {
		t.Errorf("the first token is %q, %v", got, err)
	}
	if got, err := ReadToken(tokenFile(t, "read "+readToken+"\nwrite "+writeToken), true); err != nil || got != writeToken {
		t.Errorf("the first token that may write is %q, %v", got, err)
	}
	if got, err := ReadToken(tokenFile(t, "read "+readToken), false); err != nil || got != readToken {
		t.Errorf("the only token is %q, %v", got, err)
	}
	if got, err := ReadToken(tokenFile(t, "read short"), false); err == nil {
		t.Errorf("of a bad file the first token is %q", got)
	}
	if got, err := ReadToken(tokenFile(t, "read "+readToken), true); err == nil || !strings.Contains(err.Error(), "role write") {
		t.Errorf("of those that may read one may write: %q, %v", got, err)
	}
}

// Tokens change while the server runs; an invalid file has no effect.
func TestTokensFollowTheirFile(t *testing.T) {
	path := tokenFile(t, "read "+readToken)
	var log bytes.Buffer
	tokens, err := OpenTokens(path, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer tokens.Close()
	if err := os.WriteFile(path, []byte("write "+writeToken), 0o600); err != nil {
		t.Fatal(err)
	}
	limit := time.After(20 * time.Second)
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for roleOf(tokens, writeToken) != writer {
		select {
		case <-again.C:
		case <-limit:
			t.Fatal("the old tokens stay")
		}
	}
	if roleOf(tokens, readToken) != anonymous {
		t.Error("a token that was taken away is good")
	}
	tokens.Close()
	if !strings.Contains(log.String(), "the admin tokens were replaced") {
		t.Errorf("the log says %s", &log)
	}
	if err := os.WriteFile(path, []byte("read"), 0o600); err != nil {
		t.Fatal(err)
	}
	if tokens.reload(); roleOf(tokens, writeToken) != writer || !strings.Contains(log.String(), "keeping the previous tokens") || strings.Count(log.String(), "were replaced") != 1 {
		t.Errorf("a file that cannot be used changes something: %s", &log)
	}
	unread := &Tokens{path: tokenFile(t, "read "+readToken)}
	if unread.reload(); unread.known.Load() != nil {
		t.Error("without first tokens there are second ones")
	}
}

// Profiles have the format of go tool pprof, and a bounded duration.
func TestProfilesAreServed(t *testing.T) {
	base, _ := guarded(t)
	ask := func(path string) (int, string) {
		return asking(t, base+"/debug/pprof/"+path, "Authorization", "Bearer "+writeToken)
	}
	const gzip = "\x1f\x8b"
	for path, want := range map[string]string{
		"": "goroutine", "heap?gc=1": gzip, "goroutine": gzip, "goroutine?debug=1": "goroutine profile:", "profile?seconds=0.05": gzip, "trace?seconds=0.05": "go 1.",
	} {
		if status, body := ask(path); status != http.StatusOK || !strings.HasPrefix(body, want) && !strings.Contains(body[:min(len(body), 600)], "goroutine") {
			t.Errorf("%s: %d %.40q", path, status, body)
		}
	}
	for path, want := range map[string]int{"none": 404, "profile?seconds=61": 400, "profile?seconds=-1": 400, "profile?seconds=NaN": 400, "trace?seconds=x": 400} {
		if status, body := ask(path); status != want {
			t.Errorf("%s: %d %.60q", path, status, body)
		}
	}
	if _, body := ask(""); !strings.HasPrefix(body, "profiles, for go tool pprof") {
		t.Errorf("the list of profiles is %q", body)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _ = ask("heap?gc=1")
	if runtime.ReadMemStats(&after); after.NumGC == before.NumGC {
		t.Error("nothing is collected before the profile")
	}
}

// withDeadline records the deadline of an answer.
type withDeadline struct {
	*httptest.ResponseRecorder
	at time.Time
}

func (w *withDeadline) SetWriteDeadline(at time.Time) error { w.at = at; return nil }

// A recording takes half a minute, or the seconds that are asked for.
func TestRecordingsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for query, want := range map[string]time.Duration{
			"": 30 * time.Second, "?seconds=60": time.Minute, "?seconds=60.000001": 0, "?seconds=0.000000001": 1, "?seconds=0.0000000001": 0,
		} {
			began, stopped := time.Now(), false
			w := &withDeadline{ResponseRecorder: httptest.NewRecorder()}
			timed(w, httptest.NewRequest(http.MethodGet, "/"+query, nil), defaultProfile, func() error { return nil }, func() { stopped = true })
			if took := time.Since(began); took != want || stopped != (want > 0) || (w.Code == http.StatusOK) != (want > 0) {
				t.Errorf("%q takes %v, stopped %v, with status %d", query, took, stopped, w.Code)
			}
			if want > 0 && w.at.Sub(began) != want+writeTimeout {
				t.Errorf("%q must be written within %v", query, w.at.Sub(began))
			}
		}
	})
}
