package netloop

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/netloop/netloop/internal/admin"
)

// The past ticks of running rooms, which the inspector shows as it shows a recording.

// keepTicks begins to keep the ticks of a room that has run none, with Config.InspectRing.
func (s *Server) keepTicks(r *Room) {
	if s.rings != nil {
		head, err := r.head()
		if err != nil { // The ticks can be shown, but a file of them cannot be opened.
			s.log.Warn("the kept ticks of a room cannot be saved", "room", r.spec.Name, "error", err)
		}
		head.Seed = 0 // The seed of a running room stays secret.
		r.ring = s.rings.Open(r.e, head)
	}
}

// keptRoutes returns the pages of past ticks.
func (s *Server) keptRoutes() []admin.Route {
	all := []admin.Route{{Path: "/api/recording/last", Query: "?room=lobby", Text: "takes the past ticks of a room that are in memory, for the pages of /api/recording", Act: s.lastTicksPage, ByReaders: true}}
	all = append(all, admin.Route{Path: "/api/recording/file", Text: "these ticks as a file, for server inspect", Page: http.HandlerFunc(s.keptFile), ByWriters: true})
	for _, r := range s.kept.AnswerRoutes() {
		all = append(all, admin.Route{Path: r.Path, Query: r.Query, Text: r.About, Read: r.Page})
	}
	return all
}

// keptFileTimeout bounds the download of kept ticks, which have some MiB.
const keptFileTimeout = time.Minute

// keptFile answers /api/recording/file.
func (s *Server) keptFile(w http.ResponseWriter, _ *http.Request) {
	_ = http.NewResponseController(w).SetWriteDeadline(s.clock.Wall().Add(keptFileTimeout))
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", "attachment; filename=ticks.rec")
	err := s.kept.Export(w)
	var refusal *admin.Refusal
	switch {
	case errors.As(err, &refusal): // Nothing has been written.
		w.Header().Del("Content-Disposition")
		http.Error(w, refusal.Text, refusal.Status)
	case err != nil: // The client sees that the file is truncated.
		s.log.Warn("the kept ticks were not sent", "error", err)
	}
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
