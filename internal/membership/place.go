package membership

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/netloop/netloop/cluster"
)

// asked counts the rooms that this server has asked others to open lately, and that their load does
// not contain yet.
type asked struct {
	mu sync.Mutex
	of map[string]*request // by server
}

// request has the rooms that one server was asked to open.
type request struct {
	rooms int           // its rooms before
	count int           // requested since
	last  time.Duration // time of the last request
}

// askedFor is the time for which a requested room counts: a heartbeat, and the way.
const askedFor = 2 * cluster.Beat

// missing returns the number of rooms that were requested lately from a server, and are not among
// its rooms.
func (a *asked) missing(id string, rooms int, now time.Duration) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	r := a.of[id]
	if r == nil {
		return 0
	}
	missing := r.count - max(rooms-r.rooms, 0)
	if missing <= 0 || now-r.last >= askedFor {
		delete(a.of, id)
		return 0
	}
	return missing
}

func (a *asked) add(id string, rooms int, now time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.of == nil {
		a.of = map[string]*request{}
	}
	r := a.of[id]
	if r == nil {
		r = &request{rooms: rooms}
		a.of[id] = r
	}
	r.count++
	r.last = now
}

// refusing is the level of overload at which a server gets no room.
const refusing = 3

// Place returns the id of the server for a new room: the least loaded one of a region, with the
// schema of this server, that has room. An empty region is that of this server. It reports false
// if no server qualifies other than those of except. Of equal servers this one comes first.
func (m *Member) Place(region string, except []string) (server string, ok bool) {
	type candidate struct {
		id   string
		load cluster.Load
	}
	now := m.cfg.Now()
	var all []candidate
	for _, s := range m.Servers() {
		own := s.ID == m.self.ID
		if own {
			s.Load = m.cfg.Load()
		}
		s.Load.Rooms += m.asked.missing(s.ID, s.Load.Rooms, now)
		l := s.Load
		if s.Suspect || l.Draining || l.Overload >= refusing || l.Rooms >= l.MaxRooms || l.Clients >= l.MaxClients ||
			slices.Contains(except, s.ID) || s.Region != cmp.Or(region, m.self.Region) || s.Schema != m.self.Schema {
			continue
		}
		all = append(all, candidate{s.ID, l})
		if own { // MinFunc returns the first of equal ones.
			all[0], all[len(all)-1] = all[len(all)-1], all[0]
		}
	}
	if len(all) == 0 {
		return "", false
	}
	best := slices.MinFunc(all, func(a, b candidate) int {
		return cmp.Or(
			cmp.Compare(a.load.Overload, b.load.Overload),
			cmp.Compare(percent(a.load.Clients, a.load.MaxClients)/clientStep, percent(b.load.Clients, b.load.MaxClients)/clientStep),
			cmp.Compare(a.load.Rooms*b.load.MaxRooms, b.load.Rooms*a.load.MaxRooms),
			cmp.Compare(a.load.Clients, b.load.Clients),
		)
	})
	return best.id, true
}

// clientStep is the difference of the clients of two servers, in percent of their limits, below
// which the number of rooms decides: new rooms are empty at first.
const clientStep = 5

func percent(part, whole int) int { return part * 100 / max(whole, 1) }

// Asked records that a server was asked to open a room.
func (m *Member) Asked(server string) {
	for _, s := range m.Servers() {
		if s.ID == server {
			m.asked.add(server, s.Load.Rooms, m.cfg.Now())
		}
	}
}

// Suspect reports whether a server misses heartbeats, or is not a member.
func (m *Member) Suspect(server string) bool {
	for _, s := range m.Servers() {
		if s.ID == server {
			return s.Suspect
		}
	}
	return true
}
