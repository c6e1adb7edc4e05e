package netloop

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"time"

	"github.com/netloop/netloop/internal/admin"
	"github.com/netloop/netloop/internal/tracedump"
)

// The execution traces of slow ticks, which Config.TraceDir has.

// traceList is the answer of /api/traces. A trace also has the ticks of the time before its tick.
type traceList struct {
	Room   string           `json:"room"`
	Covers time.Duration    `json:"covers_ns"`
	Traces []tracedump.File `json:"traces"`
}

// traceRoutes returns the pages of traces.
func (s *Server) traceRoutes() []admin.Route {
	return []admin.Route{
		{Path: "/api/traces", Text: "the execution traces of slow ticks of the default room, with --trace-dir", Read: s.tracesPage},
		{Path: "/api/traces/file", Query: "?tick=977", Text: "one of them, for go tool trace", Page: http.HandlerFunc(s.traceFile), ByWriters: true},
	}
}

// tracesPage answers /api/traces.
func (s *Server) tracesPage(context.Context, url.Values) (any, error) {
	l := traceList{Room: s.room.spec.Name, Covers: tracedump.Covers, Traces: []tracedump.File{}}
	if s.traces != nil {
		l.Traces = append(l.Traces, s.traces.Files()...)
	}
	return l, nil
}

// traceTimeout bounds the download of a trace, which has some MiB.
const traceTimeout = time.Minute

// traceFile answers /api/traces/file.
func (s *Server) traceFile(w http.ResponseWriter, r *http.Request) {
	tick, err := number(r.URL.Query(), "tick", 0)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	err = fs.ErrNotExist
	if s.traces != nil {
		err = s.serveTrace(w, r, tick)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		http.Error(w, fmt.Sprintf("there is no trace of tick %d: /api/traces lists them", tick), http.StatusNotFound)
	case err != nil:
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	}
}

func (s *Server) serveTrace(w http.ResponseWriter, r *http.Request, tick uint64) error {
	f, err := s.traces.OpenFile(tick)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // It was only read.
	_ = http.NewResponseController(w).SetWriteDeadline(s.clock.Wall().Add(traceTimeout))
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=tick%d.trace", tick))
	http.ServeContent(w, r, "", time.Time{}, f)
	return nil
}
