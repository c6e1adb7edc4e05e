package admin

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/netloop/netloop/internal/testing/nettest"
)

// hang opens connections that send say, or no bytes, and then stop.
func hang(t *testing.T, base, say string, n int) {
	t.Helper()
	for range n {
		c, err := net.Dial("tcp", base[len("http://"):])
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if _, err := io.WriteString(c, say); err != nil && say == "" {
			t.Fatal(err) // A connection that has sent may be closed already.
		}
	}
}

// A probe is answered at once, whatever other clients do: a quiet connection is closed for it. An
// orchestrator that gets no answer would kill the game.
func TestAProbeIsAlwaysAnswered(t *testing.T) {
	for name, say := range map[string]string{
		"silent":         "",
		"half a request": "GET /metrics HTTP/1.1\r\nHost: 127",
		"kept alive":     "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			cfg := (&state{}).config()
			base := start(t, cfg)
			const idle = 1000
			hang(t, base, say, idle)
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}
			var worst time.Duration
			for range 20 {
				for _, path := range []string{"/healthz", "/readyz"} {
					began := time.Now()
					resp, err := client.Get(base + path)
					if err != nil {
						t.Fatal(err)
					}
					_ = resp.Body.Close()
					worst = max(worst, time.Since(began))
					if resp.StatusCode != http.StatusOK {
						t.Errorf("%s: %d", path, resp.StatusCode)
					}
				}
			}
			if t.Logf("worst of 40 probes: %v", worst); worst > 2*time.Second {
				t.Errorf("a probe took %v", worst)
			}
			if n := cfg.Counts.Conns.Load(); n < idle-maxConns {
				t.Errorf("%d connections were closed for newer ones", n)
			}
		})
	}
}

// Pages under way keep their connections when others connect; their number leaves room for probes.
func TestPagesUnderWayAreNotClosed(t *testing.T) {
	cfg := (&state{}).config()
	begun, free := make(chan struct{}, maxConns), make(chan struct{})
	cfg.Routes[0].Page = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		begun <- struct{}{}
		<-free
		_, _ = io.WriteString(w, "made")
	})
	cfg.Ready = func() (string, error) { begun <- struct{}{}; <-free; return "", nil }
	base := start(t, cfg)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	type answer struct {
		status      int
		body, waits string
	}
	answers := make(chan answer, 2*maxPages)
	ask := func(page string) {
		resp, err := client.Get(base + page)
		if err != nil {
			answers <- answer{0, err.Error(), ""}
			return
		}
		b, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		answers <- answer{resp.StatusCode, string(b), resp.Header.Get("Retry-After")}
	}
	go ask("/readyz")
	for range maxPages {
		go ask("/metrics")
	}
	for range maxPages + 1 {
		<-begun
	}
	hang(t, base, "", 3*maxConns)
	go ask("/metrics")
	if a := <-answers; a.status != http.StatusServiceUnavailable || a.waits != "1" || cfg.Counts.Busy.Load() != 1 {
		t.Errorf("one page too many: %+v", a)
	}
	if status, _ := get(t, base+"/healthz"); status != http.StatusOK {
		t.Errorf("a probe meanwhile: %d", status)
	}
	close(free)
	for range maxPages + 1 {
		if a := <-answers; a != (answer{http.StatusOK, "made", ""}) && a != (answer{http.StatusOK, "ready\n", ""}) {
			t.Errorf("%+v", a)
		}
	}
	if ask("/metrics"); <-answers != (answer{http.StatusOK, "made", ""}) {
		t.Error("pages that have been made still count")
	}
}

// A server that stops gives answers under way two seconds, and then closes their connections.
func TestAnswersAreGivenAMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, over := make(chan struct{}), make(chan time.Time, 1)
		pipes := make(nettest.Pipes)
		s := &Server{listener: pipes, http: &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			close(begun)
			<-r.Context().Done()
		})}}
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			if err := s.Serve(ctx); err != nil {
				t.Error(err)
			}
			over <- time.Now()
		}()
		c := pipes.Dial()
		_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		<-begun
		stopped := time.Now()
		cancel()
		if took := (<-over).Sub(stopped); took != 2*time.Second {
			t.Errorf("it stops after %v", took)
		}
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("the connection is left: %v", err)
		}
	})
}

// A listener that fails ends its server with all connections.
func TestAListenerThatFailsEndsItsServer(t *testing.T) {
	s, err := Listen((&state{}).config())
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(t.Context()) }()
	c, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	if _, err := c.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	_ = s.listener.Close()
	if err := <-done; err == nil {
		t.Error("the failure is no error")
	}
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second)) // Far more than it takes.
	if _, err := io.Copy(io.Discard, c); err != nil {
		t.Errorf("a connection is left: %v", err)
	}
}
