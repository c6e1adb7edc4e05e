package netloop

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/netloop/netloop/internal/admin"
	"github.com/netloop/netloop/internal/net/admission"
	"github.com/netloop/netloop/internal/net/origin"
	"github.com/netloop/netloop/internal/net/wsnet"
	"github.com/netloop/netloop/internal/room"
)

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
		{Path: "/api/methods", Query: "?room=lobby", Text: "the declared messages and their types, for forms", Read: s.methodsPage},
		{Path: "/api/payloads", Query: "?room=lobby&method=chat", Text: "the last messages of a method with their outcomes, while somebody asks; with the role write only", Read: s.payloadsPage},
		{Path: "/api/client/open", Query: "?room=lobby&host=127.0.0.1:8080", Text: "lets a page of a host join as a client: the answer is that of /connect.json, with the path of a WebSocket", Act: s.openClientPage(controller, keys)},
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
	Tick     uint64         `json:"tick"`
	Method   string         `json:"method"`
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
