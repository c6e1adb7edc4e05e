package netloop

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/netloop/netloop/internal/clock"
	"github.com/netloop/netloop/internal/directory"
	"github.com/netloop/netloop/internal/room"
	"github.com/netloop/netloop/internal/schema"
)

// RoomListing is a room in a listing: its published Info and its seats. A listing shows all rooms
// at one moment, at most 50 ms ago. Rooms that are locked, private or about to end are not listed.
// In a cluster a listing has the rooms of all servers, except their default rooms, and those of
// other servers are later by the network's delay and 100 ms.
type RoomListing[I any] struct {
	Name, Kind string
	Players    int // taken and reserved seats of players
	MaxClients int
	Info       I // see Room.Publish
}

// Free returns the number of free seats.
func (l *RoomListing[I]) Free() int { return max(l.MaxClients-l.Players, 0) }

// RoomFilter selects rooms of a listing. Only rooms that have published an Info of type I match;
// with struct{} as I, all rooms match.
type RoomFilter[I any] struct {
	// Kind is the kind of the rooms; "" matches any.
	Kind string
	// Free is the least number of free seats.
	Free int
	// Limit is the largest number of rooms in a list, oldest first. Zero means 100, a value below
	// zero means all. WatchRooms ignores it.
	Limit int
	// Where reports whether a room matches. It may run on any goroutine and repeatedly for the same
	// room; it must depend only on its argument and must not change it. Nil matches all rooms.
	Where func(RoomListing[I]) bool
}

const defaultListed = 100

// listingEntry is a room's published entry in the directory. It is immutable.
type listingEntry struct {
	name, kind   string
	players, max int
	packed       schema.Parcel // the Info
	info         any           // packed, decoded for filters: a *I, or a protobuf message
}

// listing is the state of a room's entry in the server's directory. The room's goroutine owns it,
// except for the fields that the mutex guards.
type listing struct {
	packed  schema.Parcel
	info    any
	changed bool

	mu     sync.Mutex
	entry  listingEntry // the newest entry, listed or not
	listed bool         // entry is in the directory
	ended  bool         // the room has ended
	watch  []*directory.Watch[listingEntry]
}

// Publish replaces the room's Info, such as its map or its host's name, in listings and watches of
// the server's rooms. The info is a plain struct, a pointer to one, or a protobuf message. It is
// encoded like an RPC message and takes at most [MaxMessage]; Publish panics if info cannot be
// encoded, which ends the call of the running system. Nil removes the Info. The change is visible
// to other rooms after the tick has ended. To publish an equal value again costs only the encoding.
// Publish may be called in [Game] Open, with a nil Tick, and panics on a client.
func (r *Room) Publish(t *Tick, info any) {
	if !r.opening {
		t.server("Room.Publish")
	}
	packed, err := schema.Pack(info)
	switch {
	case err != nil:
		panic(fmt.Sprintf("netloop: Room.Publish: use a plain struct or a protobuf message: %v", err))
	case len(packed) > MaxMessage:
		panic(fmt.Sprintf("netloop: Room.Publish: a %T takes %d bytes: at most %d are shown", info, len(packed), MaxMessage))
	case packed == r.listing.packed:
		return
	}
	r.listing.packed, r.listing.info, r.listing.changed = packed, nil, true
	if info == nil {
		return
	}
	r.listing.info = packed.OpenLike(info)
}

// updateListing updates the room's entry in the listing if it has changed in this tick.
func (r *Room) updateListing() {
	players := r.e.Admission.Players()
	p := &r.listing
	p.mu.Lock()
	defer p.mu.Unlock()
	if up := r.listable(); up == p.listed && !p.changed && p.entry.players == players {
		return
	}
	r.listLocked(players)
}

// list puts the room on the listing for the first time.
func (r *Room) list() {
	players := r.e.Admission.Players()
	r.listing.mu.Lock()
	defer r.listing.mu.Unlock()
	r.listLocked(players)
}

// listable reports whether the room may be listed: it is not private, locked or closing.
func (r *Room) listable() bool {
	return !r.spec.Private && !r.e.Admission.Locked() && !r.e.Admission.Closing()
}

func (r *Room) listLocked(players int) {
	p := &r.listing
	if p.ended { // The server gave the room up while it hung, and now its goroutine runs again.
		return
	}
	was := p.listed
	p.listed, p.changed = r.listable(), false
	p.entry = listingEntry{r.spec.Name, r.spec.Kind, players, r.spec.MaxClients, p.packed, p.info}
	switch {
	case p.listed:
		r.server.listing.Set(r.number, new(p.entry))
	case was:
		r.server.listing.Set(r.number, nil)
	}
	r.announce()
}

// unlist removes the entry of a room that has ended from the listing, and ends its watches.
func (r *Room) unlist() {
	p := &r.listing
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	r.server.listing.Set(r.number, nil)
	for _, w := range p.watch {
		r.server.listing.Unwatch(w)
	}
	p.watch = nil
}

