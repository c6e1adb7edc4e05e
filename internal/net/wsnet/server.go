package wsnet

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/netloop/netloop/internal/net/admission"
	"github.com/netloop/netloop/internal/net/driver"
	"github.com/netloop/netloop/internal/net/origin"
	"github.com/netloop/netloop/internal/transport"
)

const (
	// idleTimeout is the time without bytes of the peer after which a connection ends.
	idleTimeout = 10 * time.Second
	// pingPeriod is the interval of pings. Browsers answer them even if the page sleeps.
	pingPeriod = 3 * time.Second
	// sweepPeriod is the longest interval between checks of all connections.
	sweepPeriod = time.Second
)

// Config configures a server of WebSockets.
type Config struct {
	Admission *admission.Controller
	Origins   *origin.Set      // of pages that may connect
	Stats     *transport.Stats // nil: not counted
	// IdleTimeout is the time without bytes of the peer after which a connection is lost; 0: 10 s.
	IdleTimeout time.Duration
	// Take returns the TCP connection of a request, and a function that removes it from the limit
	// on the HTTP server's connections. The function reports false if the HTTP server has closed
	// the connection in favour of another one.
	Take func(*http.Request) (conn net.Conn, leave func() bool)
	// Through wraps each connection that has become a WebSocket, for example with a simulated
	// network; nil: not wrapped.
	Through func(net.Conn) net.Conn
}

// Server serves WebSockets as a handler of an HTTP server.
type Server struct {
	cfg   Config
	stop  chan struct{}
	works sync.WaitGroup // the sweep, requests, pings, and asynchronous closes

	mu     sync.Mutex
	conns  map[*incoming]struct{} // under mu
	closed bool                   // under mu
}

// New returns a server. Close it.
func New(cfg Config) *Server {
	if cfg.Stats == nil {
		cfg.Stats = new(transport.Stats)
	}
	if cfg.IdleTimeout <= 0 {
		cfg.IdleTimeout = idleTimeout
	}
	s := &Server{cfg: cfg, stop: make(chan struct{}), conns: make(map[*incoming]struct{})}
	s.works.Go(s.sweep)
	return s
}

// Close returns when every goroutine has ended. The Controller and the HTTP server must be closed
// before.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	close(s.stop)
	s.works.Wait()
}

// enter counts a request in works, unless the server is closed: the HTTP server does not wait for
// requests that have become WebSockets.
func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.works.Add(1)
	}
	return !s.closed
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.enter() {
		http.Error(w, "the server is closing", http.StatusServiceUnavailable)
		return
	}
	defer s.works.Done()
	switch {
	case !s.cfg.Origins.Allows(r.Header.Get("Origin"), r.Host):
		s.cfg.Stats.Drop(transport.DropOrigin, 1)
		http.Error(w, "origin is not allowed: see --origin", http.StatusForbidden)
		return
	case !speaksOurs(r.Header):
		s.cfg.Stats.Drop(transport.DropRequest, 1)
		http.Error(w, "WebSocket subprotocol must be "+Protocol, http.StatusBadRequest)
		return
	}
	socket, leave := s.cfg.Take(r)
	from := socket.RemoteAddr()
	if told, err := netip.ParseAddrPort(r.RemoteAddr); err == nil { // Of a proxy's client.
		from = net.TCPAddrFromAddrPort(told)
	}
	pending := s.cfg.Admission.Reserve(from, true)
	if pending == nil {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "server accepts no clients now: try again", http.StatusServiceUnavailable)
		return
	}
	in := &incoming{Conn: newConn(socket), server: s}
	in.remote = from
	through := s.cfg.Through
	if through != nil {
		in.kernel = kernel{} // The kernel cannot see the simulated link: pings measure it.
	}
	// An earlier answer may have filled the socket. The hijack removes the deadline.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(driver.Linger))
	ws, err := websocket.Accept(hijackWriter{w, in.Conn, through}, r, &websocket.AcceptOptions{
		Subprotocols:       []string{Protocol},
		InsecureSkipVerify: true, // The origin was checked above.
		OnPingReceived:     func(context.Context, []byte) bool { return in.controlled() },
		OnPongReceived:     func(context.Context, []byte) { in.controlled() },
	})
	if err != nil { // Accept has answered the request.
		s.cfg.Stats.Drop(transport.DropRequest, 1)
		pending.Release()
		return
	}
	in.open(ws)
	if !leave() {
		pending.Release()
		_ = in.failed(context.Canceled)
		return
	}
	s.follow(in)
	pending.Serve(in)
}

