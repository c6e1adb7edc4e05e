package netloop

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/netloop/netloop/internal/admin"
	"github.com/netloop/netloop/internal/directory"
)

// The answers of the admin listener about rooms.

// roomAsked returns the room that a query names: without a name the default one.
func (s *Server) roomAsked(query url.Values) (*Room, error) {
	if !query.Has("room") {
		return s.room, nil
	}
	name := query.Get("room")
	r, ok := s.directory.Get(name)
	if !ok {
		return nil, &admin.Refusal{Status: http.StatusNotFound, Text: fmt.Sprintf("there is no room %.300q: /rooms lists them", name)}
	}
	return r, nil
}

// loopPage answers /loop.
func (s *Server) loopPage(ctx context.Context, query url.Values) (any, error) {
	r, err := s.roomAsked(query)
	if err != nil {
		return nil, err
	}
	return r.e.Questions.AskView(ctx)
}

// ticksPage answers /ticks: exact counts of the ticks of all rooms, or the row of one.
func (s *Server) ticksPage(query url.Values) (any, error) {
	if !query.Has("room") {
		return s.metrics.Ticks(), nil
	}
	r, err := s.roomAsked(query)
	if err != nil {
		return nil, err
	}
	return r.row(s.clock.Now()), nil
}

// roomsPage answers /rooms.
func (s *Server) roomsPage(query url.Values) (any, error) {
	q, err := directory.ParseQuery(query)
	if err != nil {
		return nil, &admin.Refusal{Status: http.StatusBadRequest, Text: err.Error()}
	}
	all, now := s.directory.All(), s.clock.Now()
	rows := make([]directory.Row, len(all))
	for i, r := range all {
		rows[i] = r.row(now)
	}
	return q.Select(rows), nil
}

// row returns the room's row for operators. Any goroutine may call it.
func (r *Room) row(now time.Duration) directory.Row {
	f, state := r.e.Stats.Figures(), directory.StateOpen
	switch {
	case r.e.Watchdog().Err() != nil:
		state = directory.StateHung
	case r.e.Admission.Closing():
		state = directory.StateClosing
	}
	return directory.Row{
		Name: r.spec.Name, Kind: r.spec.Kind, State: state, Clients: f.Clients, Seats: r.e.Admission.Seats(), Max: r.spec.MaxClients,
		Rate:  float64(r.spec.Rate.Num) / float64(r.spec.Rate.Den),
		Ticks: f.Ticks, Overruns: f.Overruns, Dropped: f.Dropped, TickP50: f.P50, TickP99: f.P99, LateP99: f.LateP99,
		Age: now - r.opened,
	}
}

// maxRoomDrain bounds an operator's drain: a longer one is probably a wrong unit.
const maxRoomDrain = 24 * time.Hour

// closePage closes the room that a query names. It refuses to close the default room, which would
// end the server: an operator with access to rooms may lack the right to end the server.
func (s *Server) closePage(query url.Values) (string, error) {
	refuse := func(status int, format string, a ...any) (string, error) {
		return "", &admin.Refusal{Status: status, Text: fmt.Sprintf(format, a...)}
	}
	if !query.Has("room") {
		return refuse(http.StatusBadRequest, "room: give the name of a room, as /rooms lists them")
	}
	r, err := s.roomAsked(query)
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
		text = "the room is closed by the operator"
	}
	if err := s.CloseRoom(r.spec.Name, drain, CodeClosing, text); err != nil {
		return refuse(http.StatusNotFound, "the room has ended meanwhile")
	}
	return fmt.Sprintf("the room %q closes in %v", r.spec.Name, drain), nil
}
