package netloop

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/netloop/netloop/internal/admin"
	"github.com/netloop/netloop/internal/directory"
	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/metrics"
	"github.com/netloop/netloop/internal/metrics/ticks"
	"github.com/netloop/netloop/internal/net/admission"
	"github.com/netloop/netloop/internal/netem"
	"github.com/netloop/netloop/internal/netvar/state"
	"github.com/netloop/netloop/internal/room"
	"github.com/netloop/netloop/internal/slowtick"
	"github.com/netloop/netloop/internal/transport"
)

// listenAdmin opens the admin listener with the server's pages.
func (s *Server) listenAdmin(controller *admission.Controller) (*admin.Server, error) {
	var tokens *admin.Tokens
	if s.cfg.AdminTokenFile != "" {
		var err error
		if tokens, err = admin.OpenTokens(s.cfg.AdminTokenFile, s.log); err != nil {
			return nil, fmt.Errorf("netloop: AdminTokenFile: %w", err)
		}
	}
	a, err := admin.Listen(admin.Config{
		Listen:   s.cfg.Admin,
		Tokens:   tokens,
		Counts:   &s.adminCounts,
		Routes:   slices.Concat(s.routes(), s.inspectorRoutes(), s.playgroundRoutes(controller)),
		Topics:   s.topics(),
		Progress: s.progress,
		Ready:    s.readiness,
		Health:   s.health,
		Log:      s.log,
	})
	if err != nil {
		s.closeTabSockets()
	}
	switch {
	case errors.Is(err, admin.ErrOpen):
		return nil, fmt.Errorf("netloop: Admin: %w: set AdminTokenFile, or use an address of this machine alone such as 127.0.0.1:8080", err)
	case err != nil:
		return nil, fmt.Errorf("netloop: Admin: %w", err)
	}
	if s.origins != nil {
		s.origins.Serves("http", a.Addr()) // The playground joins over WebTransport too.
	}
	return a, nil
}

// page answers one of the pages without a listener, for tests.
func (s *Server) page(ctx context.Context, path string, query url.Values) (any, error) {
	for _, r := range slices.Concat(s.routes(), s.inspectorRoutes(), s.playgroundRoutes(nil)) {
		switch {
		case r.Path != path:
		case r.Read != nil:
			return r.Read(ctx, query)
		case r.Act != nil:
			return r.Act(ctx, query)
		}
	}
	return nil, fmt.Errorf("netloop: there is no page %q", path)
}

// routes returns the pages of the admin listener.
func (s *Server) routes() []admin.Route {
	return []admin.Route{
		{Path: "/metrics", Text: "Prometheus metrics", Page: s.metrics.Handler(s.log)},
		{Path: "/ticks", Query: "?room=lobby", Text: "exact tick counts since the start of all rooms; with room= the row of that room in /rooms", Answer: ticks.Snapshot{}, Read: s.ticksPage},
		{Path: "/ticks/slow", Query: "?room=lobby", Text: "the slowest ticks of the last hour: stages, systems, queues, GC", Answer: slowtick.Report{}, Read: s.slowPage, Large: true},
		{Path: "/ticks/last", Query: "?room=lobby&after=100", Text: "the last 600 ticks, or those after a tick, likewise", Answer: slowtick.Report{}, Read: s.lastPage, Large: true},
		{Path: "/loop", Query: "?room=lobby", Text: "the systems of every stage: order, period, cost, state", Answer: loop.View{}, Read: s.loopPage},
		{Path: "/rooms", Query: "?kind=table&sort=late&offset=0&limit=100", Text: "the rooms: clients, seats, rate, ticks", Answer: directory.Page{}, Read: s.roomsPage},
		{Path: "/explain", Query: "?room=lobby&client=1&object=17.3&field=Pos.X", Text: "why the client was sent the value, or was not; without a client the clients, without an object the objects (of class=): then the answer has ask", Answer: struct {
			explainAnswer
			explainList
		}{}, Read: s.explainPage},
		{Path: "/rooms/close", Query: "?room=table-7&drain=30s&text=...", Text: "closes a room", Act: s.closePage},
	}
}

// progress returns the time since the default room's last tick ended, and its tick period, for
// /healthz. A room that ends runs no more ticks while it finishes its work and saves its state:
// during that time, at most WorkGrace + SaveTimeout, progress returns 0.
func (s *Server) progress() (since, period time.Duration) {
	since, period = s.room.e.Stats.Progress()
	if saving, ends := s.room.e.Shutdown.Finishing(); ends && saving < room.WorkGrace+room.SaveTimeout {
		return 0, period
	}
	return since, period
}

