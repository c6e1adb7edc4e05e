package agones_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/netloop/netloop/internal/agones"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// host is a game server, as far as its agent uses it.
type host struct {
	mu            sync.Mutex
	health, ready error
	load          agones.Load
	names         []string
	ended         chan error // size 2: more than one is a fault
	log           strings.Builder
}

func newHost() *host {
	return &host{ready: errors.New("the server is starting"), ended: make(chan error, 2)}
}

func (s *host) set(change func(*host)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

// Write implements io.Writer, for the log.
func (s *host) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Write(b)
}

func read[T any](s *host, field *T) T {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *field
}

// config describes the server.
func (s *host) config(t *testing.T, port int) agones.Config {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			s.mu.Lock()
			defer s.mu.Unlock()
			t.Log(s.log.String())
		}
	})
	return agones.Config{
		Port:   port,
		Health: func() error { return read(s, &s.health) },
		Ready:  func() error { return read(s, &s.ready) },
		Load:   func() agones.Load { return read(s, &s.load) },
		Names: func(limit int) []string {
			all := read(s, &s.names)
			return append([]string{}, all[:min(limit, len(all))]...)
		},
		Labels:      map[string]string{"netloop-schema": "abc"},
		Annotations: map[string]string{"netloop-version": "arena 2.1, netloop v1"},
		Shutdown:    func(err error) { s.ended <- err },
		Log:         slog.New(slog.NewTextHandler(s, nil)),
	}
}

// field returns a field of an answer, or "".
func field(t *testing.T, url string, path ...string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var v any
	if err := json.NewDecoder(resp.Body).Decode(&v); err != nil {
		t.Fatal(err)
	}
	for _, name := range path {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	text, _ := v.(string)
	return text
}

func post(t *testing.T, url string) {
	t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, url, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
}
