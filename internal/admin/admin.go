package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/netloop/netloop/internal/connlimit"
)

// The limits of a connection. Requests here are one line and a few headers.
const (
	readTimeout  = 5 * time.Second  // a whole request
	writeTimeout = 15 * time.Second // a whole answer: a scrape takes milliseconds
	// longer than the usual scrape interval, so that connections are reused
	idleTimeout = 2 * time.Minute
	maxHeader   = 8 << 10
	// maxConns is ample for Prometheus, probes and people. Above it, a new connection replaces the
	// connection that has been idle for the longest time.
	maxConns = 64
	// askTimeout bounds the wait of /loop and /explain for the end of a tick.
	askTimeout = 3 * time.Second
)

// A tick is overdue after the longer of stallFloor and stallPeriods tick periods. With less than
// two seconds, a garbage collection or a busy machine would restart servers that recover by
// themselves. At slow tick rates, a few missed periods are not a stall.
const (
	stallFloor   = 2 * time.Second
	stallPeriods = 10
)

// Config configures the listener. Every function may be called from any goroutine.
type Config struct {
	// Listen is the TCP address; port 0 picks a free one.
	Listen string
	// Routes are the pages except probes and profiles, in the order of the index.
	Routes []Route
	// Topics are the live data of /api/stream, by name.
	Topics map[string]Topic
	// Progress returns, for /healthz, the time since the end of the newest tick, and the tick
	// period.
	Progress func() (since, period time.Duration)
	// Health returns, for /healthz, faults other than missing ticks: an error (status 503) if a
	// restart of the process would help, or a note if it might not help.
	Health func() (note string, err error)
	// Ready returns, for /readyz, an error with the reason if clients cannot join. Otherwise it
	// returns a note about restrictions, or an empty note.
	Ready func() (note string, err error)
	// Tokens give access to all pages other than /healthz and /readyz. The server closes them at
	// its end; so does Listen if it fails. Nil: the address must be a loopback address, and all
	// clients of this machine may read.
	Tokens *Tokens
	// Counts gets the refusals of the listener.
	Counts *Counts
	// Log gets the errors of net/http, and a line for each action.
	Log *slog.Logger
}

// Counts has the numbers of refused requests and connections, by reason. Any goroutine may read
// them at any time.
type Counts struct {
	Host  atomic.Uint64 // requests for another machine's name, or from another site
	Token atomic.Uint64 // requests without a sufficient token
	Busy  atomic.Uint64 // requests above maxPages
	Conns atomic.Uint64 // connections closed for newer ones
	Slow  atomic.Uint64 // streams closed because their client stopped reading
}

// Server is a bound admin listener.
type Server struct {
	listener net.Listener
	http     *http.Server
	tokens   *Tokens // nil: none
}

// ErrOpen is the error of Listen for an address that other machines can reach, without
// Config.Tokens.
var ErrOpen = errors.New("other machines reach it, and no token is required")

// Listen binds the address. The error names the address and a remedy.
func Listen(cfg Config) (*Server, error) {
	s, err := listen(cfg)
	if err != nil && cfg.Tokens != nil {
		cfg.Tokens.Close()
	}
	return s, err
}

func listen(cfg Config) (*Server, error) {
	ln, err := bind(cfg.Listen)
	if err != nil {
		return nil, err
	}
	if tcp, ok := ln.Addr().(*net.TCPAddr); cfg.Tokens == nil && !(ok && tcp.IP.IsLoopback()) {
		return nil, errors.Join(fmt.Errorf("%s: %w", cfg.Listen, ErrOpen), ln.Close())
	}
	name, _, _ := net.SplitHostPort(cfg.Listen) // The address is valid: it was bound.
	streams := newStreams(cfg)
	a := &access{tokens: cfg.Tokens, name: name, pages: make(chan struct{}, maxPages), counts: cfg.Counts}
	s := serverOf(ln, handler(cfg, a, streams), cfg.Counts, cfg.Log)
	s.tokens = cfg.Tokens
	s.http.RegisterOnShutdown(streams.close)
	return s, nil
}

// serverOf returns the server of a bound port.
func serverOf(ln net.Listener, pages http.Handler, counts *Counts, log *slog.Logger) *Server {
	return &Server{
		listener: connlimit.New(ln, connlimit.Config{Max: maxConns, Evicted: func() { counts.Conns.Add(1) }}),
		http: &http.Server{
			Handler:        pages,
			ConnContext:    connlimit.WithConn,
			ReadTimeout:    readTimeout,
			WriteTimeout:   writeTimeout,
			IdleTimeout:    idleTimeout,
			MaxHeaderBytes: maxHeader,
			ErrorLog:       slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		},
	}
}

func bind(address string) (net.Listener, error) {
	ln, err := net.Listen("tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%s is in use: stop the process on that port or choose another port (0 picks a free one)", address)
	case err != nil:
		return nil, fmt.Errorf("cannot listen on %q: %w", address, err)
	}
	return ln, nil
}

// Addr returns the bound address.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Serve answers until ctx ends and returns when every goroutine of the listener has ended.
// The error is nil unless the listener itself failed. It is called once; a server that is
// never served is closed with Close.
func (s *Server) Serve(ctx context.Context) error {
	defer s.closeTokens()
	if err := connlimit.Serve(ctx, s.http, func() error { return s.http.Serve(s.listener) }); err != nil {
		return fmt.Errorf("admin: serve: %w", err)
	}
	return nil
}

// Close releases the port of a server that was never served.
func (s *Server) Close() error {
	s.closeTokens()
	return s.listener.Close()
}

func (s *Server) closeTokens() {
	if s.tokens != nil {
		s.tokens.Close()
	}
}

// answerProbe answers with an error, or with a word and a note, if there is one.
func answerProbe(w http.ResponseWriter, word, note string, err error) {
	if note != "" {
		word += ", but " + note
	}
	if err != nil {
		text(w, http.StatusServiceUnavailable, err.Error()+"\n")
		return
	}
	text(w, http.StatusOK, word+"\n")
}

func healthz(w http.ResponseWriter, cfg Config) {
	note, err := cfg.Health()
	if err == nil {
		err = Stalled(cfg.Progress())
	}
	answerProbe(w, "ok", note, err)
}

// Stalled returns an error if the time since the end of the newest tick is longer than the limit
// for this tick period.
func Stalled(since, period time.Duration) error {
	if limit := max(stallFloor, stallPeriods*period); since > limit {
		return fmt.Errorf("no tick ended for %v, limit %v", since.Round(time.Millisecond), limit)
	}
	return nil
}

func asJSON(w http.ResponseWriter, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		text(w, http.StatusInternalServerError, err.Error()+"\n")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(b) // the client may have disconnected
}

// text answers with a line for people. The answer is not cached, because probes need the current
// state.
func text(w http.ResponseWriter, status int, body string) {
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(body)) // the client may have disconnected
}
