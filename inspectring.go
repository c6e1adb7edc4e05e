package netloop

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/netloop/netloop/internal/admin"
)

// The past ticks of running rooms, which the inspector shows as it shows a recording.

// keepTicks begins to keep the ticks of a room that has run none, with Config.InspectRing.
func (s *Server) keepTicks(r *Room) {
	if s.rings != nil {
		r.ring = s.rings.Open(r.e)
	}
}

// keptRoutes returns the pages of past ticks.
func (s *Server) keptRoutes() []admin.Route {
	all := []admin.Route{{Path: "/api/recording/last", Query: "?room=lobby", Text: "takes the past ticks of a room that are in memory, for the pages of /api/recording", Act: s.lastTicksPage, ByReaders: true}}
	for _, r := range s.kept.AnswerRoutes() {
		all = append(all, admin.Route{Path: r.Path, Query: r.Query, Text: r.About, Read: r.Page})
	}
	return all
}

// lastTicksPage answers /api/recording/last.
func (s *Server) lastTicksPage(_ context.Context, query url.Values) (string, error) {
	r, err := s.queriedRoom(query)
	if err != nil {
		return "", err
	}
	if r.ring == nil {
		return "", admin.Refuse(http.StatusNotFound, "no past ticks are kept: start the server with --inspect-ring 60s")
	}
	h, err := s.kept.Keep(r.ring)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("ticks %d to %d are shown", h.First, h.Last), nil
}
