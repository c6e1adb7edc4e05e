package netloop

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/netloop/netloop/internal/admin"
	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/inspect"
	"github.com/netloop/netloop/internal/net/admission"
	"github.com/netloop/netloop/internal/net/origin"
	"github.com/netloop/netloop/internal/net/wsnet"
	"github.com/netloop/netloop/internal/netvar/interest"
	"github.com/netloop/netloop/internal/netvar/state"
	"github.com/netloop/netloop/internal/room"
	"github.com/netloop/netloop/internal/rpcqueue"
	"github.com/netloop/netloop/internal/schema"
	"github.com/netloop/netloop/internal/web"
)

// maxRows limits the objects of an answer. The room describes them between two ticks, and each
// takes some 2 µs.
const maxRows = 250

// stateAnswer is the answer of /api/state. More is the number of matching objects that are not
// listed.
type stateAnswer struct {
	Tick    uint64         `json:"tick"`    // of the last capture
	Objects []objectRow    `json:"objects"` // by class and slot
	More    int            `json:"more"`
	Grids   []inspect.Grid `json:"grids"` // of classes with a position on the map
}

// objectRow is an object with the values of the last capture and, for a query with a client, the
// client's copy of it.
type objectRow struct {
	inspect.Object
	Changed      uint64          `json:"changed"`      // tick of the last change
	Weight       float64         `json:"weight"`       // weight of the class
	Shown        bool            `json:"shown"`        // the client has it, or will be sent it
	Acknowledged uint64          `json:"acknowledged"` // tick of its newest acknowledged version
	Copy         json.RawMessage `json:"copy"`         // values of that version, or null
}

// classesPage answers /api/classes.
func (s *Server) classesPage(context.Context, url.Values) (any, error) {
	return inspect.Classes(s.schema.s.AllClasses()), nil
}

// stateQuery is a parsed query of /api/state.
type stateQuery struct {
	class  string
	find   string
	owned  bool // find is owner=3
	owner  uint64
	client uint64
	whole  bool // includes the fields with a read rule
	after  state.ID
}

// statePage answers /api/state.
func (s *Server) statePage(ctx context.Context, query url.Values) (any, error) {
	r, err := s.queriedRoom(query)
	if err != nil {
		return nil, err
	}
	q := stateQuery{class: query.Get("class"), find: strings.ToLower(query.Get("find")), whole: admin.MayWrite(ctx)}
	if owner, ok := strings.CutPrefix(q.find, "owner="); ok {
		if q.owner, err = strconv.ParseUint(owner, 10, 64); err != nil {
			return nil, admin.Refuse(http.StatusBadRequest, "find: %.40q names no owner: give the number of a client, such as owner=3", q.find)
		}
		q.owned = true
	}
	if q.client, err = number(query, "client", 0); err != nil {
		return nil, err
	}
	if query.Has("after") {
		var ok bool
		if q.after, ok = state.ParseID(query.Get("after")); !ok {
			return nil, admin.Refuse(http.StatusBadRequest, "after: give slot and generation of an object, such as 17.3")
		}
	}
	if q.class != "" && !r.hasClass(q.class) {
		return nil, admin.Refuse(http.StatusNotFound, "there is no class %.64q: /api/classes lists them", q.class)
	}
	search := stateSearch{r: r, q: &q}
	v, err := r.e.Questions.AskParts(ctx, func(_ uint64, left func() bool) (any, bool) { return search.run(left) })
	if refusal, ok := v.(*admin.Refusal); ok {
		return nil, refusal
	}
	return v, err
}

func (r *Room) hasClass(name string) bool {
	for _, c := range r.schema.classes {
		if c.nv.Name() == name {
			return true
		}
	}
	return false
}

// stateSearch finds the objects that match a query, over several ticks if there are many. It runs
// on the room's goroutine.
type stateSearch struct {
	r     *Room
	q     *stateQuery
	class int // index of the class that is searched
	slot  int // from which on
	found []state.ID
	more  int
	text  []byte // scratch of matches
}

