package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/netloop/netloop/internal/apidoc"
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
	// Answer is a value of the type of the JSON that the page answers with; nil for other content.
	// /api lists its fields.
	Answer any
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

// Listed is one entry of /api.
type Listed struct {
	Method string `json:"method"`          // GET or POST
	Path   string `json:"path"`            // of the page
	Query  string `json:"query,omitempty"` // an example of the parameters; left out without any
	Role   string `json:"role"`            // of the token: none, read or write
	Text   string `json:"text"`            // the content or effect
	// Fields are those of the answer; left out for content that is not JSON.
	Fields []apidoc.Field `json:"fields,omitempty"`
	// Topics are those of /api/stream; other pages have none.
	Topics []ListedTopic `json:"topics,omitempty"`
}

// ListedTopic is a topic of /api/stream in the answer of /api.
type ListedTopic struct {
	Topic  string `json:"topic"`     // its name, which is that of the event
	Page   string `json:"page"`      // the page with the same parameters and fields
	Period int64  `json:"period_ms"` // between events, in milliseconds
}

// List returns the entries of /api for the pages of a listener.
func List(routes []Route) []Listed {
	var all []Listed
	for _, r := range routes {
		l := Listed{Method: http.MethodGet, Path: r.Path, Query: r.Query, Role: "read", Text: r.Text, Fields: apidoc.Fields(r.Answer)}
		if r.Act != nil || r.Post != nil {
			l.Method = http.MethodPost
		}
		if r.role() == writer {
			l.Role = "write"
		}
		all = append(all, l)
	}
	return append(all, Listed{Method: http.MethodGet, Path: "/api", Role: "read", Text: "this list, as JSON", Fields: apidoc.Fields([]Listed{})})
}

// listAll returns the entries of /api for the pages of a listener and its own ones.
func listAll(cfg Config) []Listed {
	stream := Listed{Method: http.MethodGet, Path: streamPath, Query: "?topic=overview&topic=ticks&room=lobby", Role: "read", Text: "live data as Server-Sent Events: each has the name of its topic and the JSON of the topic's page; the event trouble has the topic that has no data, and why in text"}
	for _, name := range slices.Sorted(maps.Keys(cfg.Topics)) {
		t := cfg.Topics[name]
		stream.Topics = append(stream.Topics, ListedTopic{name, t.Page, int64(t.Rounds) * streamPeriod.Milliseconds()})
	}
	return append(List(cfg.Routes),
		Listed{Method: http.MethodGet, Path: "/healthz", Role: "none", Text: "200 while ticks run"},
		Listed{Method: http.MethodGet, Path: "/readyz", Role: "none", Text: "200 while clients may come"},
		Listed{Method: http.MethodGet, Path: "/debug/pprof/", Role: "write", Text: "profiles"},
		stream,
	)
}

// Index returns the list as text.
func Index(title string, all []Listed) string {
	var b strings.Builder
	b.WriteString(title + "\n\n")
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
	all := listAll(cfg)
	read("/{$}", func(w http.ResponseWriter, _ *http.Request) { text(w, http.StatusOK, Index("netloop admin", all)) })
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