// health returns the watchdog's error if the default room hangs, or nil. The note has the number of
// quarantined systems. They do not fail the check, because they recover by themselves, and a
// restart of the process would end the game of every player. A system that the game needs is
// Critical, and ends the server.
func (s *Server) health() (note string, err error) {
	if n := s.quarantined(); n > 0 {
		note = fmt.Sprintf("systems in quarantine after repeated panics: %d", n)
	}
	return note, s.room.e.Watchdog().Err()
}

// Health returns nil while ticks run. It returns an error if the process should be restarted: no
// tick of the default room has ended for 2 s, or 10 periods if that is longer, or the watchdog sees
// one hang. It depends on the ticks alone, and is the answer of /healthz. Any goroutine may call
// it.
func (s *Server) Health() error {
	if _, err := s.health(); err != nil {
		return fmt.Errorf("netloop: %w", err)
	}
	if err := admin.Stalled(s.progress()); err != nil {
		return fmt.Errorf("netloop: %w", err)
	}
	return nil
}

// Ready returns nil while clients may join, and otherwise an error with the reason: the server is
// starting, full, overloaded or closing, or a tick hangs. It is the answer of /readyz. Any
// goroutine may call it.
func (s *Server) Ready() error {
	if _, err := s.readiness(); err != nil {
		return fmt.Errorf("netloop: %w", err)
	}
	return nil
}

// quarantined returns the number of quarantined systems of all rooms.
func (s *Server) quarantined() (n int) {
	for _, r := range s.rooms.All() {
		n += r.Quarantined()
	}
	return n
}

// readiness returns the reason why clients cannot connect, or nil. The note warns if no tokens are
// required.
func (s *Server) readiness() (note string, err error) {
	hung := s.room.e.Watchdog().Err()
	switch {
	case hung != nil:
		return "", hung
	case s.draining.Load():
		return "", errors.New("the server is closing")
	case !s.ready.Load():
		return "", errors.New("the server is starting")
	case s.room.Overload() >= OverloadRefusing:
		return "", errors.New("the server is overloaded")
	case s.room.full():
		return "", errors.New("the room is full")
	}
	if _, _, open := s.cfg.open(); open {
		note = "every client is admitted: no tokens are required (insecure)"
	}
	if s.member != nil {
		if h := s.member.Health(); !h.OK {
			note = strings.TrimPrefix(note+"; the cluster does not answer: "+h.Text, "; ")
		}
	}
	return note, nil
}

// serverMetrics implements metrics.Server.
type serverMetrics struct{ s *Server }

func (m serverMetrics) Traffic() *transport.Stats { return m.s.transport }

func (m serverMetrics) SocketCalls(f *metrics.Family) {
	f.Set(m.s.socket.Receives.Load(), "in")
	f.Set(m.s.socket.Sends.Load(), "out")
}

func (m serverMetrics) SocketPackets(f *metrics.Family) {
	s := &m.s.socket
	f.Set(s.Received.Load(), "in", "moved")
	f.Set(s.Sent.Load(), "out", "moved")
	f.Set(s.TooLarge.Load(), "out", "too_large")
	f.Set(s.Unsent.Load(), "out", "refused")
	f.Set(s.Full.Load(), "out", "full")
}

// Records implements metrics.Server.
func (m serverMetrics) Records(f *metrics.Family) {
	s := &m.s.records
	f.Set(s.Sent.Load(), "out", "sealed")
	f.Set(s.Unsent.Load(), "out", "unsent")
	f.Set(s.Received.Load(), "in", "opened")
	f.Set(s.Unknown.Load(), "in", "unknown")
	f.Set(s.Invalid.Load(), "in", "invalid")
	f.Set(s.Forged.Load(), "in", "forged")
	f.Set(s.Throttled.Load(), "in", "throttled")
}

// RecordPaths implements metrics.Server.
func (m serverMetrics) RecordPaths(f *metrics.Family) {
	s := &m.s.records
	f.Set(s.Begins.Load(), "begun")
	f.Set(s.Returns.Load(), "returned")
	f.Set(s.Moves.Load(), "moved")
}

// RecordClients implements metrics.Server.
func (m serverMetrics) RecordClients(f *metrics.Family) {
	f.Set(uint64(max(m.s.records.Active.Load(), 0)))
}

