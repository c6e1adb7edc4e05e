package web

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/time/rate"

	"github.com/netloop/netloop/internal/connlimit"
	"github.com/netloop/netloop/internal/net/admission"
	"github.com/netloop/netloop/internal/net/origin"
)

// The limits on what a connection may cost. Requests here are one line and a few headers, and
// bodies are not read.
const (
	readTimeout = 5 * time.Second // a whole request
	// writeTimeout bounds a whole answer: a file of some megabytes over a slow link.
	writeTimeout = time.Minute
	idleTimeout  = 30 * time.Second
	maxHeader    = 8 << 10
	// MaxConns is ample for pages, which need a connection for some seconds; a newcomer then takes
	// the place of another one, of the site that has the most. maxPerSite are those of one site: a
	// browser opens six.
	MaxConns   = 256
	maxPerSite = MaxConns / 2
	// sendBuffer bounds what the kernel holds of an answer for a peer that does not read.
	sendBuffer = 128 << 10
	// readRate is how many bytes a second are read of a connection, at once readBurst: twice what
	// a session may send.
	readRate  = 4 << 20
	readBurst = 8 << 20
	// shutdownGrace is what answers under way get once the server stops.
	shutdownGrace = 2 * time.Second
)

// Config says what the pages are. Every function may be called from any goroutine.
type Config struct {
	// Listen is the TCP address; port 0 picks a free one.
	Listen string
	// TLS makes it HTTPS; nil is plain HTTP.
	TLS *tls.Config
	// Files are the game's. They are read once. Nil is a page of the server's own.
	Files fs.FS
	// Scheme and Host are those by which browsers find the pages, if a proxy is before them. Empty:
	// those of the request.
	Scheme, Host string
	// Proxies are believed from where a request has come.
	Proxies Proxies
	// Facts are what a page needs to find the game.
	Facts func() Facts
	// Refused is what somebody who comes from an address now is refused for; nil is nothing.
	Refused func(from net.Addr) *Refusal
	// Origins says which pages, of those that others serve, may read /connect.json too.
	Origins *origin.Set
	// Socket serves [Path], and takes the connections that it gets out of the pool; nil is none.
	Socket http.Handler
	// Counts takes what the listener does.
	Counts *Counts
	// Log takes what net/http complains about.
	Log *slog.Logger
}

// Path is where the game's own connections come in, of every carrier.
const Path = "/netloop"

// Counts are what became of requests and connections. They may be read at any time.
type Counts struct {
	Answered atomic.Uint64 // requests for which there is a page or a file
	Missing  atomic.Uint64 // requests for which there is none
	Conns    atomic.Uint64 // connections closed for newer ones
	Rate     atomic.Uint64 // connections that came faster than their site may, or all may
}

// Server is a bound listener of pages.
type Server struct {
	listener net.Listener
	tls      bool
	http     *http.Server
}

// Listen reads the files and binds the address. The error names the address and what can be done.
func Listen(cfg Config) (*Server, error) {
	toll := admission.NewToll(MaxConns)
	pays := func(at net.Addr) bool {
		pays := toll.Pay(at)
		if !pays {
			cfg.Counts.Rate.Add(1)
		}
		return pays
	}
	proxy := func(at net.Addr) bool { return cfg.Proxies.trusts(addrOf(at).Addr()) }
	h, err := newHandler(cfg, pays)
	if err != nil {
		return nil, err
	}
	ln, err := net.Listen("tcp", cfg.Listen)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%s is in use: stop what listens there or choose another port (0 picks a free one)", cfg.Listen)
	case err != nil:
		return nil, fmt.Errorf("cannot listen on %q: %w", cfg.Listen, err)
	}
	cfg.Origins.Serves(scheme(cfg.TLS), ln.Addr())
	return &Server{
		tls: cfg.TLS != nil,
		listener: connlimit.New(narrow{ln}, connlimit.Config{
			Max: connsFor(connlimit.Files()), PerSite: maxPerSite, Closed: func() { cfg.Counts.Conns.Add(1) },
			Proxy: proxy, Welcome: func(at net.Addr) bool { return proxy(at) || pays(at) },
		}),
		http: &http.Server{
			Handler:        h,
			TLSConfig:      cfg.TLS,
			Protocols:      http1(),
			ConnContext:    connlimit.With,
			ReadTimeout:    readTimeout,
			WriteTimeout:   writeTimeout,
			IdleTimeout:    idleTimeout,
			MaxHeaderBytes: maxHeader,
			ErrorLog:       slog.NewLogLogger(cfg.Log.Handler(), slog.LevelDebug),
		},
	}, nil
}

// connsFor is how many connections pages get where a process may open so many files: at most half
// of them, so that the admin listener and the server's own files have theirs.
func connsFor(files uint64, err error) int {
	if err != nil {
		return MaxConns
	}
	return int(min(MaxConns, max(files/2, 1)))
}

// addrOf is the address of a TCP peer.
func addrOf(at net.Addr) netip.AddrPort {
	if tcp, ok := at.(*net.TCPAddr); ok {
		return tcp.AddrPort()
	}
	return netip.AddrPort{}
}

// http1 is HTTP/1.1 alone: a WebSocket needs it, and it has no streams to bound.
func http1() *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(true)
	return p
}

// narrow is a TCP listener whose connections hold little of what their peers do not read, and read
// what they send at a rate.
type narrow struct{ net.Listener }

// Accept implements net.Listener.
func (n narrow) Accept() (net.Conn, error) {
	c, err := n.Listener.Accept()
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return c, err
	}
	_ = tcp.SetWriteBuffer(sendBuffer) // A connection that has ended says so when it is used.
	return &paced{tcp, rate.NewLimiter(readRate, readBurst)}, err
}

// paced is a connection that is read at a rate, whatever comes over it: what takes longer to look
// at than to send, such as the pieces of a message that have no bytes, is sent no faster.
type paced struct {
	*net.TCPConn
	rate *rate.Limiter
}

// Read implements net.Conn.
func (p *paced) Read(b []byte) (int, error) {
	n, err := p.TCPConn.Read(b[:min(len(b), readBurst)])
	if wait := p.rate.ReserveN(time.Now(), n).Delay(); wait > 0 {
		time.Sleep(wait)
	}
	return n, err
}

// Addr is the address bound.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Serve answers until ctx ends and returns when every goroutine of the listener has ended, but for
// those of Config.Socket. The error is nil unless the listener itself failed. It is called once; a
// server that is never served is closed with Close.
func (s *Server) Serve(ctx context.Context) error {
	failed := make(chan error, 1) // one sender, one value
	go func() {
		if s.tls {
			failed <- s.http.ServeTLS(s.listener, "", "") // The TLSConfig has the certificate.
			return
		}
		failed <- s.http.Serve(s.listener)
	}()
	select {
	case err := <-failed:
		_ = s.http.Close()
		return fmt.Errorf("web: serve: %w", err)
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownGrace)
	defer cancel()
	if s.http.Shutdown(grace) != nil {
		_ = s.http.Close() // Whoever is still reading has had its time.
	}
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("web: serve: %w", err)
	}
	return nil
}

// Close releases the port of a server that was never served.
func (s *Server) Close() error { return s.listener.Close() }
