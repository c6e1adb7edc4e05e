package netloop

import (
	"context"
	"net/url"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/netloop/netloop/cluster"
	"github.com/netloop/netloop/internal/directory"
	"github.com/netloop/netloop/internal/inspect"
	clusterv1 "github.com/netloop/netloop/proto/netloop/cluster/v1"
)

// The inspector's answer about the cluster. It reads the boards and heartbeats that the server has
// already, and asks no other server.

// clusterPage answers /api/cluster.
func (s *Server) clusterPage(_ context.Context, query url.Values) (any, error) {
	c := inspect.Cluster{
		Server: s.ID(), Text: "this server is not part of a cluster",
		Servers: []inspect.ClusterServer{}, Rooms: []inspect.ClusterRoom{},
		Moves: s.moves.List(),
	}
	if s.member == nil {
		return c, nil
	}
	h := s.member.Health()
	if c.Connected, c.Text = h.OK, "names can be claimed"; !h.OK {
		c.Text = "no name can be claimed: " + h.Text
	}
	for _, other := range s.member.Servers() {
		c.Servers = append(c.Servers, s.clusterServer(&other))
	}
	find := query.Get("find")
	for _, b := range s.member.Boards() {
		s.addRooms(&c, &b, find)
	}
	return c, nil
}

// clusterServer describes a server of the cluster.
func (s *Server) clusterServer(other *cluster.Server) inspect.ClusterServer {
	l := other.Load
	row := inspect.ClusterServer{
		ID: other.ID, Own: other.ID == s.ID(), Region: other.Region, Zone: other.Zone, Schema: other.Schema,
		Suspect: other.Suspect, Draining: l.Draining, Rooms: l.Rooms, MaxRooms: l.MaxRooms, Clients: l.Clients, MaxClients: l.MaxClients,
		Overload: Overload(min(max(l.Overload, 0), int(OverloadRefusing))).String(), Addresses: []inspect.ClusterAddress{},
	}
	for _, a := range other.Addresses {
		row.Addresses = append(row.Addresses, inspect.ClusterAddress{Carrier: a.Carrier, Addr: a.Addr})
	}
	return row
}

// addRooms adds the rooms of a board whose name, kind or server contains a text.
func (s *Server) addRooms(c *inspect.Cluster, b *cluster.Board, find string) {
	byServer := strings.Contains(b.Server, find)
	for _, r := range b.Rooms {
		full := len(c.Rooms) == inspect.MaxClusterRooms
		matches := byServer || strings.Contains(r.Name, find)
		if full && matches {
			c.Total++
			continue
		}
		var entry clusterv1.Entry
		if proto.Unmarshal(r.Entry, &entry) != nil || !matches && !strings.Contains(string(entry.GetKind()), find) {
			continue
		}
		c.Total++
		if !full {
			c.Rooms = append(c.Rooms, s.clusterRoom(b, r.Name, &entry))
		}
	}
}

// clusterRoom describes a room of a board.
func (s *Server) clusterRoom(b *cluster.Board, name string, entry *clusterv1.Entry) inspect.ClusterRoom {
	row := inspect.ClusterRoom{
		Name: name, Kind: string(entry.GetKind()), Server: b.Server, Own: b.Server == s.ID(), State: directory.StateOpen,
		Players: int(entry.GetPlayers()), Max: int(entry.GetMaxClients()),
	}
	switch r, here := s.rooms.Get(name); {
	case row.Own && here:
		row.State, row.Locked = r.state(), r.Locked()
	case row.Own:
		row.State = directory.StateClosing // The board still has the room, which has ended.
	case b.Suspect:
		row.State = inspect.RoomUnknown
	case entry.GetUnlisted():
		row.State = inspect.RoomUnlisted
	}
	return row
}

// beginMove stores the first step of a move that began at a time of the server's clock, for the
// inspector.
func (s *Server) beginMove(key uint64, move inspect.Move, began time.Duration) {
	now := s.clock.Now()
	move.Time = s.clock.Wall().Add(began - now)
	s.moves.Begin(key, move, began, now)
}

// moveStep stores a later step of a move.
func (s *Server) moveStep(key uint64, state inspect.MoveState, text string) {
	s.moves.Step(key, state, text, s.clock.Now())
}
