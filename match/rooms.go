package match

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/netloop/netloop"
)

// Config describes the rooms of a [Rooms].
type Config[I any] struct {
	// Spec describes a new room. Its Name is the prefix of the names of new rooms, to which a
	// number and a random part are added, and its Kind selects the rooms that players may join. It
	// must have a Kind, and not be Private. [Rooms] without a Name opens no room. In a cluster
	// rooms of all servers are found, and a new one opens on the server that its Place selects.
	Spec netloop.RoomSpec
	// Where reports whether players may be sent to a listed room. It may run on any goroutine. Nil
	// means all rooms of the kind that publish an I ([netloop.Room.Publish]). A room that has
	// published none yet is offered as well if this Rooms has opened it.
	Where func(netloop.RoomListing[I]) bool
	// Timeout is the longest time of a request, from its call on; zero means 10 s. Then the error
	// is [ErrTimeout], even if the game's Open has not returned: the room that it opens closes
	// when it has been empty for a while.
	Timeout time.Duration
}

const defaultTimeout = 10 * time.Second

// Rooms finds rooms of one kind for players, or opens them. The fullest room that fits is taken
// first, so that rooms fill up. One request is served at a time: players who ask at once fill a new
// room before the next one opens. The lobbies of two servers of a cluster have a Rooms each, so
// both may open a room. Any goroutine may use it.
type Rooms[I any] struct {
	cfg     Config[I]
	players singleflight.Group
	turn    chan struct{} // holds a value while a request is served; guards the fields below
	fresh   []string      // rooms that were opened here and that no listing has shown with an I yet
	opened  int
}

// maxTries is the number of rooms that a request tries before it opens one: a listing is up to 50
// ms old, and other programs reserve seats too.
const maxTries = 8

// Place is the room of a player or a party, with a ticket for each seat.
type Place struct {
	Room    string
	Tickets []netloop.Ticket
	Opened  bool // for this request
}

// ErrNoRoom is the error if no room has enough free seats and none is opened.
var ErrNoRoom error = &netloop.Refusal{Code: netloop.CodeFull, Text: "no room has a free seat"}

// ErrTimeout is the error if no room has opened in time.
var ErrTimeout error = &netloop.Refusal{Code: netloop.CodeBusy, Text: "no room opens in time: try again later"}

// NewRooms returns a Rooms. Several rooms, such as lobbies, may share it.
func NewRooms[I any](c Config[I]) *Rooms[I] {
	if c.Spec.Kind == "" || c.Spec.Private {
		panic("match: NewRooms: a Spec needs a Kind, and must not be Private")
	}
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	return &Rooms[I]{cfg: c, turn: make(chan struct{}, 1)}
}

// Join finds or opens a room from a tick and reserves seats there. then is called in EarlyUpdate
// of a later tick with the place, or with an error: [ErrNoRoom], [ErrTimeout],
// [netloop.ErrTooManyRooms], or the error of the game's Open. A player who asks again while a
// request runs gets the same place; "" is no player.
func (m *Rooms[I]) Join(t *netloop.Tick, player string, v netloop.Reservation, then func(*netloop.Tick, Place, error)) {
	s, random := t.Room().Server(), t.Rand().Uint32()
	netloop.Go(t, func(ctx context.Context) (Place, error) {
		p, err := m.find(ctx, s, player, v, random)
		return p, recordable(err)
	}, then)
}

// recordable returns an error that a recording can store, because the error of a game's Open may
// have more data than its text.
func recordable(err error) error {
	var refused *netloop.Refusal
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refused):
		return refused
	case errors.Is(err, netloop.ErrTooManyRooms):
		return netloop.ErrTooManyRooms
	}
	return errors.New(err.Error())
}

// Find is Join for any goroutine except that of a room.
func (m *Rooms[I]) Find(ctx context.Context, s *netloop.Server, player string, v netloop.Reservation) (Place, error) {
	return m.find(ctx, s, player, v, rand.Uint32())
}

// find serves one request for each player at a time.
func (m *Rooms[I]) find(ctx context.Context, s *netloop.Server, player string, v netloop.Reservation, random uint32) (Place, error) {
	if player == "" {
		return m.serve(ctx, s, v, random)
	}
	p, err, _ := m.players.Do(player, func() (any, error) { return m.serve(ctx, s, v, random) })
	return p.(Place), err
}

