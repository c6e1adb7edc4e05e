package admin

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// events reads n events of a stream.
func events(t *testing.T, from io.Reader, n int) (all []string) {
	t.Helper()
	in := bufio.NewScanner(from)
	in.Buffer(nil, 1<<20)
	var name string
	for len(all) < n && in.Scan() {
		if line, ok := strings.CutPrefix(in.Text(), "event: "); ok {
			name = line
		} else if data, ok := strings.CutPrefix(in.Text(), "data: "); ok {
			all = append(all, name+" "+data)
		}
	}
	if len(all) < n {
		t.Fatalf("the stream ended after %q: %v", all, in.Err())
	}
	return all
}

// opened is a response that the end of the test closes.
type opened struct{ *http.Response }

func openStream(t *testing.T, base, query string) opened {
	t.Helper()
	resp, err := http.Get(base + streamPath + query)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	return opened{resp}
}

// A stream has an event of each topic with news, in each of its rounds; an error is sent once.
func TestAStreamCarriesItsTopics(t *testing.T) {
	base := start(t, (&state{}).config())
	resp := openStream(t, base, "?topic=count&topic=once&topic=count")
	if kind := resp.Header.Get("Content-Type"); kind != "text/event-stream" || resp.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("headers %v", resp.Header)
	}
	got := strings.Join(events(t, resp.Body, 4), ", ")
	if want := `count 1, once "news", count 2, count 3`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	resp = openStream(t, base, "?topic=count&topic=nan&broken=1")
	got = strings.Join(events(t, resp.Body, 3), ", ")
	if want := `trouble {"topic":"count","text":"no room"}, trouble {"topic":"nan","text":"json: unsupported value: NaN"}, trouble {"topic":"nan"`; !strings.HasPrefix(got, want) {
		t.Errorf("%s, want %s", got, want)
	}
}

// The topics of a stream are known and few.
func TestAStreamNamesItsTopics(t *testing.T) {
	cfg := (&state{}).config()
	for i := range maxTopics + 1 {
		cfg.Topics[string(rune('a'+i))] = cfg.Topics["count"]
	}
	base := start(t, cfg)
	for query, want := range map[string]int{"": 400, "?topic=none": 404, "?topic=a&topic=b&topic=c&topic=d&topic=e&topic=f&topic=g&topic=h": 200, "?topic=a&topic=b&topic=c&topic=d&topic=e&topic=f&topic=g&topic=h&topic=i": 400} {
		if resp := openStream(t, base, query); resp.StatusCode != want {
			t.Errorf("%s: %d, want %d", query, resp.StatusCode, want)
		}
	}
}

// A stream needs the role read, and its topics can see the role.
func TestAStreamNeedsAToken(t *testing.T) {
	base, _ := guarded(t)
	if status, _ := asking(t, base+streamPath+"?topic=count"); status != http.StatusUnauthorized {
		t.Errorf("without a token: %d", status)
	}
	for token, want := range map[string]string{readToken: "false", writeToken: "true"} {
		if status, body := asking(t, base+"/writes", "Authorization", "Bearer "+token); status != http.StatusOK || body != want {
			t.Errorf("%s: %d %q", token, status, body)
		}
	}
}

// Open streams are bounded, and a closed one makes room for another.
func TestStreamsAreBounded(t *testing.T) {
	cfg := (&state{}).config()
	base := start(t, cfg)
	var first opened
	for range maxStreams {
		resp := openStream(t, base, "?topic=count")
		if first.Response == nil {
			first = resp
		}
		_ = events(t, resp.Body, 1)
	}
	if resp := openStream(t, base, "?topic=count"); resp.StatusCode != http.StatusServiceUnavailable || cfg.Counts.Busy.Load() != 1 {
		t.Errorf("one too many: %d, counted %d", resp.StatusCode, cfg.Counts.Busy.Load())
	}
	if status, _ := get(t, base+"/ticks"); status != http.StatusOK {
		t.Errorf("a page beside the streams: %d", status)
	}
	_ = first.Body.Close()
	for limit := time.After(20 * time.Second); ; {
		resp := openStream(t, base, "?topic=count")
		if resp.StatusCode == http.StatusOK {
			return
		}
		select {
		case <-limit:
			t.Fatal("the place of a closed stream stays taken")
		default:
		}
	}
}

// A client that stops reading is closed and counted: the bytes kept for it are bounded.
func TestAStreamWithoutAReaderIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := (&state{}).config()
		s := newStreams(cfg)
		client, server := net.Pipe() // It keeps no byte.
		ended := make(chan struct{})
		srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer close(ended)
			all, err := s.subscribe([]string{"count"})
			if err != nil {
				t.Error(err)
			}
			s.serve(r.Context(), w, nil, all)
		}), ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
		began := time.Now()
		go func() { _ = srv.Serve(&oneConn{conn: server, closed: make(chan struct{})}) }()
		if _, err := io.WriteString(client, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		<-ended
		if n, took := cfg.Counts.Slow.Load(), time.Since(began); n != 1 || took != streamWait {
			t.Errorf("counted %d, after %v", n, took)
		}
		_, _ = srv.Close(), client.Close()
	})
}

// A stream without news has a line every 5 s, by which a client that has vanished is detected. A
// stream with news has none.
func TestAQuietStreamShowsThatItIsThere(t *testing.T) {
	for topic, want := range map[string]int{"silent": 3, "count": 0} {
		synctest.Test(t, func(t *testing.T) {
			cfg := (&state{}).config()
			cfg.Topics["silent"] = Topic{Rounds: 1, Next: func(context.Context, url.Values, *uint64) (any, error) { return nil, nil }}
			s := newStreams(cfg)
			all, err := s.subscribe([]string{topic})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*streamWait+streamPeriod/2)
			defer cancel()
			w := httptest.NewRecorder()
			s.serve(ctx, w, nil, all)
			if n := strings.Count(w.Body.String(), ": still here\n\n"); n != want {
				t.Errorf("%s: %d lines in 10 s, want %d", topic, n, want)
			}
		})
	}
}

// oneConn is a listener with one connection.
type oneConn struct {
	conn   net.Conn
	closed chan struct{}
	given  bool
}

func (l *oneConn) Accept() (net.Conn, error) {
	if !l.given {
		l.given = true
		return l.conn, nil
	}
	<-l.closed
	return nil, net.ErrClosed
}
func (l *oneConn) Close() error   { close(l.closed); return nil }
func (l *oneConn) Addr() net.Addr { return &net.TCPAddr{} }

// An action is logged with its query and the name of its token, which is that of the file or its
// line.
func TestActionsAreLogged(t *testing.T) {
	var log bytes.Buffer
	tokens, err := OpenTokens(tokenFile(t, "write "+readToken+"\nwrite "+writeToken+" anna\n"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	cfg := (&state{}).config()
	cfg.Tokens, cfg.Log = tokens, slog.New(slog.NewTextHandler(&log, nil))
	base := start(t, cfg)
	for token, name := range map[string]string{readToken: `token="line 1"`, writeToken: "token=anna"} {
		log.Reset()
		if status, body := sending(t, http.MethodPost, base+"/rooms/close?room=a+b", "Authorization", "Bearer "+token); status != 200 {
			t.Fatalf("%d %s", status, body)
		}
		if got := log.String(); !strings.Contains(got, name) || !strings.Contains(got, `query="room=a+b"`) || strings.Contains(got, token) {
			t.Errorf("%s", got)
		}
	}
}