func (m serverMetrics) SocketRetries(f *metrics.Family) { f.Set(m.s.socket.Retries.Load()) }

// Overload implements metrics.Server.
func (m serverMetrics) Overload(f *metrics.Family) {
	f.Set(uint64(m.s.overloaded().Overload()))
}

// overloaded returns the most overloaded room, the default one if none is.
func (s *Server) overloaded() *Room {
	most := s.room
	for _, r := range s.rooms.All() {
		if r.Overload() > most.Overload() {
			most = r
		}
	}
	return most
}

// Quarantined implements metrics.Server.
func (m serverMetrics) Quarantined(f *metrics.Family) { f.Set(uint64(m.s.quarantined())) }

func (m serverMetrics) TimeScale(f *metrics.Family)   { f.SetFloat(m.s.room.e.Scale.Speed()) }
func (m serverMetrics) LogsDropped(f *metrics.Family) { f.Set(m.s.cfg.LogsDropped()) }

func (m serverMetrics) Simulated(f *metrics.Family) {
	if m.s.network == nil {
		return
	}
	m.s.network.Stats.Each(func(d netem.Direction, fate netem.Fate, n uint64) { f.Set(n, d.String(), fate.String()) })
}

func (m serverMetrics) Traces(f *metrics.Family) {
	if m.s.traces == nil {
		return
	}
	written, skipped, failed := m.s.traces.Counts()
	f.Set(written, "written")
	f.Set(skipped, "skipped")
	f.Set(failed, "failed")
}

func (m serverMetrics) AdminRefusals(f *metrics.Family) {
	c := &m.s.adminCounts
	f.Set(c.Host.Load(), "host")
	f.Set(c.Token.Load(), "token")
	f.Set(c.Busy.Load(), "busy")
	f.Set(c.Conns.Load(), "connection")
	f.Set(c.Slow.Load(), "slow")
}

// The answers of the admin listener about rooms.

// queriedRoom returns the room that the parameter room of a query names, or the default room if the
// query has no such parameter. An unknown name is an admin.Refusal.
func (s *Server) queriedRoom(query url.Values) (*Room, error) {
	if !query.Has("room") {
		return s.room, nil
	}
	name := query.Get("room")
	r, ok := s.rooms.Get(name)
	if !ok {
		return nil, admin.Refuse(http.StatusNotFound, "there is no room %.300q: /rooms lists them", name)
	}
	return r, nil
}

// loopPage answers /loop.
func (s *Server) loopPage(ctx context.Context, query url.Values) (any, error) {
	r, err := s.queriedRoom(query)
	if err != nil {
		return nil, err
	}
	return r.e.Questions.AskView(ctx)
}

// ticksPage answers /ticks with the tick counts of all rooms together, or with room= by the room's
// row of /rooms.
func (s *Server) ticksPage(_ context.Context, query url.Values) (any, error) {
	if !query.Has("room") {
		return s.metrics.Ticks(), nil
	}
	r, err := s.queriedRoom(query)
	if err != nil {
		return nil, err
	}
	return r.row(s.clock.Now()), nil
}

// maxWatched limits the rooms, besides the default room, with a log of ticks for a reader of the
// pages. Each log takes 2 MiB.
const maxWatched = 16

// ticksOf returns the log of ticks of the room that a query names.
func (s *Server) ticksOf(query url.Values) (*slowtick.Log, error) {
	r, err := s.queriedRoom(query)
	if err != nil {
		return nil, err
	}
	s.watching.Lock()
	defer s.watching.Unlock()
	if r.e.Stats.Slow() == nil {
		watched := 0
		for _, other := range s.rooms.All() {
			if other != s.room && other.e.Stats.Slow() != nil {
				watched++
			}
		}
		if watched >= maxWatched {
			return nil, admin.Refuse(http.StatusServiceUnavailable, "the ticks of %d rooms are watched, which is the limit: try again in a minute", maxWatched)
		}
	}
	return r.e.Stats.Watch(), nil
}

// slowPage answers /ticks/slow.
func (s *Server) slowPage(_ context.Context, query url.Values) (any, error) {
	log, err := s.ticksOf(query)
	if err != nil {
		return nil, err
	}
	return log.Worst(), nil
}

// lastPage answers /ticks/last.
func (s *Server) lastPage(_ context.Context, query url.Values) (any, error) {
	log, err := s.ticksOf(query)
	if err != nil {
		return nil, err
	}
	after, err := number(query, "after", 0)
	if err != nil {
		return nil, err
	}
	return log.After(after), nil
}