// searchAtOnce is the number of objects searched between two reads of the clock: some 10 µs.
const searchAtOnce = 256

// run continues the search, and describes the found objects when it is complete: all of them as of
// one capture.
func (s *stateSearch) run(left func() bool) (answer any, done bool) {
	for ; s.class < len(s.r.schema.classes); s.class, s.slot = s.class+1, 0 {
		c := s.r.schema.classes[s.class].nv
		if s.q.class != "" && c.Name() != s.q.class {
			continue
		}
		whole, looked := s.q.matchesClass(c), 0
		for o := range s.r.e.World().AllFrom(c, max(s.slot, s.q.after.Slot())) {
			if looked++; looked%searchAtOnce == 0 && !left() {
				s.slot = o.Slot()
				return nil, false
			}
			switch {
			case o.ID() <= s.q.after || !o.Published() || !(whole || s.matches(o)):
			case len(s.found) == maxRows:
				s.more++
			default:
				s.found = append(s.found, o.ID())
			}
		}
	}
	if !left() {
		return nil, false
	}
	return s.answer(), true
}

// matchesClass reports whether the search text matches all objects of a class.
func (q *stateQuery) matchesClass(c *state.Class) bool {
	return strings.Contains(strings.ToLower(c.Name()), q.find)
}

// matches reports whether the search text names the object's owner, or is part of its id.
func (s *stateSearch) matches(o *state.Object) bool {
	if s.q.owned {
		return o.Owner() == s.q.owner
	}
	s.text = o.ID().Append(s.text[:0])
	return strings.Contains(string(s.text), s.q.find)
}

// answer describes the found objects that are still alive.
func (s *stateSearch) answer() any {
	var client *room.Client
	if s.q.client != 0 {
		var ok bool
		if client, ok = s.r.e.Client(s.q.client); !ok {
			return &admin.Refusal{Status: http.StatusNotFound, Text: fmt.Sprintf("there is no client %d; %s", s.q.client, s.r.someClients())}
		}
	}
	a := stateAnswer{Tick: s.r.e.Captured(), Objects: []objectRow{}, More: s.more, Grids: s.r.gridsOnMap(client, s.q.whole)}
	for _, id := range s.found {
		if o, ok := s.r.e.World().Get(id); ok {
			a.Objects = append(a.Objects, objectRowOf(s.r.schema.classes[o.Class().Index()], o, client, s.q.whole))
		}
	}
	return a
}

func objectRowOf(class *class, o *state.Object, client *room.Client, whole bool) objectRow {
	c, withheld := o.Class(), state.Rules(0)
	if !whole {
		withheld = c.AllRules()
	}
	values := func(v codec.Values) json.RawMessage { return c.AppendJSON(nil, &v, withheld) }
	row := objectRow{
		Object:  inspect.Object{ID: o.ID().String(), Class: c.Name(), Owner: o.Owner(), Values: values(o.Hist.Newest())},
		Changed: o.Changed(), Weight: class.weight,
	}
	if client == nil {
		return row
	}
	row.Shown = client.Peer().Shows(o)
	if copied, tick, ok := client.Peer().Acknowledged(o); ok {
		row.Acknowledged = tick
		hidden := withheld | client.Peer().View(o.Slot()).Withheld
		row.Copy = c.AppendJSON(nil, &copied, hidden)
	}
	return row
}

// maxCosts is the number of objects that /api/costs lists.
const maxCosts = 10

