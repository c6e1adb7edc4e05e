package netloop

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/netloop/netloop/internal/directory"
	"github.com/netloop/netloop/internal/room"
	"github.com/netloop/netloop/internal/schema"
)

// Listed is a room as others find it: what it has published of itself, and its seats. What is seen
// of all rooms is one moment of all, at most 50 ms ago. Rooms that are locked, private or about to
// end are not listed.
type Listed[I any] struct {
	Name, Kind string
	Players    int // seats that are taken or reserved, those of spectators aside
	MaxClients int
	Info       I // see Room.Publish
}

// Free is how many seats are left.
func (l *Listed[I]) Free() int { return max(l.MaxClients-l.Players, 0) }

// RoomFilter says which rooms somebody looks for. Those count that have published an I, and with
// struct{} as I all.
type RoomFilter[I any] struct {
	// Kind is theirs; "" is any.
	Kind string
	// Free is how many seats are left in them, at least.
	Free int
	// Limit is how many are listed, those that were opened first; zero means 100, less than zero
	// all. Who watches is told of all.
	Limit int
	// Where picks among them. It runs on any goroutine, is called again for what it has seen, and
	// must depend on what it is given alone, and change nothing of that. Nil picks all.
	Where func(Listed[I]) bool
}

const defaultListed = 100

// poster is what a room has posted for others to find. Nobody changes it.
type poster struct {
	name, kind   string
	players, max int
	packed       schema.Parcel // the Info
	info         any           // the same, for filters: a *I, or a protobuf message
}

// posted is what of a room is on the server's board. It is the room's goroutine's, but for what
// its mutex guards.
type posted struct {
	packed  schema.Parcel
	info    any
	changed bool

	mu    sync.Mutex
	shown poster // last; name and kind are the room's
	up    bool   // it is there
	gone  bool   // the room has ended
	watch []*directory.Watch[poster]
}

// Publish shows a plain struct, a pointer to one, or a protobuf message to whoever lists or
// watches the server's rooms, in place of what the room had shown: the map that is played, the
// name of the host, how far the round is. It is encoded as an RPC's message is, and takes at most
// [MaxMessage]; what cannot be encoded panics, which costs the running system its call. Nil shows
// nothing more. It is seen when the tick has ended; to publish the same again costs nothing else.
// It may be called in [Game] Open, with a nil Tick, and panics on a client.
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
	case packed == r.posted.packed:
		return
	}
	r.posted.packed, r.posted.info, r.posted.changed = packed, nil, true
	if info == nil {
		return
	}
	r.posted.info = packed.OpenLike(info)
}

// repost shows what has changed in a tick.
func (r *Room) repost() {
	players := r.e.Players()
	p := &r.posted
	p.mu.Lock()
	defer p.mu.Unlock()
	if up := r.findable(); up == p.up && !p.changed && p.shown.players == players {
		return
	}
	r.postLocked(players)
}

// post shows the room for the first time.
func (r *Room) post() {
	players := r.e.Players()
	r.posted.mu.Lock()
	defer r.posted.mu.Unlock()
	r.postLocked(players)
}

// findable reports whether others find the room.
func (r *Room) findable() bool { return !r.spec.Private && !r.e.Locked() && !r.e.Closing() }

func (r *Room) postLocked(players int) {
	p := &r.posted
	if p.gone { // It was given up, and comes back from where it hung.
		return
	}
	was := p.up
	p.up, p.changed = r.findable(), false
	p.shown = poster{r.spec.Name, r.spec.Kind, players, r.spec.MaxClients, p.packed, p.info}
	switch {
	case p.up:
		r.server.board.Post(r.number, new(p.shown))
	case was:
		r.server.board.Post(r.number, nil)
	}
}

// unpost takes down what the room has posted, and ends its watches: it has ended.
func (r *Room) unpost() {
	p := &r.posted
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gone = true
	r.server.board.Post(r.number, nil)
	for _, w := range p.watch {
		r.server.board.Unwatch(w)
	}
	p.watch = nil
}

