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
	"github.com/netloop/netloop/internal/net/origin"
)

// The limits of a connection. A request to the pages is one line and a few headers; its body is not
// read.
const (
	readTimeout = 5 * time.Second // limit for a whole request
	// writeTimeout limits the time to send an answer, such as a file of some megabytes over a slow
	// link.
	writeTimeout = time.Minute
	idleTimeout  = 30 * time.Second
	maxHeader    = 8 << 10
	// MaxConns is enough for pages, which need a connection for some seconds. Above it a new
	// connection replaces a connection of the site with the most connections. maxPerSite bounds the
	// connections of one site: a browser opens six.
	MaxConns   = 256
	maxPerSite = MaxConns / 2
	// sendBuffer bounds the kernel's buffer for an answer that the peer does not read.
	sendBuffer = 128 << 10
	// readRate is the number of bytes per second read from a connection, in bursts of readBurst:
	// twice the limit of a session.
	readRate  = 4 << 20
	readBurst = 8 << 20
)

// Config configures the pages. Every function may be called from any goroutine.
type Config struct {
	// Listen is the TCP address; port 0 picks a free one.
	Listen string
	// TLS enables HTTPS; nil: plain HTTP.
	TLS *tls.Config
	// Files are the pages and other files of the game. Listen reads them once. If Files is nil, the
	// server shows its own page.
	Files fs.FS
	// Scheme and Host are the scheme and host of the pages' public URL, if the pages are behind a
	// proxy. If they are empty, the scheme and host of the request are used.
	Scheme, Host string
	// Proxies are the trusted proxies: their headers contain the addresses of their clients.
	Proxies Proxies
	// Facts returns the data that a page needs to connect to the game.
	Facts func() Facts
	// Allow counts a connection for the site of an address, and reports false if the site is above
	// its rate. If Allow is nil, there is no limit.
	Allow func(from net.Addr) bool
	// Refused returns the refusal that a connection from an address would get now, or nil.
	Refused func(from net.Addr) *Refusal
	// Origins are the pages of other servers that may read /connect.json.
	Origins *origin.Set
	// Socket serves WebSockets at [endpoint.Path], and removes their connections from the
	// [connlimit.Pool] of the pages; nil: no WebSockets.
	Socket http.Handler
	// Counts receives the listener's counts.
	Counts *Counts
	// Log receives the errors of net/http.
	Log *slog.Logger
}

// Counts are requests and connections by outcome. They may be read at any time.
type Counts struct {
	Answered atomic.Uint64 // requests for an existing page or file
	Missing  atomic.Uint64 // requests for an unknown path
	Conns    atomic.Uint64 // connections closed for newer ones, or refused because the pool is full
	Rate     atomic.Uint64 // connections and proxies' requests above the rate of a site, or of all
}

// Server is a bound listener of pages.
type Server struct {
	listener net.Listener
	tls      bool
	http     *http.Server
}

// Listen reads the files and binds the address. The error names the address and says what to
// change.
func Listen(cfg Config) (*Server, error) {
	allow := func(at net.Addr) bool {
		if cfg.Allow == nil || cfg.Allow(at) {
			return true
		}
		cfg.Counts.Rate.Add(1)
		return false
	}
	proxy := func(at net.Addr) bool { return cfg.Proxies.trusts(addrOf(at).Addr()) }
	h, err := newHandler(cfg, allow)
	if err != nil {
		return nil, err
	}
	ln, err := net.Listen("tcp", cfg.Listen)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%s is in use: stop the process on that port or choose another port (0 picks a free one)", cfg.Listen)
	case err != nil:
		return nil, fmt.Errorf("cannot listen on %q: %w", cfg.Listen, err)
	}
	cfg.Origins.Serves(scheme(cfg.TLS), ln.Addr())
	return &Server{
		tls: cfg.TLS != nil,
		listener: connlimit.New(limitedListener{ln}, connlimit.Config{
			Max: connsFor(connlimit.Files()), PerSite: maxPerSite, Evicted: func() { cfg.Counts.Conns.Add(1) },
			Proxy: proxy, Allow: func(at net.Addr) bool { return proxy(at) || allow(at) },
		}),
		http: &http.Server{
			Handler:        h,
			TLSConfig:      cfg.TLS,
			Protocols:      http1(),
			ConnContext:    connlimit.WithConn,
			ReadTimeout:    readTimeout,
			WriteTimeout:   writeTimeout,
			IdleTimeout:    idleTimeout,
			MaxHeaderBytes: maxHeader,
			ErrorLog:       slog.NewLogLogger(cfg.Log.Handler(), slog.LevelDebug),
		},
	}, nil
}

// connsFor returns the largest number of connections for pages, from the results of
// [connlimit.Files]. It is at most half of the files that the process may open, so that the admin
// listener and the server can use the others.
func connsFor(files uint64, err error) int {
	if err != nil {
		return MaxConns
	}
	return int(min(MaxConns, max(files/2, 1)))
}

// addrOf returns the address of a TCP peer.
func addrOf(at net.Addr) netip.AddrPort {
	tcp, _ := at.(*net.TCPAddr) // For an address of another type tcp is nil.
	return tcp.AddrPort()
}

// http1 returns HTTP/1.1 as the only protocol, because WebSockets need it, and because it has no
// streams that must be limited.
func http1() *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(true)
	return p
}

// limitedListener is a TCP listener. Its connections have a small send buffer and are read at a
// bounded rate.
type limitedListener struct{ net.Listener }

// Accept implements net.Listener.
func (n limitedListener) Accept() (net.Conn, error) {
	c, err := n.Listener.Accept()
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return c, err
	}
	_ = tcp.SetWriteBuffer(sendBuffer) // An ended connection fails on use.
	return &pacedConn{tcp, rate.NewLimiter(readRate, readBurst)}, err
}

// pacedConn is a connection that is read at readRate. Data that takes longer to process than to
// send, such as a message in empty fragments, can arrive no faster.
type pacedConn struct {
	*net.TCPConn
	rate *rate.Limiter
}

// Read implements net.Conn.
func (p *pacedConn) Read(b []byte) (int, error) {
	n, err := p.TCPConn.Read(b[:min(len(b), readBurst)])
	if wait := p.rate.ReserveN(time.Now(), n).Delay(); wait > 0 {
		time.Sleep(wait)
	}
	return n, err
}

// Addr returns the bound address.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Serve answers requests until ctx ends. It returns when every goroutine of the listener has ended,
// except those of Config.Socket. The error is nil unless the listener itself failed. Serve may be
// called once. A server on which Serve is not called must be closed with Close.
func (s *Server) Serve(ctx context.Context) error {
	err := connlimit.Serve(ctx, s.http, func() error {
		if s.tls {
			return s.http.ServeTLS(s.listener, "", "") // The TLSConfig has the certificate.
		}
		return s.http.Serve(s.listener)
	})
	if err != nil {
		return fmt.Errorf("web: serve: %w", err)
	}
	return nil
}

// Close releases the port of a server that was never served.
func (s *Server) Close() error { return s.listener.Close() }
