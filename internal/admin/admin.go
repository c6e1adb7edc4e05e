package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/netloop/netloop/internal/connlimit"
)

// The limits of a connection. Requests here are one line and a few headers.
const (
	readTimeout  = 5 * time.Second  // a whole request
	writeTimeout = 15 * time.Second // a whole answer: a scrape takes milliseconds
	// above the usual scrape interval, so that connections are reused
	idleTimeout = 2 * time.Minute
	maxHeader   = 8 << 10
	// maxConns is ample for Prometheus, probes and people; above it a new connection replaces the
	// longest idle one.
	maxConns = 64
	// askTimeout bounds the wait of /loop and /explain for the end of a tick.
	askTimeout = 3 * time.Second
)

// A tick is overdue after the longer of stallFloor and stallPeriods tick periods. Below two seconds
// a garbage collection or a busy machine would restart servers that recover by themselves; at slow
// rates a few periods are no stall.
const (
	stallFloor   = 2 * time.Second
	stallPeriods = 10
)

// Config configures the pages. Every function may be called from any goroutine.
type Config struct {
	// Listen is the TCP address; port 0 picks a free one.
	Listen string
	// Metrics serves /metrics.
	Metrics http.Handler
	// Ticks returns the content of /ticks, served as JSON, for a query.
	Ticks func(url.Values) (any, error)
	// Last and Slow return the contents of /ticks/last and /ticks/slow, served as JSON.
	Last, Slow func() any
	// Loop and Explain return the contents of /loop and /explain, served as JSON, for a query. They
	// may wait for the running tick. A *Refusal has its own status; any other error means that no
	// tick ended.
	Loop, Explain func(context.Context, url.Values) (any, error)
	// Rooms returns the content of /rooms, served as JSON, for a query.
	Rooms func(url.Values) (any, error)
	// CloseRoom handles a POST to /rooms/close with a token of role write, and returns a line for
	// people.
	CloseRoom func(url.Values) (string, error)
	// Progress returns, for /healthz, the time since the end of the newest tick, and the tick
	// period.
	Progress func() (since, period time.Duration)
	// Health returns, for /healthz, faults apart from missing ticks: an error (status 503) if a
	// restart of the process would help, a note if it might not help, and neither without a fault.
	Health func() (note string, err error)
	// Ready returns, for /readyz, an error with the reason if clients cannot join; otherwise a note
	// about restrictions, or an empty one.
	Ready func() (note string, err error)
	// Tokens give access to more than /healthz and /readyz. They are closed with the server, or
	// when Listen fails. Nil: the address must be a loopback address, and all clients of this
	// machine may read.
	Tokens *Tokens
	// Counts gets the refusals of the listener.
	Counts *Counts
	// Log gets the errors of net/http.
	Log *slog.Logger
}

// Counts are refused requests and connections, by reason. They may be read at any time.
type Counts struct {
	Host  atomic.Uint64 // requests for another machine's name, or from another site
	Token atomic.Uint64 // requests without a sufficient token
	Busy  atomic.Uint64 // requests above maxPages
	Conns atomic.Uint64 // connections closed for newer ones
}

// Server is a bound admin listener.
type Server struct {
	listener net.Listener
	http     *http.Server
	tokens   *Tokens // nil: none
}

// ErrOpen is the error of Listen for an address that other machines can reach, without
// Config.Tokens.
var ErrOpen = errors.New("other machines reach it, and nobody is asked for a token")

// Listen binds the address. The error names the address and a remedy.
func Listen(cfg Config) (*Server, error) {
	s, err := listen(cfg)
	if err != nil && cfg.Tokens != nil {
		cfg.Tokens.Close()
	}
	return s, err
}

func listen(cfg Config) (*Server, error) {
	ln, err := net.Listen("tcp", cfg.Listen)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%s is in use: stop the process on that port or choose another port (0 picks a free one)", cfg.Listen)
	case err != nil:
		return nil, fmt.Errorf("cannot listen on %q: %w", cfg.Listen, err)
	}
	if tcp, ok := ln.Addr().(*net.TCPAddr); cfg.Tokens == nil && !(ok && tcp.IP.IsLoopback()) {
		return nil, errors.Join(fmt.Errorf("%s: %w", cfg.Listen, ErrOpen), ln.Close())
	}
	name, _, _ := net.SplitHostPort(cfg.Listen) // The address is valid: it was bound.
	return &Server{
		tokens:   cfg.Tokens,
		listener: connlimit.New(ln, connlimit.Config{Max: maxConns, Evicted: func() { cfg.Counts.Conns.Add(1) }}),
		http: &http.Server{
			Handler:        handler(cfg, &access{tokens: cfg.Tokens, name: name, pages: make(chan struct{}, maxPages), counts: cfg.Counts}),
			ConnContext:    connlimit.WithConn,
			ReadTimeout:    readTimeout,
			WriteTimeout:   writeTimeout,
			IdleTimeout:    idleTimeout,
			MaxHeaderBytes: maxHeader,
			ErrorLog:       slog.NewLogLogger(cfg.Log.Handler(), slog.LevelWarn),
		},
	}, nil
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

