package director

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/netloop/netloop/internal/admin"
)

// Room is a room in the list of /rooms.
type Room struct {
	Name       string `json:"name"`
	Kind       string `json:"kind"`
	Server     string `json:"server"`
	Players    int    `json:"players"` // taken and reserved seats
	MaxClients int    `json:"maxClients"`
}

// Server is a server in the list of /servers.
type Server struct {
	ID         string    `json:"id"`
	Region     string    `json:"region"`
	Zone       string    `json:"zone"`
	Suspect    bool      `json:"suspect"`  // heartbeats are missing
	Draining   bool      `json:"draining"` // takes no new room
	Rooms      int       `json:"rooms"`
	MaxRooms   int       `json:"maxRooms"`
	Clients    int       `json:"clients"`
	MaxClients int       `json:"maxClients"`
	Addresses  []Address `json:"addresses"`
}

// Routes returns the pages of the director.
func (d *Director) Routes() []admin.Route {
	return []admin.Route{
		{Path: "/match", Query: "?kind=table&seats=2&region=eu&ttl=30s&spectator=false&max_clients=8&params={}", Text: "finds a room of a kind, or opens one, and reserves seats", Post: d.match},
		{Path: "/rooms", Query: "?kind=table&limit=100", Text: "the rooms of the cluster, by name", Read: d.list},
		{Path: "/servers", Text: "the servers of the cluster, with their load", Read: d.servers},
	}
}

func (d *Director) match(ctx context.Context, query url.Values) (any, error) {
	q := Request{Kind: query.Get("kind"), Seats: 1, Region: query.Get("region"), TTL: defaultTTL, Params: []byte(query.Get("params"))}
	if q.Kind == "" || len(q.Kind) > maxKind {
		return nil, admin.Refuse(http.StatusBadRequest, "kind: name the kind of the room, at most %d bytes", maxKind)
	}
	var err error
	if q.Seats, err = number(query, "seats", 1, 1, maxSeats); err != nil {
		return nil, err
	}
	if q.MaxClients, err = number(query, "max_clients", 0, 0, maxRoomClients); err != nil {
		return nil, err
	}
	if text := query.Get("ttl"); text != "" {
		if q.TTL, err = time.ParseDuration(text); err != nil || q.TTL <= 0 || q.TTL > time.Hour {
			return nil, admin.Refuse(http.StatusBadRequest, "ttl: use a time up to 1h, such as 30s")
		}
	}
	if text := query.Get("spectator"); text != "" {
		if q.Spectator, err = strconv.ParseBool(text); err != nil {
			return nil, admin.Refuse(http.StatusBadRequest, "spectator: use true or false")
		}
	}
	if len(q.Params) > 0 && (len(q.Params) > maxParams || !json.Valid(q.Params)) {
		return nil, admin.Refuse(http.StatusBadRequest, "params: use JSON of at most %d bytes", maxParams)
	}
	return d.Match(ctx, q)
}

// The limits of the parameters of /match.
const (
	defaultTTL     = 30 * time.Second
	maxKind        = 64
	maxRoomClients = 10_000
	maxParams      = 4 << 10
)

// number returns a parameter within a range.
func number(query url.Values, key string, otherwise, least, most int) (int, error) {
	text := query.Get(key)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		return 0, admin.Refuse(http.StatusBadRequest, "%s: use %d to %d", key, least, most)
	}
	return n, nil
}

// defaultRows and maxRows limit the rows of a list.
const (
	defaultRows = 100
	maxRows     = 10_000
)

func (d *Director) list(_ context.Context, query url.Values) (any, error) {
	kind := query.Get("kind")
	limit, err := number(query, "limit", defaultRows, 1, maxRows)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	rooms := []Room{}
	for _, r := range d.rooms {
		if kind == "" || string(r.GetKind()) == kind {
			rooms = append(rooms, Room{r.name, string(r.GetKind()), r.server, int(r.GetPlayers()), int(r.GetMaxClients())})
		}
	}
	d.mu.Unlock()
	slices.SortFunc(rooms, func(a, b Room) int { return strings.Compare(a.Name, b.Name) })
	return map[string]any{"total": len(rooms), "rooms": rooms[:min(len(rooms), limit)]}, nil
}

func (d *Director) servers(context.Context, url.Values) (any, error) {
	all := []Server{}
	for _, s := range d.member.Servers() {
		if s.Load.MaxRooms == 0 { // A director.
			continue
		}
		all = append(all, Server{
			s.ID, s.Region, s.Zone, s.Suspect, s.Load.Draining, s.Load.Rooms, s.Load.MaxRooms, s.Load.Clients, s.Load.MaxClients, addresses(&s),
		})
	}
	return map[string]any{"servers": all}, nil
}
