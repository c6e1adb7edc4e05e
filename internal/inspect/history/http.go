package history

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/netloop/netloop/internal/admin"
	"github.com/netloop/netloop/internal/netvar/state"
)

// Page returns the answer to a query, which is served as JSON. An error that is a *admin.Refusal
// sets the HTTP status.
type Page = func(context.Context, url.Values) (any, error)

// Route is a page of the recordings.
type Route struct {
	Method, Path string
	Query        string // the parameters, as the documentation shows them
	About        string
	Page         Page
}

// Routes returns the pages, except for Receive.
func (s *Recordings) Routes() []Route {
	return append(s.AnswerRoutes(),
		Route{"GET", "/api/recordings", "", "the files that can be opened", s.filesPage},
		Route{"POST", "/api/recordings/open", "?name=run.rec", "opens a file", s.openPage},
	)
}

// AnswerRoutes returns the pages about the open recording.
func (s *Recordings) AnswerRoutes() []Route {
	of := func(answer func(context.Context, *Recording, *params) (any, error)) Page {
		return func(ctx context.Context, v url.Values) (any, error) {
			p := &params{values: v}
			return s.use(func(r *Recording) (any, error) {
				if r.kept && !admin.MayWrite(ctx) {
					r = r.restricted()
				}
				a, err := answer(ctx, r, p)
				if p.err != nil {
					return nil, p.err
				}
				return a, err
			})
		}
	}
	return []Route{
		{"GET", "/api/recording", "", "the open recording: game, classes, known ticks, outcome", of(headPage)},
		{"GET", "/api/recording/ticks", "?from=1&to=600&rows=1000", "counts of the ticks, and lanes of the clients", of(ticksPage)},
		{"GET", "/api/recording/state", "?tick=60&class=ship&after=17.3", "the objects as of a tick", of(statePage)},
		{"GET", "/api/recording/diff", "?tick=60&with=1", "what a tick has changed, or the difference from another one", of(diffPage)},
		{"GET", "/api/recording/messages", "?tick=60", "messages and inputs of a tick", of(messagesPage)},
		{"GET", "/api/recording/find", "?q=ship[17.3].Shield == 0&from=1&to=600", "the ticks in which a field gets a value", of(findPage)},
	}
}

// ReceivePath is the path of Receive.
const ReceivePath = "/api/recordings/upload"

// params reads the parameters of a query, and keeps the first error.
type params struct {
	values url.Values
	err    error
}

// number returns a parameter from 0 on; missing is its value if it is missing.
func (p *params) number(key string, missing uint64) uint64 {
	if !p.values.Has(key) {
		return missing
	}
	n, err := strconv.ParseUint(p.values.Get(key), 10, 64)
	if err != nil && p.err == nil {
		p.err = refusef(http.StatusBadRequest, "%s: %.40q is no number from 0 on", key, p.values.Get(key))
	}
	return n
}

// tick returns the parameter tick, which is required.
func (p *params) tick() uint64 {
	if !p.values.Has("tick") && p.err == nil {
		p.err = refusef(http.StatusBadRequest, "tick: give the number of a tick, such as tick=1")
	}
	return p.number("tick", 0)
}

func headPage(_ context.Context, r *Recording, _ *params) (any, error) { return r.Head(), nil }

func ticksPage(_ context.Context, r *Recording, p *params) (any, error) {
	from, to, rows := p.number("from", 0), p.number("to", 0), p.number("rows", defaultRows)
	if p.err == nil && (rows == 0 || rows > maxTickRows) {
		p.err = refusef(http.StatusBadRequest, "rows: %d cannot be used: give 1 to %d", rows, maxTickRows)
	}
	if p.err != nil {
		return nil, p.err
	}
	return r.Ticks(from, to, int(rows))
}

func statePage(_ context.Context, r *Recording, p *params) (any, error) {
	tick := p.tick()
	after := state.ID(0)
	if text := p.values.Get("after"); text != "" {
		var ok bool
		if after, ok = state.ParseID(text); !ok {
			return nil, refusef(http.StatusBadRequest, "after: %.40q is no object: give its slot and generation, such as 17.3", text)
		}
	}
	if p.err != nil {
		return nil, p.err
	}
	return r.State(tick, p.values.Get("class"), after)
}

func diffPage(_ context.Context, r *Recording, p *params) (any, error) {
	tick, with := p.tick(), p.number("with", 0)
	if p.err != nil {
		return nil, p.err
	}
	return r.Diff(tick, with)
}

func messagesPage(_ context.Context, r *Recording, p *params) (any, error) {
	tick := p.tick()
	if p.err != nil {
		return nil, p.err
	}
	return r.Messages(tick)
}

func findPage(ctx context.Context, r *Recording, p *params) (any, error) {
	from, to := p.number("from", 0), p.number("to", 0)
	if p.err != nil {
		return nil, p.err
	}
	return r.Find(ctx, p.values.Get("q"), from, to)
}

// FilesAnswer lists the files that can be opened.
type FilesAnswer struct {
	Files []FileRow `json:"files"`
	More  int       `json:"more"`
}

func (s *Recordings) filesPage(context.Context, url.Values) (any, error) {
	files, more, err := s.Files()
	return FilesAnswer{files, more}, err
}

func (s *Recordings) openPage(_ context.Context, v url.Values) (any, error) {
	if err := s.OpenFile(v.Get("name")); err != nil {
		return nil, err
	}
	return s.use(func(r *Recording) (any, error) { return r.Head(), nil })
}

// Receive opens the recording in the body of a POST.
func (s *Recordings) Receive(w http.ResponseWriter, r *http.Request) {
	// Lift the deadlines of other requests: a large file takes longer. Only one file is received
	// at a time.
	deadlines := http.NewResponseController(w)
	_, _ = deadlines.SetReadDeadline(time.Time{}), deadlines.SetWriteDeadline(time.Time{})
	name := cmp.Or(r.URL.Query().Get("name"), "upload")
	admin.Ask(func(context.Context, url.Values) (any, error) {
		if err := s.Upload(r.Body, name); err != nil {
			return nil, err
		}
		return s.use(func(r *Recording) (any, error) { return r.Head(), nil })
	})(w, r)
}

// Handler serves all pages, for clients of this machine.
func (s *Recordings) Handler() *http.ServeMux {
	mux := http.NewServeMux()
	for _, route := range s.Routes() {
		mux.HandleFunc(route.Method+" "+route.Path, admin.Ask(route.Page))
	}
	mux.HandleFunc("POST "+ReceivePath, s.Receive)
	return mux
}
