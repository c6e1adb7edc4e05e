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

// The limits on what a connection may cost. Requests here are one line and a few headers.
const (
	readTimeout  = 5 * time.Second  // a whole request
	writeTimeout = 15 * time.Second // a whole answer: a scrape takes milliseconds
	// above the usual scrape interval, so that connections are reused
	idleTimeout = 2 * time.Minute
	maxHeader   = 8 << 10
	// maxConns is ample for Prometheus, probes and people; who comes then takes the place of
	// whoever has been quiet for longest.
	maxConns = 64
	// shutdownGrace is what answers under way get once the server stops.
	shutdownGrace = 2 * time.Second
	// askTimeout is how long /loop and /explain wait for a tick to end.
	askTimeout = 3 * time.Second
)

// A tick is missing after the longer of stallFloor and stallPeriods tick periods. Below two
// seconds a garbage collection or a busy machine would restart servers that recover by
// themselves; at slow rates a few periods are no stall.
const (
	stallFloor   = 2 * time.Second
	stallPeriods = 10
)

// Config says what the pages answer. Every function may be called from any goroutine.
type Config struct {
	// Listen is the TCP address; port 0 picks a free one.
	Listen string
	// Metrics serves /metrics.
	Metrics http.Handler
	// Ticks is served, as JSON, at /ticks, of the query that it is given.
	Ticks func(url.Values) (any, error)
	// Last and Slow return what is served, as JSON, at /ticks/last and /ticks/slow.
	Last, Slow func() any
	// Loop and Explain are served, as JSON, at /loop and /explain, of the query that they are
	// given. They may wait for the tick that runs. An error that is a *Refusal has its own status;
	// any other says that no tick ended.
	Loop, Explain func(context.Context, url.Values) (any, error)
	// Rooms is served, as JSON, at /rooms, of the query that it is given.
	Rooms func(url.Values) (any, error)
	// CloseRoom is what a POST to /rooms/close does, for who may write, and CloseRoom's answer is
	// a line for people.
	CloseRoom func(url.Values) (string, error)
	// Progress returns how long ago the newest tick ended and the tick period: /healthz.
	Progress func() (since, period time.Duration)
	// Health returns what is wrong although ticks may run: an error if a new process
	// would help, a note if it would not or not for sure, neither if nothing is: /healthz.
	Health func() (note string, err error)
	// Ready returns why clients may not come, nil if they may, and then a note if somebody should
	// look at how: /readyz.
	Ready func() (note string, err error)
	// Tokens are what must be shown to see more than /healthz and /readyz. They are closed
	// with the server, or when Listen fails. Nil: the address is of this machine alone, and
	// whoever is on it may look.
	Tokens *Tokens
	// Counts takes what the listener does not do.
	Counts *Counts
	// Log takes what net/http complains about.
	Log *slog.Logger
}

// Counts are what the listener did not do, by reason. They may be read at any time.
type Counts struct {
	Host  atomic.Uint64 // asked for by the name of another machine
	Token atomic.Uint64 // without a token that is good for it
	Busy  atomic.Uint64 // while as many pages were made as may be
	Conns atomic.Uint64 // connections closed for newer ones
}

// Server is a bound admin listener.
type Server struct {
	listener net.Listener
	http     *http.Server
	tokens   *Tokens // nil without
}

// ErrOpen is the error of an address that other machines reach, without tokens.
var ErrOpen = errors.New("other machines reach it, and nobody is asked for a token")

// Listen binds the address. The error names the address and what can be done.
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
		return nil, fmt.Errorf("%s is in use: stop what listens there or choose another port (0 picks a free one)", cfg.Listen)
	case err != nil:
		return nil, fmt.Errorf("cannot listen on %q: %w", cfg.Listen, err)
	}
	if tcp, ok := ln.Addr().(*net.TCPAddr); cfg.Tokens == nil && !(ok && tcp.IP.IsLoopback()) {
		return nil, errors.Join(fmt.Errorf("%s: %w", cfg.Listen, ErrOpen), ln.Close())
	}
	name, _, _ := net.SplitHostPort(cfg.Listen) // It was bound.
	return &Server{
		tokens:   cfg.Tokens,
		listener: connlimit.New(ln, connlimit.Config{Max: maxConns, Closed: func() { cfg.Counts.Conns.Add(1) }}),
		http: &http.Server{
			Handler:        handler(cfg, &access{tokens: cfg.Tokens, name: name, pages: make(chan struct{}, maxPages), counts: cfg.Counts}),
			ConnContext:    connlimit.With,
			ReadTimeout:    readTimeout,
			WriteTimeout:   writeTimeout,
			IdleTimeout:    idleTimeout,
			MaxHeaderBytes: maxHeader,
			ErrorLog:       slog.NewLogLogger(cfg.Log.Handler(), slog.LevelWarn),
		},
	}, nil
}