// picks returns what a filter sees of a room, if it picks that. The Info is shared.
func (f *RoomFilter[I]) picks(p *poster) (l Listed[I], ok bool) {
	if p == nil || f.Kind != "" && f.Kind != p.kind || p.max-p.players < f.Free {
		return l, false
	}
	l = Listed[I]{Name: p.name, Kind: p.kind, Players: p.players, MaxClients: p.max}
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

// list returns the rooms that a filter picks.
func (f *RoomFilter[I]) list(all []directory.Posted[poster]) []Listed[I] {
	var picked []Listed[I]
	most := f.Limit
	if most == 0 {
		most = defaultListed
	}
	for i := range all {
		if len(picked) == most {
			break
		}
		if l, ok := f.picks(all[i].Entry); ok {
			picked = append(picked, owned(l, all[i].Entry))
		}
	}
	return picked
}

// owned is what was picked, with an Info that nobody shares.
func owned[I any](l Listed[I], p *poster) Listed[I] {
	if v, ok, err := p.packed.OpenAs(reflect.TypeFor[I]()); ok && err == nil {
		l.Info = schema.Open[I](v)
	}
	return l
}

// checkInfo panics if no room can publish an I.
func checkInfo[I any](what string) {
	if err := schema.Packable(reflect.TypeFor[I]()); err != nil {
		panic(fmt.Sprintf("netloop: %s: use a plain struct or a pointer to a protobuf message: %v", what, err))
	}
}

// RoomsWhere returns the rooms that a filter picks, in the order in which they were opened. It
// costs no room anything. Any goroutine may call it; from a tick it is [ListRooms].
func RoomsWhere[I any](s *Server, f RoomFilter[I]) []Listed[I] {
	checkInfo[I]("RoomsWhere")
	return f.list(s.board.List(s.clock.Now()))
}

// ListRooms looks for rooms from a tick: then is called in EarlyUpdate of a later tick with what
// the filter picks, as by [Go], so that a replay finds the same. It panics on a client.
func ListRooms[I any](t *Tick, f RoomFilter[I], then func(*Tick, []Listed[I], error)) {
	s := t.server("ListRooms").server
	checkInfo[I]("ListRooms")
	Go(t, func(context.Context) ([]Listed[I], error) { return RoomsWhere(s, f), nil }, then)
}

// RoomChange is a room that a filter picks now, and has not picked as it is before; or, if it is
// Gone, one that it picks no more, as it was.
type RoomChange[I any] struct {
	Room Listed[I]
	Gone bool
}

// WatchRooms calls fn, in EarlyUpdate, with the rooms that a filter picks and then with each
// change of that, so that a lobby shows what there is to join: at once those that there are, and
// later what has changed, at most every 50 ms. What it is told of is part of a recording, and a
// replay is told the same. It belongs into [Game] Open.
func WatchRooms[I any](r *Room, f RoomFilter[I], fn func(*Tick, []RoomChange[I])) {
	if !r.opens("WatchRooms") {
		return
	}
	checkInfo[I]("WatchRooms")
	stream := r.e.Stream(room.Work{
		New:  func() any { return new([]RoomChange[I]) },
		Then: func(changes any, _ error) { fn(&r.tick, *changes.(*[]RoomChange[I])) },
	})
	tell := func(was, is []directory.Posted[poster]) bool {
		if !stream.Ready() {
			return false
		}
		var changes []RoomChange[I]
		err := r.e.CallAside("WatchRooms", func() error { changes = f.compare(was, is); return nil })
		return err != nil || len(changes) == 0 || stream.Push(&changes)
	}
	r.posted.watch = append(r.posted.watch, r.server.board.Watch(tell))
}

// compare returns what has changed for a filter from one list to another.
func (f *RoomFilter[I]) compare(was, is []directory.Posted[poster]) (changes []RoomChange[I]) {
	directory.Compare(was, is, func(was, is *poster) {
		before, had := f.picks(was)
		now, has := f.picks(is)
		switch {
		case has:
			changes = append(changes, RoomChange[I]{Room: owned(now, is)})
		case had:
			changes = append(changes, RoomChange[I]{Room: owned(before, was), Gone: true})
		}
	})
	return slices.Clip(changes)
}

// tellWatchers tells those who watch rooms, until ctx ends. However much there is to tell, it
// takes a tenth of a core at most.
func (s *Server) tellWatchers(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.board.Woken():
		}
		began := s.clock.Now()
		if !s.board.Tell(began) {
			s.board.Wake()
		}
		if !pause(ctx, tellGap(s.clock.Now()-began)) {
			return
		}
	}
}

// tellShare is how many times as long as it took to tell nobody is told.
const tellShare = 10

// tellGap is for how long nobody is told after it took so long to tell.
func tellGap(took time.Duration) time.Duration { return max(directory.BoardGap, tellShare*took) }

// tell tells those who watch rooms, and the program, in a world of tests, if there is something to
// tell.
func (s *Server) tell() {
	s.desk.Deliver(context.Background())
	select {
	case <-s.board.Woken():
		if !s.board.Tell(s.clock.Now()) {
			s.board.Wake()
		}
	default:
	}
}