// costsPage answers /api/costs.
func (s *Server) costsPage(ctx context.Context, query url.Values) (any, error) {
	r, err := s.queriedRoom(query)
	if err != nil {
		return nil, err
	}
	second := float64(r.spec.Rate.Num) / float64(r.spec.Rate.Den)
	return r.e.Questions.Ask(ctx, func(tick uint64) any {
		list, all, ticks := r.e.World().Costliest(maxCosts, uint64(max(1, second)))
		a := inspect.Costs{Tick: tick, Seconds: r.seconds(ticks), Bytes: all, Objects: make([]inspect.Cost, len(list))}
		for i, c := range list {
			o := c.Object
			a.Objects[i] = inspect.Cost{ID: o.ID().String(), Class: o.Class().Name(), Owner: o.Owner(), Bytes: c.Bytes, Records: c.Records, Fulls: c.Fulls}
		}
		return a
	})
}

// seconds returns the length of a number of ticks.
func (r *Room) seconds(ticks uint64) float64 {
	return float64(ticks) * float64(r.spec.Rate.Den) / float64(r.spec.Rate.Num)
}

// waitsPage answers /api/waits.
func (s *Server) waitsPage(ctx context.Context, query url.Values) (any, error) {
	r, err := s.queriedRoom(query)
	if err != nil {
		return nil, err
	}
	return r.e.Questions.Ask(ctx, func(tick uint64) any {
		list, ticks := r.e.Messages.WatchWaits()
		a := inspect.Waits{Tick: tick, Seconds: r.seconds(ticks), Methods: make([]inspect.Wait, len(list))}
		for i, w := range list {
			a.Methods[i] = inspect.Wait{Method: w.Method.Name, Count: w.Count, Sum: w.Sum, Max: w.Max}
		}
		return a
	})
}

// trafficPage answers /api/clients/traffic.
func (s *Server) trafficPage(ctx context.Context, query url.Values) (any, error) {
	r, err := s.queriedRoom(query)
	if err != nil {
		return nil, err
	}
	id, err := number(query, "client", 0)
	if err != nil {
		return nil, err
	}
	v, err := r.e.Questions.Ask(ctx, func(tick uint64) any {
		c, ok := r.e.Client(id)
		if !ok {
			return admin.Refuse(http.StatusNotFound, "there is no client %d; %s", id, r.someClients())
		}
		t, ok := r.e.Follow(c)
		if !ok {
			return admin.Refuse(http.StatusServiceUnavailable, "the traffic of too many clients is counted: try again in ten seconds")
		}
		return r.trafficOf(id, tick, &t)
	})
	if refusal, ok := v.(error); ok {
		return nil, refusal
	}
	return v, err
}

func (r *Room) trafficOf(client, tick uint64, t *room.Traffic) inspect.Traffic {
	a := inspect.Traffic{Tick: tick, Client: client, Seconds: r.seconds(tick - t.Began), Classes: []inspect.ClassTraffic{}, Inputs: inspect.Data(t.Inputs), Methods: make([]inspect.MethodTraffic, len(t.Methods))}
	for i, bytes := range t.Records {
		name := "" // of despawns, at the end
		if i < len(t.Records)-1 {
			name = r.schema.s.AllClasses()[i].Name()
		}
		if bytes > 0 {
			a.Classes = append(a.Classes, inspect.ClassTraffic{Class: name, Bytes: bytes})
		}
	}
	for i, m := range t.Methods {
		name := rpcqueue.UnknownName
		if m.Method != nil {
			name = m.Method.Queue.Name
		}
		a.Methods[i] = inspect.MethodTraffic{Method: name, Received: inspect.Data(m.Received), Sent: inspect.Data(m.Sent)}
	}
	return a
}