const index = `netloop admin

/metrics     Prometheus metrics
/healthz     200 while ticks run
/readyz      200 while clients may come
/ticks       exact tick counts since the start, as JSON
/ticks/slow  the slowest ticks of the last hour: stages, systems, queues, GC, as JSON
/ticks/last  the last 600 ticks, likewise
/loop        the systems of every stage: order, period, cost, state, as JSON
/rooms       ?kind=table&sort=late&offset=0&limit=100: the rooms, as JSON: clients, seats, rate, ticks
/explain     ?client=1&object=17.3&field=Pos.X: why the client was sent the value, or was not, as JSON;
             without a client the clients that there are, without an object the objects (of class=);
             /ticks, /loop and /explain take room=, else they answer for the default room, or /ticks for all
/rooms/close POST ?room=table-7&drain=30s&text=...: closes a room, for tokens with the role write
/debug/pprof/  profiles, for tokens with the role write
`

func handler(cfg Config, a *access) http.Handler {
	mux := http.NewServeMux()
	probe := func(path string, page http.HandlerFunc) { mux.HandleFunc("GET "+path, a.probe(page)) }
	look := func(path string, page http.HandlerFunc) { mux.HandleFunc("GET "+path, a.require(reader, page)) }
	probe("/healthz", func(w http.ResponseWriter, _ *http.Request) { healthz(w, cfg) })
	probe("/readyz", func(w http.ResponseWriter, _ *http.Request) { readyz(w, cfg) })
	look("/{$}", func(w http.ResponseWriter, _ *http.Request) { text(w, http.StatusOK, index) })
	look("/metrics", cfg.Metrics.ServeHTTP)
	look("/ticks", queryHandler(cfg.Ticks))
	look("/loop", askHandler(cfg.Loop))
	look("/explain", askHandler(cfg.Explain))
	look("/rooms", queryHandler(cfg.Rooms))
	mux.HandleFunc("POST /rooms/close", a.require(writer, closeRoom(cfg)))
	var large sync.Mutex
	look("/ticks/last", func(w http.ResponseWriter, _ *http.Request) { serialized(w, &large, cfg.Last) })
	look("/ticks/slow", func(w http.ResponseWriter, _ *http.Request) { serialized(w, &large, cfg.Slow) })
	mux.HandleFunc("GET /debug/pprof/{$}", a.require(writer, profileIndex))
	mux.HandleFunc("GET /debug/pprof/{name}", a.require(writer, profile))
	return mux
}

func readyz(w http.ResponseWriter, cfg Config) {
	note, err := cfg.Ready()
	if err != nil {
		text(w, http.StatusServiceUnavailable, err.Error()+"\n")
		return
	}
	text(w, http.StatusOK, "ready"+withNote(note)+"\n")
}

// Refusal is an error with an HTTP status.
type Refusal struct {
	Status int
	Text   string
}

// Error returns the text.
func (r *Refusal) Error() string { return r.Text }

// askHandler returns the handler of a page that waits for a tick.
func askHandler(ask func(context.Context, url.Values) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), askTimeout)
		defer cancel()
		v, err := ask(ctx, r.URL.Query())
		answer(w, v, err)
	}
}

// queryHandler returns the handler of a page that does not wait.
func queryHandler(ask func(url.Values) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v, err := ask(r.URL.Query())
		answer(w, v, err)
	}
}

func answer(w http.ResponseWriter, v any, err error) {
	if err != nil {
		refuse(w, err)
		return
	}
	asJSON(w, v)
}

func refuse(w http.ResponseWriter, err error) {
	status := http.StatusServiceUnavailable
	var refusal *Refusal
	if errors.As(err, &refusal) {
		status = refusal.Status
	}
	text(w, status, err.Error()+"\n")
}

// closeRoom returns the handler of POST /rooms/close. Pages of other sites cannot use the token
// stored in a browser: browsers send the origin of a POST.
func closeRoom(cfg Config) http.HandlerFunc {
	own := http.NewCrossOriginProtection()
	return func(w http.ResponseWriter, r *http.Request) {
		if err := own.Check(r); err != nil {
			cfg.Counts.Host.Add(1)
			text(w, http.StatusForbidden, "a page of another site asks for this\n")
			return
		}
		done, err := cfg.CloseRoom(r.URL.Query())
		if err != nil {
			refuse(w, err)
			return
		}
		cfg.Log.Info("a room is closed by the admin listener", "room", r.URL.Query().Get("room"), "by", r.RemoteAddr)
		text(w, http.StatusOK, done+"\n")
	}
}

func healthz(w http.ResponseWriter, cfg Config) {
	note, err := cfg.Health()
	if err != nil {
		text(w, http.StatusServiceUnavailable, err.Error()+"\n")
		return
	}
	since, period := cfg.Progress()
	if limit := max(stallFloor, stallPeriods*period); since > limit {
		text(w, http.StatusServiceUnavailable, fmt.Sprintf("no tick ended for %v, limit %v\n", since.Round(time.Millisecond), limit))
		return
	}
	text(w, http.StatusOK, "ok"+withNote(note)+"\n")
}

// withNote returns the end of an answer of success: ", but " and the note, or nothing without a
// note.
func withNote(note string) string {
	if note == "" {
		return ""
	}
	return ", but " + note
}

// serialized answers with a large page, of some MiB at most, and with status 503 while another such
// page is being made.
func serialized(w http.ResponseWriter, large *sync.Mutex, page func() any) {
	if !large.TryLock() {
		w.Header().Set("Retry-After", "1")
		text(w, http.StatusServiceUnavailable, "somebody else reads the ticks: try again\n")
		return
	}
	defer large.Unlock()
	asJSON(w, page())
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

// text answers with a line for people. It is not cached, because probes need the current state.
func text(w http.ResponseWriter, status int, body string) {
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(body)) // the client may have disconnected
}