// Addr is the address bound.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Serve answers until ctx ends and returns when every goroutine of the listener has ended.
// The error is nil unless the listener itself failed. It is called once; a server that is
// never served is closed with Close.
func (s *Server) Serve(ctx context.Context) error {
	defer s.closeTokens()
	failed := make(chan error, 1) // one sender, one value
	go func() { failed <- s.http.Serve(s.listener) }()
	select {
	case err := <-failed:
		_ = s.http.Close()
		return fmt.Errorf("admin: serve: %w", err)
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownGrace)
	defer cancel()
	if s.http.Shutdown(grace) != nil {
		_ = s.http.Close() // whoever is still reading has had its time
	}
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
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
	probe := func(path string, page http.HandlerFunc) { mux.HandleFunc("GET "+path, a.open(page)) }
	look := func(path string, page http.HandlerFunc) { mux.HandleFunc("GET "+path, a.by(reader, page)) }
	probe("/healthz", func(w http.ResponseWriter, _ *http.Request) { healthz(w, cfg) })
	probe("/readyz", func(w http.ResponseWriter, _ *http.Request) { readyz(w, cfg) })
	look("/{$}", func(w http.ResponseWriter, _ *http.Request) { text(w, http.StatusOK, index) })
	look("/metrics", cfg.Metrics.ServeHTTP)
	look("/ticks", at(cfg.Ticks))
	look("/loop", asked(cfg.Loop))
	look("/explain", asked(cfg.Explain))
	look("/rooms", at(cfg.Rooms))
	mux.HandleFunc("POST /rooms/close", a.by(writer, closeRoom(cfg)))
	var large sync.Mutex
	look("/ticks/last", func(w http.ResponseWriter, _ *http.Request) { oneByOne(w, &large, cfg.Last) })
	look("/ticks/slow", func(w http.ResponseWriter, _ *http.Request) { oneByOne(w, &large, cfg.Slow) })
	mux.HandleFunc("GET /debug/pprof/{$}", a.by(writer, profileIndex))
	mux.HandleFunc("GET /debug/pprof/{name}", a.by(writer, profile))
	return mux
}

func readyz(w http.ResponseWriter, cfg Config) {
	note, err := cfg.Ready()
	if err != nil {
		text(w, http.StatusServiceUnavailable, err.Error()+"\n")
		return
	}
	text(w, http.StatusOK, "ready"+but(note)+"\n")
}

// Refusal is an error with a status of its own.
type Refusal struct {
	Status int
	Text   string
}

// Error returns the text.
func (r *Refusal) Error() string { return r.Text }

// asked answers a question which a tick has to answer first.
func asked(ask func(context.Context, url.Values) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), askTimeout)
		defer cancel()
		v, err := ask(ctx, r.URL.Query())
		answer(w, v, err)
	}
}

// at answers a question which can be answered at once.
func at(ask func(url.Values) (any, error)) http.HandlerFunc {
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

// closeRoom does what a POST to /rooms/close asks for. A page of somebody else in the browser of
// whoever has shown a token here cannot ask for it: browsers say where a POST comes from.
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
	text(w, http.StatusOK, "ok"+but(note)+"\n")
}

// but is a note behind a word that says that all is well.
func but(note string) string {
	if note == "" {
		return ""
	}
	return ", but " + note
}

// oneByOne answers with what is large: some MiB at most, so one at a time is made and sent.
func oneByOne(w http.ResponseWriter, large *sync.Mutex, page func() any) {
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
	_, _ = w.Write(b) // the client went away: nothing to do about it
}

// text answers with a line for people. Probes must see the present, so nothing is cached.
func text(w http.ResponseWriter, status int, body string) {
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(body)) // the client went away: nothing to do about it
}