// gridsOnMap describes the room's grids of classes with a position on the map, with the viewpoints
// of a client unless that is nil. It runs on the room's goroutine. Without whole it leaves out a
// class if a read rule protects its position, because a viewpoint may be the position of such an
// object.
func (r *Room) gridsOnMap(client *room.Client, whole bool) []inspect.Grid {
	grids := []inspect.Grid{}
	for _, space := range r.e.World().Spaces() {
		shape := space.Shape()
		g := inspect.Grid{Classes: []string{}, Eyes: []inspect.Eye{}}
		g.Cell, g.Inside, g.Border = shape.Measures()
		axes := [2]int{0, 1}
		for _, c := range r.schema.classes {
			if !space.Holds(c.nv) || !mayShowOnMap(c.nv, whole) {
				continue
			}
			if g.Classes = append(g.Classes, c.nv.Name()); len(g.Classes) == 1 {
				axes = r.axesOf(space, c.nv)
			}
		}
		if len(g.Classes) == 0 {
			continue
		}
		if client != nil {
			for _, e := range space.Eyes(&client.Peer().Viewer) {
				at := [3]int32{e.Cell.X, e.Cell.Y, e.Cell.Z}
				eye := inspect.Eye{Cell: [2]int32{at[axes[0]], at[axes[1]]}}
				if e.Object != nil {
					eye.Object = e.Object.ID().String()
				}
				g.Eyes = append(g.Eyes, eye)
			}
		}
		grids = append(grids, g)
	}
	return grids
}

// mayShowOnMap reports whether a class has a position on the map that the request may see.
func mayShowOnMap(c *state.Class, whole bool) bool {
	x, y := c.Map()
	return x != "" && !slices.ContainsFunc(c.DescribeLeaves(), func(l codec.LeafInfo) bool {
		return !whole && l.Read != "" && (l.Name == x || l.Name == y)
	})
}

// axesOf returns which two of a grid's three coordinates are the map's, 0 for x to 2 for z: a grid
// may have X, Y and Z, and the map only X and Z. It compares the grid's positions of the first
// objects with the two fields, and selects the nearest coordinate for each.
func (r *Room) axesOf(space *interest.Space, c *state.Class) [2]int {
	const looks = 8
	var apart [2][3]float64
	onX, onY := c.Map()
	leaves := [2]int{slices.Index(c.LeafNames(), onX), slices.Index(c.LeafNames(), onY)}
	n := 0
	for o := range r.e.World().All(c) {
		if !o.Published() {
			continue
		}
		var values []any
		newest := o.Hist.Newest()
		if json.Unmarshal(c.AppendJSON(nil, &newest, 0), &values) != nil {
			break
		}
		x, y, z := space.Position(o)
		for i, leaf := range leaves {
			v, _ := values[leaf].(float64)
			for axis, at := range [3]float64{x, y, z} {
				apart[i][axis] += math.Abs(at - v)
			}
		}
		if n++; n == looks {
			break
		}
	}
	least := func(of [3]float64, but int) (axis int) {
		if but >= 0 {
			of[but] = math.Inf(1)
		}
		for i, d := range of {
			if d < of[axis] {
				axis = i
			}
		}
		return axis
	}
	first := least(apart[0], -1)
	return [2]int{first, least(apart[1], first)}
}

// The inspector's playground: a tab of the inspector joins as a client, and sends any declared
// message.
//
//	GET  /api/methods      the types of all messages
//	POST /api/client/open  role, origin, audit line ─▶ a key
//	GET  /api/client?key=  a WebSocket ─▶ wsnet.Server ─▶ admission.Controller ─▶ a room
//	topic payloads         the last messages of a method ◀─ room.Messages

// playgroundRoutes returns the pages of the playground. The controller is nil on an offline
// server.
func (s *Server) playgroundRoutes(controller *admission.Controller) []admin.Route {
	keys := new(admin.Keys)
	routes := []admin.Route{
		{Path: "/api/methods", Query: "?room=lobby", Text: "the declared messages and their types, for forms", Answer: schema.Forms{}, Read: s.methodsPage},
		{Path: "/api/payloads", Query: "?room=lobby&method=chat", Text: "the last messages of a method with their outcomes, while somebody asks; with the role write only", Answer: payloadsAnswer{}, Read: s.payloadsPage},
		{Path: "/api/client/open", Query: "?room=lobby&host=127.0.0.1:8080", Text: "lets a page of a host join as a client: the answer is that of /connect.json, with the path of a WebSocket", Answer: web.Connect{}, Act: s.openClientPage(controller, keys)},
	}
	if controller == nil {
		return routes
	}
	all, _ := origin.Parse([]string{origin.Any}) // The admin listener has checked the origin.
	s.tabSockets = wsnet.New(wsnet.Config{Admission: controller, Origins: all, Stats: s.transport, IdleTimeout: s.idle, Take: takeSocket, Through: s.simulatedStream()})
	return append(routes, admin.Route{Path: "/api/client", Query: "?key=...", Text: "that WebSocket", Socket: s.tabSockets, Keys: keys})
}

