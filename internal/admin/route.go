package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
)

// Route is one page of the listener. Exactly one of Read, Act, Post, Page and Socket is
// set.
type Route struct {
	// Path is the path of the page.
	Path string
	// Query lists the parameters, as an example: "?room=lobby&after=100". It is empty without
	// parameters.
	Query string
	// Text describes the page, in one line of the index.
	Text string
	// Read returns the content for a GET, which is served as JSON. It may wait for a tick until ctx
	// ends. A *Refusal has its own status; any other error is answered with 503.
	Read func(ctx context.Context, query url.Values) (any, error)
	// Act handles a POST with a token of role write, and returns a line for people, or JSON for a
	// page. The listener logs each action with its caller.
	Act func(ctx context.Context, query url.Values) (string, error)
	// Post handles a POST with a token of role write, and returns the content as Read does.
	Post func(ctx context.Context, query url.Values) (any, error)
	// ByReaders permits Act to the role read too, because it changes nothing of the game.
	ByReaders bool
	// Page serves content that is neither JSON nor an action.
	Page http.Handler
	// ByWriters permits Page to the role write only.
	ByWriters bool
	// Socket takes over the connection of a GET with a key of Keys in its query.
	Socket http.Handler
	Keys   *Keys
	// Large is set for a page of some MiB: the listener makes only one of these at a time.
	Large bool
}

// role returns the role that the page needs.
func (r *Route) role() role {
	if r.Act != nil && !r.ByReaders || r.Post != nil || r.ByWriters || r.Socket != nil {
		return writer
	}
	return reader
}

// Refusal is an error with an HTTP status.
type Refusal struct {
	Status int
	Text   string
}

// Error returns the text.
func (r *Refusal) Error() string { return r.Text }

// Refuse returns a *Refusal.
func Refuse(status int, format string, a ...any) error {
	return &Refusal{status, fmt.Sprintf(format, a...)}
}

// listed is one entry of /api.
type listed struct {
	Method string `json:"method"`
	Path   string `json:"path"`
	Query  string `json:"query,omitempty"`
	Role   string `json:"role"`
	Text   string `json:"text"`
}

// ownRoutes returns the pages that every listener has.
func ownRoutes() []listed {
	return []listed{
		{http.MethodGet, "/healthz", "", "none", "200 while ticks run"},
		{http.MethodGet, "/readyz", "", "none", "200 while clients may come"},
		{http.MethodGet, "/debug/pprof/", "", "write", "profiles"},
		{http.MethodGet, streamPath, "?topic=overview&topic=ticks&room=lobby", "read", "live data as Server-Sent Events"},
		{http.MethodGet, "/api", "", "read", "this list, as JSON"},
	}
}

// list returns the entries of /api.
func list(routes []Route) []listed {
	var all []listed
	for _, r := range routes {
		l := listed{http.MethodGet, r.Path, r.Query, "read", r.Text}
		if r.Act != nil || r.Post != nil {
			l.Method = http.MethodPost
		}
		if r.role() == writer {
			l.Role = "write"
		}
		all = append(all, l)
	}
	return append(all, ownRoutes()...)
}

// index returns the list as text.
func index(all []listed) string {
	var b strings.Builder
	b.WriteString("netloop admin\n\n")
	for _, l := range all {
		fmt.Fprintf(&b, "%-4s %s%s\n       %s", l.Method, l.Path, l.Query, l.Text)
		if l.Role == "write" {
			b.WriteString("; for tokens with the role write")
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func handler(cfg Config, a *access, s *streams) http.Handler {
	mux := http.NewServeMux()
	probe := func(path string, page http.HandlerFunc) { mux.HandleFunc("GET "+path, a.probe(page)) }
	read := func(path string, page http.HandlerFunc) { mux.HandleFunc("GET "+path, a.require(reader, page)) }
	probe("/healthz", func(w http.ResponseWriter, _ *http.Request) { healthz(w, cfg) })
	probe("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		note, err := cfg.Ready()
		answerProbe(w, "ready", note, err)
	})
	all := list(cfg.Routes)
	read("/{$}", func(w http.ResponseWriter, _ *http.Request) { text(w, http.StatusOK, index(all)) })
	read("/api", func(w http.ResponseWriter, _ *http.Request) { asJSON(w, all) })
	mux.HandleFunc("GET "+streamPath, a.stream(s))
	mux.HandleFunc("GET /debug/pprof/{$}", a.require(writer, profileIndex))
	mux.HandleFunc("GET /debug/pprof/{name}", a.require(writer, profile))
	var large sync.Mutex
	for _, r := range cfg.Routes {
		switch {
		case r.Act != nil:
			mux.HandleFunc("POST "+r.Path, a.require(r.role(), act(cfg, r)))
		case r.Post != nil:
			mux.HandleFunc("POST "+r.Path, a.require(writer, sameSite(cfg, Ask(r.Post))))
		case r.Socket != nil:
			mux.HandleFunc("GET "+r.Path, a.socket(r))
		case r.Page != nil:
			mux.HandleFunc("GET "+r.Path, a.require(r.role(), r.Page.ServeHTTP))
		case r.Large:
			read(r.Path, serialized(&large, Ask(r.Read)))
		default:
			read(r.Path, Ask(r.Read))
		}
	}
	return mux
}

// Ask returns the handler of a page that answers a query with JSON. A *Refusal has its own status.
func Ask(ask func(context.Context, url.Values) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), askTimeout)
		defer cancel()
		v, err := ask(ctx, r.URL.Query())
		if err != nil {
			refuse(w, err)
			return
		}
		asJSON(w, v)
	}
}

// serialized returns the handler of a large page. It answers with status 503 while another large
// page is being made.
func serialized(large *sync.Mutex, page http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !large.TryLock() {
			busy(w, "somebody else reads the ticks: try again")
			return
		}
		defer large.Unlock()
		page(w, r)
	}
}

// act returns the handler of an action. Pages of other sites cannot use the token that a browser
// stores, because browsers send the origin of a POST.
func act(cfg Config, route Route) http.HandlerFunc {
	return sameSite(cfg, func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), askTimeout)
		defer cancel()
		query := r.URL.Query()
		done, err := route.Act(ctx, query)
		if err != nil {
			refuse(w, err)
			return
		}
		by, _ := r.Context().Value(callerKey{}).(caller)
		cfg.Log.LogAttrs(r.Context(), slog.LevelInfo, "an action of the admin listener", slog.String("action", route.Path),
			slog.String("query", query.Encode()), slog.String("token", by.name), slog.String("from", r.RemoteAddr))
		text(w, http.StatusOK, done+"\n")
	})
}

// sameSite refuses the requests of other sites' pages.
func sameSite(cfg Config, page http.HandlerFunc) http.HandlerFunc {
	own := http.NewCrossOriginProtection()
	return func(w http.ResponseWriter, r *http.Request) {
		if err := own.Check(r); err != nil {
			cfg.Counts.Host.Add(1)
			text(w, http.StatusForbidden, foreignPage)
			return
		}
		page(w, r)
	}
}

// busy refuses a request that may be made again in a second.
func busy(w http.ResponseWriter, why string) {
	w.Header().Set("Retry-After", "1")
	text(w, http.StatusServiceUnavailable, why+"\n")
}

func refuse(w http.ResponseWriter, err error) {
	status := http.StatusServiceUnavailable
	if refusal, ok := errors.AsType[*Refusal](err); ok {
		status = refusal.Status
	}
	text(w, status, err.Error()+"\n")
}
