package director

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/cluster"
	"github.com/netloop/netloop/internal/admin"
	"github.com/netloop/netloop/internal/membership"
	"github.com/netloop/netloop/internal/transport"
	clusterv1 "github.com/netloop/netloop/proto/netloop/cluster/v1"
)

// Member is the director's part in the cluster, as *membership.Member implements it.
type Member interface {
	Sync(func(membership.Change))
	Servers() []cluster.Server
	Place(region string, except []string) (server string, ok bool)
	Asked(server string)
	Call(ctx context.Context, server, method string, q, answer proto.Message) error
}

// Director answers the requests. Any goroutine may use it.
type Director struct {
	member Member
	now    func() time.Duration

	mu    sync.Mutex
	rooms map[uint64]*listed       // by number
	fresh map[string][]fresh       // opened here lately, by kind
	turns map[string]chan struct{} // by kind: size 1, holds a value while a request is served
}

// listed is a room of the boards.
type listed struct {
	server, name string
	*clusterv1.Entry
}

// fresh is a room that no board had when it was opened.
type fresh struct {
	server, name string
	until        time.Duration
}

// freshFor is the time in which a new room reaches the boards at the latest.
const freshFor = 2 * time.Second

// tryTime is the time in which a server must answer, so that a frozen one does not use up the time
// of a request.
const tryTime = 500 * time.Millisecond

// The limits of a request.
const (
	maxTries = 8 // rooms that a request tries before it opens one
	maxOpens = 3 // servers that a request asks for a new room
	maxSeats = 256
	maxKinds = 1024 // with requests under way, or with fresh rooms
)

// New returns a director. Refresh follows whenever boards have changed.
func New(m Member, now func() time.Duration) *Director {
	return &Director{member: m, now: now, rooms: map[uint64]*listed{}, fresh: map[string][]fresh{}, turns: map[string]chan struct{}{}}
}

// Refresh copies the changes of the boards. One goroutine at a time calls it.
func (d *Director) Refresh() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.member.Sync(func(c membership.Change) {
		if c.Entry == nil || c.Entry.GetUnlisted() {
			delete(d.rooms, c.Number)
			return
		}
		d.rooms[c.Number] = &listed{c.Server, c.Room, c.Entry}
	})
}

// Request describes the seats that a matchmaker wants.
type Request struct {
	Kind       string        // of the room
	Region     string        // of the server; empty: any, and for a new room the director's
	Seats      int           // tickets, 1 to 256: all in one room
	Spectator  bool          // the seats are for spectators
	TTL        time.Duration // of the tickets, up to an hour
	Params     []byte        // JSON for the game, see netloop.Reservation
	MaxClients int           // seats of a new room; 0 is the default
}

// Match is the answer: a room, its server, and a ticket for each seat.
type Match struct {
	Room      string    `json:"room"`
	Server    string    `json:"server"`
	Region    string    `json:"region,omitempty"`
	Addresses []Address `json:"addresses"`
	Tickets   []string  `json:"tickets"`
	Opened    bool      `json:"opened"` // for this request
}

// Address is an address of a server, for one carrier.
type Address struct {
	Carrier           string   `json:"carrier"` // quic, webtransport or websocket
	Address           string   `json:"address"`
	ServerName        string   `json:"serverName,omitempty"`
	CertificateHashes [][]byte `json:"certificateHashes,omitempty"` // base64
}

// Match finds a room for a request, or opens one. Requests of a kind are served one at a time, so
// that players who ask at once fill a room before the next one opens.
func (d *Director) Match(ctx context.Context, q Request) (*Match, error) {
	end, err := d.turn(ctx, q.Kind)
	if err != nil {
		return nil, err
	}
	defer end()
	slow := ""
	for _, r := range d.candidates(&q) {
		if r.server == slow {
			continue
		}
		within, cancel := context.WithTimeout(ctx, tryTime)
		m, err := d.reserve(within, r, &q)
		cancel()
		switch {
		case err == nil:
			return m, nil
		case errors.Is(err, cluster.ErrBusy):
			// Its seat, if it was reserved, is free after the TTL.
			slow = r.server
		case !passes(err):
			return nil, refusal(err)
		}
	}
	r, err := d.open(ctx, &q)
	if err != nil {
		return nil, err
	}
	m, err := d.reserve(ctx, r, &q)
	if err != nil {
		return nil, refusal(err)
	}
	m.Opened = true
	return m, nil
}

// turn waits until no other request of the kind is served.
func (d *Director) turn(ctx context.Context, kind string) (end func(), err error) {
	d.mu.Lock()
	turn := d.turns[kind]
	if turn == nil {
		if len(d.turns) >= maxKinds {
			clear(d.turns) // Requests under way keep theirs: at worst two rooms open.
		}
		turn = make(chan struct{}, 1)
		d.turns[kind] = turn
	}
	d.mu.Unlock()
	select {
	case turn <- struct{}{}:
		return func() { <-turn }, nil
	case <-ctx.Done():
		return nil, admin.Refuse(http.StatusServiceUnavailable, "too many requests for this kind of rooms, try again later")
	}
}