// closeTabSockets returns when the goroutines of the tabs' clients have ended.
func (s *Server) closeTabSockets() {
	if s.tabSockets != nil {
		s.tabSockets.Close()
	}
}

// methodsPage answers /api/methods.
func (s *Server) methodsPage(_ context.Context, query url.Values) (any, error) {
	r, err := s.queriedRoom(query)
	if err != nil {
		return nil, err
	}
	return s.schema.s.Forms(r.e.Messages.Handles), nil
}

// payloadsAnswer is the answer of /api/payloads.
type payloadsAnswer struct {
	Tick     uint64         `json:"tick"`     // after which the answer was made
	Method   string         `json:"method"`   // the asked method
	Payloads []room.Payload `json:"payloads"` // the newest first
}

// payloadsPage answers /api/payloads.
func (s *Server) payloadsPage(ctx context.Context, query url.Values) (any, error) {
	if !admin.MayWrite(ctx) {
		return nil, admin.Refuse(http.StatusForbidden, "messages are data of players: they need a token with the role write")
	}
	r, err := s.queriedRoom(query)
	if err != nil {
		return nil, err
	}
	m, ok := s.schema.s.MethodNamed(query.Get("method"))
	switch {
	case !ok:
		return nil, admin.Refuse(http.StatusNotFound, "there is no method %.64q: /api/methods lists them", query.Get("method"))
	case m.Secret:
		return nil, admin.Refuse(http.StatusForbidden, "the messages of %.64q are secret: see netloop.Secret", m.Queue.Name)
	}
	v, err := r.e.Questions.Ask(ctx, func(tick uint64) any {
		list, ok := r.e.Messages.WatchPayloads(m)
		if !ok {
			return admin.Refuse(http.StatusServiceUnavailable, "too many methods are watched: try again in a few seconds")
		}
		return payloadsAnswer{Tick: tick, Method: m.Queue.Name, Payloads: append([]room.Payload{}, list...)}
	})
	if refusal, ok := v.(error); ok {
		return nil, refusal
	}
	return v, err
}

// thisMachine begins the address of the game for a page of this machine. Browsers have
// WebTransport on secure pages only, and the listener is not encrypted: from another machine its
// page has none.
const thisMachine = "127.0.0.1:"

// openClientPage answers /api/client/open with the content of /connect.json. The WebSocket is a
// path of this listener. The room in the query is for the log alone.
func (s *Server) openClientPage(controller *admission.Controller, keys *admin.Keys) func(context.Context, url.Values) (string, error) {
	return func(ctx context.Context, query url.Values) (string, error) {
		if controller == nil {
			return "", admin.Refuse(http.StatusConflict, "the server is offline: its clients are in its own process")
		}
		key, err := keys.New()
		if err != nil {
			return "", err
		}
		facts := s.webFacts()
		info := facts.ConnectFor(query.Get("host"), "/api/client?key="+key)
		if !strings.HasPrefix(info.Address, thisMachine) {
			info.Address = ""
		}
		if at, err := netip.ParseAddrPort(admin.From(ctx)); err == nil {
			info.Refused = refusedBy(controller)(net.TCPAddrFromAddrPort(at))
		}
		text, err := json.Marshal(info)
		return string(text), err
	}
}
