package web

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/netloop/netloop/internal/testing/nettest"
	"github.com/netloop/netloop/internal/web/static"
)

// The limits of a listener are those of docs/LIMITS.md and of the comments.
func TestTheListenersLimits(t *testing.T) {
	s, err := Listen(config())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	type limits struct {
		read, write, idle          time.Duration
		header, perSite, send, all int
	}
	got := limits{s.http.ReadTimeout, s.http.WriteTimeout, s.http.IdleTimeout, s.http.MaxHeaderBytes, maxPerSite, sendBuffer, static.MaxFileBytes}
	if want := (limits{5 * time.Second, time.Minute, 30 * time.Second, 8 << 10, 128, 128 << 10, 256 << 20}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if n, burst := readRate, readBurst; n != 4<<20 || burst != 8<<20 {
		t.Errorf("a connection is read with %d bytes a second, %d at once", n, burst)
	}
}

// A connection is not closed for others while its request is being answered.
func TestAnAnswerUnderWayIsNotCutOff(t *testing.T) {
	cfg := config()
	begun, may := make(chan struct{}), make(chan struct{})
	cfg.Socket = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(begun)
		<-may
		_, _ = io.WriteString(w, "made")
	})
	at := start(t, cfg)
	answer := make(chan string)
	go func() { answer <- raw(t, at, "GET /netloop HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n") }()
	<-begun
	for n := 0; cfg.Counts.Conns.Load() == 0 && n < 1000; n++ {
		c, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	close(may)
	if got := <-answer; !strings.HasSuffix(got, "made") || cfg.Counts.Conns.Load() == 0 {
		t.Errorf("%q, after %d connections were closed for newer ones", got, cfg.Counts.Conns.Load())
	}
}

// A listener that fails ends its server with all connections.
func TestAListenerThatFailsEndsItsServer(t *testing.T) {
	s, err := Listen(config())
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