// serve finds or opens a room when the requests before are served.
func (m *Rooms[I]) serve(ctx context.Context, s *netloop.Server, v netloop.Reservation, random uint32) (Place, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, m.cfg.Timeout, ErrTimeout)
	defer cancel()
	select {
	case m.turn <- struct{}{}:
		defer func() { <-m.turn }()
	case <-ctx.Done():
		return Place{}, context.Cause(ctx)
	}
	for _, name := range m.candidates(s, max(v.Seats, 1)) {
		tickets, err := s.Reserve(ctx, name, v)
		if err == nil {
			return Place{Room: name, Tickets: tickets}, nil
		}
		code, passes := passing(err)
		if !passes {
			return Place{}, err
		}
		if code == netloop.CodeRoomUnknown {
			m.fresh = slices.DeleteFunc(m.fresh, func(fresh string) bool { return fresh == name })
		}
	}
	if m.cfg.Spec.Name == "" {
		return Place{}, ErrNoRoom
	}
	return m.open(ctx, s, v, random)
}

// passing reports whether another room may still admit a player whom one refused, and the code.
func passing(err error) (code netloop.Code, passes bool) {
	var refused *netloop.Refusal
	if !errors.As(err, &refused) {
		return 0, false
	}
	return refused.Code, slices.Contains([]netloop.Code{netloop.CodeFull, netloop.CodeRoomUnknown, netloop.CodeClosing, netloop.CodeRefused}, refused.Code)
}

// candidates returns the rooms with that many free seats, the fullest first.
func (m *Rooms[I]) candidates(s *netloop.Server, seats int) []string {
	type candidate struct {
		name string
		free int
	}
	var all []candidate
	listed := map[string]bool{}
	netloop.ListRooms(s, netloop.RoomFilter[I]{Kind: m.cfg.Spec.Kind, Where: func(l netloop.RoomListing[I]) bool {
		listed[l.Name] = true
		if l.Free() >= seats && (m.cfg.Where == nil || m.cfg.Where(l)) {
			all = append(all, candidate{l.Name, l.Free()})
		}
		return false // The list itself is not needed.
	}})
	locked := map[string]bool{}
	if len(m.fresh) > 0 {
		for info := range s.Rooms() {
			locked[info.Spec.Name] = info.Locked
		}
	}
	m.fresh = slices.DeleteFunc(m.fresh, func(name string) bool { return listed[name] || locked[name] })
	slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Compare(a.free, b.free) })
	names := slices.Clone(m.fresh)
	for _, c := range all[:min(len(all), maxTries)] {
		names = append(names, c.name)
	}
	return names
}

// open opens a room, and reserves seats there. If the room refuses, because other programs have
// taken its seats or the game has locked it, open tries one more room.
func (m *Rooms[I]) open(ctx context.Context, s *netloop.Server, v netloop.Reservation, random uint32) (Place, error) {
	for again := true; ; again = false {
		m.opened++
		spec := m.cfg.Spec
		spec.Name = fmt.Sprintf("%s%d-%08x", spec.Name, m.opened, random)
		if err := openRoom(ctx, s, spec); err != nil {
			return Place{}, err
		}
		m.fresh = append(m.fresh, spec.Name)
		tickets, err := s.Reserve(ctx, spec.Name, v)
		if _, passes := passing(err); !passes || !again || !m.holds(s, spec.Name, v) {
			return Place{Room: spec.Name, Tickets: tickets, Opened: true}, err
		}
	}
}

// holds reports whether an empty room has enough seats for a reservation.
func (m *Rooms[I]) holds(s *netloop.Server, name string, v netloop.Reservation) bool {
	spec := m.cfg.Spec // Of a room on another server, and of one that has ended.
	for info := range s.Rooms() {
		if info.Spec.Name == name {
			spec = info.Spec
		}
	}
	if v.Spectator {
		return max(v.Seats, 1) <= spec.MaxSpectators
	}
	return max(v.Seats, 1) <= spec.MaxClients
}

// openRoom opens a room on the server that the spec selects, until ctx ends.
func openRoom(ctx context.Context, s *netloop.Server, spec netloop.RoomSpec) error {
	_, err := s.PlaceRoom(ctx, spec)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// Open opens a room from a tick, unless there is one of the name, and reserves seats there.
// then is called within 10 s, with the same arguments as in [Rooms.Join].
func Open(t *netloop.Tick, spec netloop.RoomSpec, v netloop.Reservation, then func(*netloop.Tick, Place, error)) {
	s := t.Room().Server()
	netloop.Go(t, func(ctx context.Context) (Place, error) {
		ctx, cancel := context.WithTimeoutCause(ctx, defaultTimeout, ErrTimeout)
		defer cancel()
		err := openRoom(ctx, s, spec)
		if err != nil && !errors.Is(err, netloop.ErrRoomExists) {
			return Place{}, recordable(err)
		}
		tickets, failed := s.Reserve(ctx, spec.Name, v)
		return Place{Room: spec.Name, Tickets: tickets, Opened: err == nil}, recordable(failed)
	}, then)
}