// candidates returns the rooms that fit, the fullest first, after the rooms opened lately.
func (d *Director) candidates(q *Request) (all []*listed) {
	servers := map[string]cluster.Server{}
	for _, s := range d.member.Servers() {
		servers[s.ID] = s
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	recent := slices.DeleteFunc(d.fresh[q.Kind], func(f fresh) bool { return now >= f.until })
	if d.fresh[q.Kind] = recent; len(recent) == 0 {
		delete(d.fresh, q.Kind)
	}
	known := map[string]bool{}
	for _, r := range d.rooms {
		s, ok := servers[r.server]
		if string(r.GetKind()) != q.Kind || !ok || s.Suspect || q.Region != "" && s.Region != q.Region {
			continue
		}
		known[r.name] = true
		if q.Spectator || int(r.GetMaxClients()) >= int(r.GetPlayers())+q.Seats {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b *listed) int {
		free := func(r *listed) int { return int(r.GetMaxClients()) - int(r.GetPlayers()) }
		return cmp.Or(cmp.Compare(free(a), free(b)), cmp.Compare(a.name, b.name))
	})
	for _, f := range recent {
		if s := servers[f.server]; !known[f.name] && (q.Region == "" || s.Region == q.Region) {
			all = slices.Insert(all, 0, &listed{f.server, f.name, nil})
		}
	}
	return all[:min(len(all), maxTries)]
}

// passes reports whether another room may still have the seats that one refused.
func passes(err error) bool {
	if refused := (*transport.Refusal)(nil); errors.As(err, &refused) {
		switch refused.Code {
		case transport.CodeFull, transport.CodeRoomUnknown, transport.CodeClosing, transport.CodeRefused, transport.CodeBusy:
			return true
		}
	}
	return errors.Is(err, cluster.ErrGone)
}

// refusal returns an error with its HTTP status.
func refusal(err error) error {
	status := http.StatusServiceUnavailable
	if refused := (*transport.Refusal)(nil); errors.As(err, &refused) {
		switch refused.Code {
		case transport.CodeFull:
			status = http.StatusConflict
		case transport.CodeRoomUnknown:
			status = http.StatusNotFound
		}
		return admin.Refuse(status, "%s", refused.Text)
	}
	return admin.Refuse(status, "%s", err)
}

// reserve reserves the seats of a request in a room.
func (d *Director) reserve(ctx context.Context, r *listed, q *Request) (*Match, error) {
	call := &clusterv1.Reserve{Room: []byte(r.name), Seats: uint32(q.Seats), Ttl: int64(q.TTL), Spectator: q.Spectator, Params: q.Params}
	var reserved clusterv1.Reserved
	if err := d.member.Call(ctx, r.server, "reserve", call, &reserved); err != nil {
		return nil, err
	}
	m := &Match{Room: r.name, Server: r.server, Addresses: []Address{}}
	for _, t := range reserved.GetTickets() {
		m.Tickets = append(m.Tickets, string(t))
	}
	for _, s := range d.member.Servers() {
		if s.ID == r.server {
			m.Region, m.Addresses = s.Region, addresses(&s)
		}
	}
	return m, nil
}

func addresses(s *cluster.Server) []Address {
	all := make([]Address, len(s.Addresses))
	for i, a := range s.Addresses {
		all[i] = Address{a.Carrier, a.Addr, a.Name, a.Hashes}
	}
	return all
}

// open opens a room for a request.
func (d *Director) open(ctx context.Context, q *Request) (*listed, error) {
	name := q.Kind + "-" + rand.Text()[:12]
	spec, err := json.Marshal(netloop.RoomSpec{Name: name, Kind: q.Kind, MaxClients: q.MaxClients})
	if err != nil {
		return nil, err
	}
	var tried []string
	for range maxOpens {
		server, ok := d.member.Place(q.Region, tried)
		if !ok {
			break
		}
		d.member.Asked(server)
		err = d.member.Call(ctx, server, "open", &clusterv1.OpenRoom{Spec: spec}, nil)
		if err == nil {
			d.mu.Lock()
			defer d.mu.Unlock()
			if len(d.fresh) < maxKinds {
				d.fresh[q.Kind] = append(d.fresh[q.Kind], fresh{server, name, d.now() + freshFor})
			}
			return &listed{server, name, nil}, nil
		}
		if errors.Is(err, cluster.ErrBusy) {
			return nil, refusal(err)
		}
		tried = append(tried, server)
	}
	if err != nil {
		return nil, refusal(err)
	}
	return nil, admin.Refuse(http.StatusServiceUnavailable, "no server of the region has room for another one")
}