// roomsPage answers /rooms.
func (s *Server) roomsPage(_ context.Context, query url.Values) (any, error) {
	q, err := directory.ParseQuery(query)
	if err != nil {
		return nil, &admin.Refusal{Status: http.StatusBadRequest, Text: err.Error()}
	}
	all, now := s.rooms.All(), s.clock.Now()
	rows := make([]directory.Row, len(all))
	for i, r := range all {
		rows[i] = r.row(now)
	}
	return q.Select(rows), nil
}

// row returns the room's row of /rooms, at the time now of the server's clock. Any goroutine may
// call it.
func (r *Room) row(now time.Duration) directory.Row {
	f := r.e.Stats.Figures()
	return directory.Row{
		Name: r.spec.Name, Kind: r.spec.Kind, State: r.state(), Clients: f.Clients, Seats: r.e.Admission.Seats(), Max: r.spec.MaxClients, Locked: r.Locked(),
		Rate:  float64(r.spec.Rate.Num) / float64(r.spec.Rate.Den),
		Ticks: f.Ticks, Overruns: f.Overruns, Dropped: f.Dropped, TickP50: f.P50, TickP99: f.P99, LateP99: f.LateP99,
		Age: now - r.opened,
	}
}

// state returns the room's state for an operator. Any goroutine may call it.
func (r *Room) state() string {
	switch {
	case r.e.Watchdog().Err() != nil:
		return directory.StateHung
	case r.e.Admission.Closing():
		return directory.StateClosing
	}
	return directory.StateOpen
}

// maxRoomDrain bounds an operator's drain: a longer time has probably a wrong unit.
const maxRoomDrain = 24 * time.Hour

// closePage closes the room that a query names. It refuses to close the default room, because that
// would end the server, and an operator with access to rooms may lack the right to end the server.
func (s *Server) closePage(_ context.Context, query url.Values) (string, error) {
	refuse := func(status int, format string, a ...any) (string, error) {
		return "", admin.Refuse(status, format, a...)
	}
	if !query.Has("room") {
		return refuse(http.StatusBadRequest, "room: give the name of a room, as /rooms lists them")
	}
	r, err := s.queriedRoom(query)
	if err != nil {
		return "", err
	}
	if r == s.room {
		return refuse(http.StatusConflict, "this is the default room, which ends with the server: end that instead")
	}
	var drain time.Duration
	if query.Has("drain") {
		if drain, err = time.ParseDuration(query.Get("drain")); err != nil || drain < 0 || drain > maxRoomDrain {
			return refuse(http.StatusBadRequest, "drain: %.40q cannot be used: give a time such as 30s, at most %v", query.Get("drain"), maxRoomDrain)
		}
	}
	text := query.Get("text")
	if text == "" {
		text = "closed by the operator"
	}
	if err := s.CloseRoom(r.spec.Name, drain, CodeClosing, text); err != nil {
		return refuse(http.StatusNotFound, "the room has ended meanwhile")
	}
	return fmt.Sprintf("the room %q closes in %v", r.spec.Name, drain), nil
}

// explainAnswer is the answer of /explain: an Explanation and its sentence.
type explainAnswer struct {
	Explanation
	Text string `json:"text"` // the explanation as a sentence
}

// explainList is the answer of /explain to an incomplete query: the next step, and the candidates.
// More is the number of candidates that are not listed.
type explainList struct {
	Ask     string          `json:"ask"`               // the parameter to add next
	Clients []explainClient `json:"clients,omitempty"` // clients to choose from
	Objects []explainObject `json:"objects,omitempty"` // objects to choose from
	More    int             `json:"more"`
}

type explainClient struct {
	Client  ClientID `json:"client"`  // id of the client
	Subject string   `json:"subject"` // set by admission
	Addr    string   `json:"addr"`    // IP address and port
}

type explainObject struct {
	Object string   `json:"object"` // id: slot and generation, such as 17.3
	Class  string   `json:"class"`  // class of the object
	Owner  ClientID `json:"owner"`  // client that owns it; 0: none
}

const (
	// maxListed bounds the clients or objects in an explainList; a longer page is hard to read.
	maxListed = 1000
	// maxSubject bounds the Subject of a listed client, in bytes: a game may set any text.
	maxSubject = 64
)

