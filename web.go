package netloop

import (
	"crypto/tls"
	"fmt"
	"io/fs"
	"net"
	"net/http"

	"github.com/netloop/netloop/internal/build"
	"github.com/netloop/netloop/internal/connlimit"
	"github.com/netloop/netloop/internal/metrics"
	"github.com/netloop/netloop/internal/net/admission"
	"github.com/netloop/netloop/internal/net/origin"
	"github.com/netloop/netloop/internal/net/quicnet"
	"github.com/netloop/netloop/internal/net/wsnet"
	"github.com/netloop/netloop/internal/transport"
	"github.com/netloop/netloop/internal/web"
)

// WebGame is a game with pages: the server serves the files that Web returns at the address
// [Config] Web, with index.html as the start page. Package app calls it; a program with its own
// Config sets WebFiles.
type WebGame interface{ Web() fs.FS }

// listenWeb opens the listener of pages, with the server's certificate if WebTLS is set.
func (s *Server) listenWeb(conf *tls.Config, controller *admission.Controller) (*web.Server, error) {
	if s.cfg.WebTLS {
		conf = conf.Clone()
		conf.MinVersion, conf.NextProtos = tls.VersionTLS13, nil
	} else {
		conf = nil
	}
	s.sockets = wsnet.New(wsnet.Config{Admission: controller, Origins: s.origins, Stats: s.transport, IdleTimeout: s.idle, Take: takeSocket, Through: s.simulatedStream()})
	w, err := web.Listen(web.Config{
		Listen:  s.cfg.Web,
		TLS:     conf,
		Files:   s.cfg.WebFiles,
		Scheme:  s.public.scheme,
		Host:    s.public.host,
		Proxies: s.proxies,
		Facts:   s.webFacts,
		Allow:   admission.NewLimiter(web.MaxConns).Allow,
		Refused: refusedBy(controller),
		Origins: s.origins,
		Socket:  s.sockets,
		Counts:  &s.webCounts,
		Log:     s.log,
	})
	if err != nil {
		s.sockets.Close()
		return nil, fmt.Errorf("netloop: Web: %w", err)
	}
	if conf == nil && s.public.scheme != "https" && !quicnet.OnLoopback(s.cfg.Web) {
		s.log.Warn("pages are not encrypted, so browsers on other machines use WebSocket only and send tokens in the clear: use WebTLS, or a proxy with TLS in front",
			"web", w.Addr().String())
	}
	return w, nil
}

// takeSocket returns the connection of a request to the page server, and a function that removes
// the connection from the pool of that server. The function reports false if the pool has closed
// the connection meanwhile.
func takeSocket(r *http.Request) (conn net.Conn, leave func() bool) {
	c := connlimit.FromContext(r.Context())
	return c.Conn, c.Detach
}

// refusedBy returns a function that returns the refusal for a client at an address, or nil. Pages
// show the refusal.
func refusedBy(controller *admission.Controller) func(net.Addr) *web.Refusal {
	return func(from net.Addr) *web.Refusal {
		if r := controller.Refusal(from); r != nil {
			return &web.Refusal{Code: int(r.Code), Text: r.Text}
		}
		return nil
	}
}

// webFacts returns the data that a page needs to connect to the game.
func (s *Server) webFacts() web.Facts {
	hello := s.schema.s.Hello()
	f := web.Facts{
		Game: s.listener.Addr(), Version: build.Version(), Protocol: transport.ProtocolVersion,
		Schema:  web.Schema{Name: hello.GetSchema(), Major: int(hello.GetMajor()), Minor: int(hello.GetMinor()), Fingerprint: hello.GetFingerprint()},
		Cluster: s.member != nil,
	}
	if k := s.certificate.Load(); k != nil && k.Pinnable() {
		f.Hashes = [][32]byte{k.Hash()}
	}
	return f
}

// WebAddr returns the TCP address of the pages, or nil.
func (s *Server) WebAddr() net.Addr {
	if s.web == nil {
		return nil
	}
	return s.web.Addr()
}

func (m serverMetrics) WebRequests(f *metrics.Family) {
	c := &m.s.webCounts
	f.Set(c.Answered.Load(), "answered")
	f.Set(c.Missing.Load(), "missing")
}

func (m serverMetrics) WebConnections(f *metrics.Family) {
	f.Set(m.s.webCounts.Conns.Load(), "full")
	f.Set(m.s.webCounts.Rate.Load(), "rate")
}

// parseWeb parses the Config's settings for pages.
func (s *Server) parseWeb() (err error) {
	if s.origins, err = origin.Parse(s.cfg.Origins); err != nil {
		return ConfigError("Origins", s.cfg.Origins, "%s", err)
	}
	if s.proxies, err = web.ParseProxies(s.cfg.WebProxies); err != nil {
		return ConfigError("WebProxies", s.cfg.WebProxies, "%s", err)
	}
	if s.cfg.WebURL == "" {
		return nil
	}
	if s.public.scheme, s.public.host, err = s.origins.Public(s.cfg.WebURL); err != nil {
		return ConfigError("WebURL", s.cfg.WebURL, "%s", err)
	}
	return nil
}
