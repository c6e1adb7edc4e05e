package history

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/netloop/netloop/internal/admin"
	"github.com/netloop/netloop/internal/apidoc"
	"github.com/netloop/netloop/internal/netvar/state"
)

// Routes returns the pages, except for Receive.
func (s *Recordings) Routes() []admin.Route {
	return append(s.AnswerRoutes(),
		admin.Route{Path: "/api/recordings", Text: "the files that can be opened", Answer: FilesAnswer{}, Read: s.filesPage},
		admin.Route{Path: "/api/recordings/open", Query: "?name=run.rec", Text: "opens a file", Answer: Head{}, Post: s.openPage},
	)
}

// AnswerRoutes returns the pages about the open recording.
func (s *Recordings) AnswerRoutes() []admin.Route {
	return answerRoutes("", func(_ context.Context, _ url.Values, answer func(*Recording) (any, error)) (any, error) {
		return s.use(answer)
	})
}

// answerRoutes returns the pages about a recording, which use passes to a function. which is the
// parameter that selects it, as an example; empty: none.
func answerRoutes(which string, use func(context.Context, url.Values, func(*Recording) (any, error)) (any, error)) []admin.Route {
	of := func(answer func(context.Context, *Recording, *params) (any, error)) func(context.Context, url.Values) (any, error) {
		return func(ctx context.Context, v url.Values) (any, error) {
			p := &params{values: v}
			return use(ctx, v, func(r *Recording) (any, error) {
				a, err := answer(ctx, r, p)
				if p.err != nil {
					return nil, p.err
				}
				return a, err
			})
		}
	}
	all := []admin.Route{
		{Path: "/api/recording", Text: "the open recording: game, classes, known ticks, outcome", Answer: Head{}, Read: of(headPage)},
		{Path: "/api/recording/ticks", Query: "?from=1&to=600&rows=1000", Text: "counts of the ticks, and lanes of the clients", Answer: TicksAnswer{}, Read: of(ticksPage)},
		{Path: "/api/recording/state", Query: "?tick=60&class=ship&after=17.3", Text: "the objects as of a tick", Answer: StateAnswer{}, Read: of(statePage)},
		{Path: "/api/recording/diff", Query: "?tick=60&with=1", Text: "what a tick has changed, or the difference from another one", Answer: DiffAnswer{}, Read: of(diffPage)},
		{Path: "/api/recording/messages", Query: "?tick=60", Text: "messages and inputs of a tick", Answer: MessagesAnswer{}, Read: of(messagesPage)},
		{Path: "/api/recording/find", Query: "?q=ship[17.3].Shield == 0&from=1&to=600", Text: "the ticks in which a field gets a value", Answer: FindAnswer{}, Read: of(findPage)},
	}
	for i := range all {
		if q := &all[i].Query; which != "" {
			*q = "?" + strings.TrimSuffix(which+"&"+strings.TrimPrefix(*q, "?"), "&")
		}
	}
	return all
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
	Files []FileRow `json:"files"` // the newest first
	More  int       `json:"more"`  // files that are not listed
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

// List returns the entries of /api.
func (s *Recordings) List() []admin.Listed {
	all := append(admin.List(s.Routes()), admin.Listed{Method: http.MethodPost, Path: ReceivePath, Query: "?name=run.rec", Text: "opens the recording in the body", Fields: apidoc.Fields(Head{})})
	for i := range all {
		all[i].Role = "none"
	}
	return all
}

// Handler serves all pages, for clients of this machine. / and /api list them.
func (s *Recordings) Handler() *http.ServeMux {
	mux := http.NewServeMux()
	for _, r := range s.Routes() {
		if r.Post != nil {
			mux.HandleFunc("POST "+r.Path, admin.Ask(r.Post))
		} else {
			mux.HandleFunc("GET "+r.Path, admin.Ask(r.Read))
		}
	}
	mux.HandleFunc("POST "+ReceivePath, s.Receive)
	all := s.List()
	index := admin.Index("netloop inspect", all)
	mux.HandleFunc("GET /api", admin.Ask(func(context.Context, url.Values) (any, error) { return all, nil }))
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, index) // the client may have disconnected
	})
	return mux
}