// match returns the RoomListing of an entry, and reports whether the filter matches it. The Info
// shares memory with the entry: see withOwnInfo.
func (f *RoomFilter[I]) match(p *listingEntry) (l RoomListing[I], ok bool) {
	if p == nil || f.Kind != "" && f.Kind != p.kind || p.max-p.players < f.Free {
		return l, false
	}
	l = RoomListing[I]{Name: p.name, Kind: p.kind, Players: p.players, MaxClients: p.max}
	switch info := p.info.(type) {
	case *I:
		l.Info = *info
	case I:
		l.Info = info
	default:
		if _, all := any(l.Info).(struct{}); !all {
			v, ok, err := p.packed.OpenAs(reflect.TypeFor[I]())
			if !ok || err != nil {
				return l, false
			}
			l.Info = schema.Open[I](v)
		}
	}
	return l, f.Where == nil || f.Where(l)
}

// list returns the rooms that match the filter.
func (f *RoomFilter[I]) list(all []directory.Item[listingEntry]) []RoomListing[I] {
	var picked []RoomListing[I]
	most := f.Limit
	if most == 0 {
		most = defaultListed
	}
	for i := range all {
		if len(picked) == most {
			break
		}
		if l, ok := f.match(all[i].Entry); ok {
			picked = append(picked, withOwnInfo(l, all[i].Entry))
		}
	}
	return picked
}

// withOwnInfo returns the listing with a separate copy of the Info.
func withOwnInfo[I any](l RoomListing[I], p *listingEntry) RoomListing[I] {
	if v, ok, err := p.packed.OpenAs(reflect.TypeFor[I]()); ok && err == nil {
		l.Info = schema.Open[I](v)
	}
	return l
}

// checkInfo panics if I is not a type that a room can publish.
func checkInfo[I any](what string) {
	if err := schema.Packable(reflect.TypeFor[I]()); err != nil {
		panic(fmt.Sprintf("netloop: %s: use a plain struct or a pointer to a protobuf message: %v", what, err))
	}
}

// ListRooms returns the rooms that match a filter, oldest first. It does no work on the rooms'
// goroutines. Any goroutine may call it. Within a tick, call it in work given to [Go], so that a
// recording contains the list and a replay gets the same list:
//
//	netloop.Go(t, func(context.Context) ([]netloop.RoomListing[Match], error) {
//		return netloop.ListRooms(server, filter), nil
//	}, show)
func ListRooms[I any](s *Server, f RoomFilter[I]) []RoomListing[I] {
	checkInfo[I]("ListRooms")
	return f.list(s.listing.List(s.clock.Now()))
}

// RoomChange is a new or changed room in a watched listing or, if Gone is set, the last listing of
// a room that no longer matches.
type RoomChange[I any] struct {
	Room RoomListing[I]
	Gone bool
}

// WatchRooms calls fn in EarlyUpdate, first with the rooms that match the filter and then with each
// change, so that a lobby can show the rooms. Changes are reported at most every 50 ms. A recording
// contains them, and a replay reports the same changes. Call WatchRooms in [Game] Open.
func WatchRooms[I any](r *Room, f RoomFilter[I], fn func(*Tick, []RoomChange[I])) {
	if !r.opens("WatchRooms") {
		return
	}
	checkInfo[I]("WatchRooms")
	stream := r.e.Async.Stream(room.Work{
		New:  func() any { return new([]RoomChange[I]) },
		Then: func(changes any, _ error) { fn(&r.tick, *changes.(*[]RoomChange[I])) },
	})
	tell := func(was, is []directory.Item[listingEntry]) bool {
		if !stream.Ready() {
			return false
		}
		var changes []RoomChange[I]
		err := r.e.CallAside("WatchRooms", func() error { changes = f.compare(was, is); return nil })
		return err != nil || len(changes) == 0 || stream.Push(&changes)
	}
	r.listing.watch = append(r.listing.watch, r.server.listing.Watch(tell))
}

// compare returns the changes between two listings, of the rooms that match the filter.
func (f *RoomFilter[I]) compare(was, is []directory.Item[listingEntry]) (changes []RoomChange[I]) {
	directory.Compare(was, is, func(was, is *listingEntry) {
		before, had := f.match(was)
		now, has := f.match(is)
		switch {
		case has:
			changes = append(changes, RoomChange[I]{Room: withOwnInfo(now, is)})
		case had:
			changes = append(changes, RoomChange[I]{Room: withOwnInfo(before, was), Gone: true})
		}
	})
	return slices.Clip(changes)
}

// notifyWatchers reports changes to the watches of rooms until ctx ends. It uses at most a tenth of
// a core.
func (s *Server) notifyWatchers(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.listing.Changed():
		}
		began := s.clock.Now()
		if !s.listing.Notify(began) {
			s.listing.Wake()
		}
		if !clock.Sleep(ctx, notifyGap(s.clock.Now()-began)) {
			return
		}
	}
}

// notifyShare is the shortest pause after a report, as a multiple of the report's duration.
const notifyShare = 10

// notifyGap returns the pause after a report that took the given time.
func notifyGap(took time.Duration) time.Duration {
	return max(directory.ListInterval, notifyShare*took)
}

// notify delivers pending events to the program and pending changes to the watches of rooms, for a
// test world, which runs no goroutines for them.
func (s *Server) notify() {
	s.inbox.Deliver(context.Background())
	select {
	case <-s.listing.Changed():
		if !s.listing.Notify(s.clock.Now()) {
			s.listing.Wake()
		}
	default:
	}
	if s.member != nil {
		select {
		case <-s.member.Changed():
			s.syncRooms()
		default:
		}
	}
}