// explainPage answers /explain: with room, client, object and field by the result of
// Object.Explain, without a client by a list of clients, without an object by a list of objects.
func (s *Server) explainPage(ctx context.Context, query url.Values) (any, error) {
	r, err := s.queriedRoom(query)
	if err != nil {
		return nil, err
	}
	if !query.Has("client") {
		return r.e.Questions.Ask(ctx, func(uint64) any { return r.listClients() })
	}
	client, err := strconv.ParseUint(query.Get("client"), 10, 64)
	if err != nil {
		return nil, &admin.Refusal{Status: http.StatusBadRequest, Text: "client: give the number of a client, as in /explain?client=1&object=17.3&field=Pos.X; without it all clients are listed"}
	}
	id, ok := state.ParseID(query.Get("object"))
	if !ok && query.Has("object") {
		return nil, &admin.Refusal{Status: http.StatusBadRequest, Text: "object: give slot and generation, such as 17.3; without it all objects are listed"}
	}
	v, err := r.e.Questions.Ask(ctx, func(uint64) any {
		c, ok := r.e.Client(client)
		if !ok {
			return &admin.Refusal{Status: http.StatusNotFound, Text: fmt.Sprintf("there is no client %d; %s", client, r.someClients())}
		}
		if !query.Has("object") {
			return r.listObjects(query.Get("class"))
		}
		return r.explainTo(clientOf(c), id, query.Get("field"))
	})
	if refusal, ok := v.(*admin.Refusal); ok {
		return nil, refusal
	}
	return v, err
}

// maxNamed bounds the client ids in the refusal of an unknown client= of /explain.
const maxNamed = 20

// someClients returns a text with the ids of the room's clients.
func (r *Room) someClients() string {
	list := r.e.Clients()
	if len(list) == 0 {
		return "there is none at all"
	}
	var b strings.Builder
	b.WriteString("there are")
	for _, c := range list[:min(len(list), maxNamed)] {
		fmt.Fprintf(&b, " %d", c.ID())
	}
	if more := len(list) - maxNamed; more > 0 {
		fmt.Fprintf(&b, " and %d more", more)
	}
	return b.String()
}

// explainTo returns the explainAnswer for a client and a field of an object, or an *admin.Refusal.
func (r *Room) explainTo(c *Client, id state.ID, field string) any {
	o, ok := r.e.World().Get(id)
	if !ok {
		return &admin.Refusal{Status: http.StatusNotFound, Text: fmt.Sprintf("there is no object %v: it is despawned, or never was", id)}
	}
	x, err := r.explain(c, o, field)
	if err != nil {
		return &admin.Refusal{Status: http.StatusNotFound, Text: err.Error()}
	}
	return explainAnswer{x, x.String()}
}

func (r *Room) listClients() explainList {
	all := r.e.Clients()
	page := explainList{Ask: "no client has joined yet", More: max(0, len(all)-maxListed)}
	for i, c := range all[:min(len(all), maxListed)] {
		if i == 0 {
			page.Ask = fmt.Sprintf("name one of them: add client=%d to the query, and then an object and a field of it, for the reason why the client was sent the value, or was not", c.ID())
		}
		page.Clients = append(page.Clients, explainClient{ClientID(c.ID()), listedSubject(c.Join().Subject), c.Join().Addr})
	}
	return page
}

// listedSubject returns a subject for a list, cut to maxSubject.
func listedSubject(name string) string {
	if len(name) > maxSubject {
		return strings.ToValidUTF8(name[:maxSubject], "") + "…"
	}
	return name
}

// listObjects returns the explainList of the objects of the class only, or of all classes if only
// is empty. For an unknown class it returns an *admin.Refusal.
func (r *Room) listObjects(only string) any {
	page := explainList{Ask: "no object has been spawned yet"}
	known := only == ""
	for _, class := range r.schema.classes {
		name := class.nv.Name()
		if only != "" && name != only {
			continue
		}
		known = true
		page.More += r.e.World().Len(class.nv)
		for o := range r.e.World().All(class.nv) {
			if len(page.Objects) == maxListed {
				break
			}
			page.Objects = append(page.Objects, explainObject{o.ID().String(), name, ClientID(o.Owner())})
			page.More--
		}
	}
	if !known {
		return &admin.Refusal{Status: http.StatusNotFound, Text: fmt.Sprintf("there is no class %.64q", only)}
	}
	if len(page.Objects) > 0 {
		page.Ask = fmt.Sprintf("name one of them: add object=%s to the question, and field= with one of its fields or a struct of them; class= lists those of one class", page.Objects[0].Object)
	}
	return page
}
