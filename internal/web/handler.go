package web

import (
	"cmp"
	"crypto/tls"
	"embed"
	"encoding/json"
	"errors"
	"html"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"

	"github.com/netloop/netloop/clients/ts"
	"github.com/netloop/netloop/internal/connlimit"
	"github.com/netloop/netloop/internal/net/endpoint"
	"github.com/netloop/netloop/internal/web/static"
)

// ownPage is the server's own page, for a game without pages.
//
//go:embed page
var ownPage embed.FS

// handler answers every request.
type handler struct {
	cfg   Config
	files map[string]*static.File
	index string // the server's own page, as a template; empty if the game has files
	mux   *http.ServeMux
	allow func(net.Addr) bool // counts a proxy's request for the client's site; false: refuse it
}

func newHandler(cfg Config, allow func(net.Addr) bool) (*handler, error) {
	h := &handler{cfg: cfg, allow: allow, mux: http.NewServeMux()}
	from := cfg.Files
	if from == nil {
		from, _ = fs.Sub(ownPage, "page") // The folder exists.
	}
	var err error
	if h.files, err = static.Read(from); err != nil {
		return nil, err
	}
	client, err := static.Read(ts.Files())
	if err != nil {
		return nil, err
	}
	for name, f := range client {
		if h.files[name] == nil { // A game may have its own build of the client.
			h.files[name] = f
		}
	}
	if cfg.Files == nil {
		h.index = string(h.files["/"].Body)
	} else if h.files["/"] == nil {
		return nil, errors.New("the game's Web has no index.html at its top: embed the folder that has it, and take fs.Sub of it")
	}
	h.mux.HandleFunc("GET /", h.file)
	h.mux.HandleFunc("GET /connect.json", h.connect)
	if cfg.Socket != nil {
		h.mux.Handle("GET "+endpoint.Path, cfg.Socket)
	}
	return h, nil
}

// scheme returns the scheme of pages with or without a TLS configuration.
func scheme(conf *tls.Config) string {
	if conf != nil {
		return "https"
	}
	return "http"
}

// hostFor returns the host, with or without a port, at which the browser of a request reaches the
// pages: the host of their public URL if it is set, or else the host of the request.
func (h *handler) hostFor(r *http.Request) string { return cmp.Or(h.cfg.Host, r.Host) }

// socketFor returns the URL of the WebSocket for a browser that requested a host, or "" if the
// server has no WebSocket.
func (h *handler) socketFor(host string) string {
	if h.cfg.Socket == nil {
		return ""
	}
	return "ws" + strings.TrimPrefix(cmp.Or(h.cfg.Scheme, scheme(h.cfg.TLS)), "http") + "://" + host + endpoint.Path
}

// forwarded returns a proxy's request with the client's address, and counts it for the client's
// site. It returns nil if the site is above its rate or has too many connections. It does not
// change requests that come from no proxy.
func (h *handler) forwarded(r *http.Request) *http.Request {
	peer := addrOf(connlimit.FromContext(r.Context()).RemoteAddr())
	from := h.cfg.Proxies.client(peer, r.Header)
	if from == peer {
		return r
	}
	at := net.TCPAddrFromAddrPort(from)
	if !h.allow(at) {
		return nil
	}
	if !connlimit.FromContext(r.Context()).SetSite(at) {
		h.cfg.Counts.Conns.Add(1)
		return nil
	}
	r = r.WithContext(r.Context())
	r.RemoteAddr = from.String()
	return r
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer connlimit.FromContext(r.Context()).Busy()()
	if !plainHost(r.Host) {
		http.Error(w, "this is no host", http.StatusBadRequest)
		return
	}
	h.protect(w.Header(), h.hostFor(r))
	if r = h.forwarded(r); r == nil {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "too many requests of your site: try again", http.StatusServiceUnavailable)
		return
	}
	h.mux.ServeHTTP(w, r)
}

// protect sets the restrictions for the browser: to run and load only files of this server, and to
// connect only to it and to the game; in a cluster to any host, because the addresses of servers
// that start later are not known. Pictures and sounds may also be data of the page itself: engines
// such as Phaser make their textures so, and such data runs no script.
func (h *handler) protect(to http.Header, host string) {
	facts := h.cfg.Facts()
	// Any host, also for an IPv6 address, because such a policy cannot contain the address.
	game, socket := "https:", "ws: wss:"
	if name := hostOf(facts.addressFor(host)); !facts.Cluster && !strings.Contains(name, ":") {
		// Any port: a page may outlive a server, and the next server may have another port.
		game = "https://" + name + ":*"
	}
	if !facts.Cluster && !strings.Contains(host, "[") {
		socket = h.socketFor(host)
	}
	to.Set("Content-Security-Policy", "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; img-src 'self' data: blob:; media-src 'self' data: blob:; connect-src 'self' "+game+" "+socket+
		"; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	to.Set("X-Content-Type-Options", "nosniff")
	to.Set("Referrer-Policy", "no-referrer")
	to.Set("Cross-Origin-Opener-Policy", "same-origin")
	to.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// file answers with a file of the game, or with the server's own page.
func (h *handler) file(w http.ResponseWriter, r *http.Request) {
	f := h.files[r.URL.Path]
	switch {
	case f == nil:
		h.cfg.Counts.Missing.Add(1)
		w.Header().Set("Cache-Control", "no-store")
		http.Error(w, "there is no such page here", http.StatusNotFound)
		return
	case h.index != "" && f == h.files["/"]:
		h.serveOwnPage(w, r)
	default:
		f.ServeHTTP(w, r)
	}
	h.cfg.Counts.Answered.Add(1)
}

// serveOwnPage answers with the server's own page.
func (h *handler) serveOwnPage(w http.ResponseWriter, r *http.Request) {
	f := h.cfg.Facts()
	to := w.Header()
	to.Set("Content-Type", static.Kinds[".html"])
	to.Set("Cache-Control", "no-store")
	_, _ = strings.NewReplacer( // The browser may have closed the connection.
		"{game}", html.EscapeString(f.Schema.Name), "{version}", html.EscapeString(f.Version),
		"{major}", strconv.Itoa(f.Schema.Major), "{minor}", strconv.Itoa(f.Schema.Minor), "{protocol}", strconv.Itoa(f.Protocol),
		"{address}", html.EscapeString(f.addressFor(h.hostFor(r))),
	).WriteString(w, h.index)
}

// connect answers with the data that a page needs to connect. Pages of other servers may read it if
// they may also connect.
func (h *handler) connect(w http.ResponseWriter, r *http.Request) {
	f := h.cfg.Facts()
	info := f.ConnectFor(h.hostFor(r), h.socketFor(h.hostFor(r)))
	if from, err := netip.ParseAddrPort(r.RemoteAddr); err == nil && h.cfg.Refused != nil {
		info.Refused = h.cfg.Refused(net.TCPAddrFromAddrPort(from))
	}
	b, _ := json.Marshal(info) // Strings and numbers can be encoded.
	to := w.Header()
	if from := r.Header.Get("Origin"); from != "" && h.cfg.Origins.Allows(from, r.Host) {
		to.Set("Access-Control-Allow-Origin", from)
	}
	to.Set("Vary", "Origin")
	to.Set("Content-Type", static.Kinds[".json"])
	to.Set("Cache-Control", "no-store")
	h.cfg.Counts.Answered.Add(1)
	_, _ = w.Write(append(b, '\n')) // The browser may have closed the connection.
}