// hijackWriter is a response writer that hijacks its connection and returns it as an
// [observedConn].
type hijackWriter struct {
	http.ResponseWriter
	owner   *Conn
	through func(net.Conn) net.Conn
}

// Hijack implements http.Hijacker.
func (w hijackWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err == nil && w.through != nil {
		c = w.through(c)
		rw.Writer.Reset(c) // The WebSocket writes with it.
	}
	return observedConn{c, w.owner}, rw, err
}

// speaksOurs reports whether a request is for a WebSocket with our subprotocol.
func speaksOurs(h http.Header) bool {
	names := strings.FieldsFunc(strings.Join(h.Values("Sec-WebSocket-Protocol"), ","), func(r rune) bool { return r == ',' || r == ' ' })
	return strings.EqualFold(h.Get("Upgrade"), "websocket") && slices.Contains(names, Protocol)
}

// follow adds a connection to the sweep until it ends.
func (s *Server) follow(in *incoming) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns[in] = struct{}{}
	context.AfterFunc(in.ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.conns, in)
	})
}

// sweepPeriod returns the interval of the sweep. It is at most a quarter of IdleTimeout, so that a
// silent peer is detected at most that much late.
func (c *Config) sweepPeriod() time.Duration { return min(sweepPeriod, c.IdleTimeout/4) }

// sweep pings all peers, and ends silent connections.
func (s *Server) sweep() {
	ticker := time.NewTicker(s.cfg.sweepPeriod())
	defer ticker.Stop()
	for {
		select {
		case now := <-ticker.C:
			s.checkAll(now)
		case <-s.stop:
			return
		}
	}
}

func (s *Server) checkAll(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for in := range s.conns {
		switch {
		case in.ending():
		case in.silence() > s.cfg.IdleTimeout:
			in.Close(transport.CodeLost, "no packet from the peer for "+s.cfg.IdleTimeout.String())
		case !in.pinging && now.Sub(in.pinged) >= min(pingPeriod, s.cfg.IdleTimeout/3):
			in.pinged, in.pinging = now, true
			s.works.Go(func() { s.ping(in) })
		}
	}
}

// ping pings a peer and measures the round trip. If the peer does not answer, ping returns when the
// connection ends.
func (s *Server) ping(in *incoming) {
	if in.ws.Ping(in.ctx) == nil {
		in.rtt.Store(int64(time.Since(in.pinged)))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	in.pinging = false
}

// incoming is a WebSocket as package admission uses it.
type incoming struct {
	*Conn
	server *Server

	pinged  time.Time // under the server's mu; during a ping only for its goroutine
	pinging bool      // under the server's mu
}

// Kind implements admission.Incoming.
func (in *incoming) Kind() transport.Kind { return transport.WebSocket }

// Open implements admission.Incoming.
func (in *incoming) Open(context.Context) (driver.Conn, error) { return in.Conn, nil }

// Close implements admission.Incoming. It does not wait.
func (in *incoming) Close(code transport.Code, text string) {
	in.server.works.Go(func() { in.Conn.Close(code, text) })
}

// controlled counts a ping or a pong, and closes the connection above the rate. It is called on the
// reading goroutine.
func (c *Conn) controlled() bool {
	if c.control.Allow() {
		return true
	}
	_ = c.because(transport.Closed{Code: transport.CodeFlood, Text: "too many pings"}, nil)
	_ = c.socket.Close() // The next read fails.
	return false
}
