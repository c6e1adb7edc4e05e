package nats

import (
	"cmp"
	"maps"
	"slices"

	"github.com/netloop/netloop/cluster"
	clusterv1 "github.com/netloop/netloop/proto/netloop/cluster/v1"
)

// board is a server's list of rooms: its own, or the copy of another one's. It needs a lock.
type board struct {
	version uint64
	rooms   []cluster.Room // in the order of their names
	bytes   int            // of names and entries
	shared  bool           // a caller has rooms: it must not change
}

// find returns the place of a room, and whether it is there.
func (b *board) find(name string) (int, bool) {
	return slices.BinarySearchFunc(b.rooms, name, func(r cluster.Room, n string) int { return cmp.Compare(r.Name, n) })
}

// set sets the entry of a room, or removes it. It reports false, and changes nothing, beyond the
// limits of a board.
func (b *board) set(name string, entry []byte, removed bool) bool {
	at, known := b.find(name)
	if removed && !known {
		return true
	}
	bytes, n := b.bytes, len(b.rooms)
	if known {
		bytes -= len(name) + len(b.rooms[at].Entry)
		n--
	}
	if !removed {
		bytes += len(name) + len(entry)
		n++
	}
	if !removed && (n > cluster.MaxRooms || bytes > cluster.MaxBoard) {
		return false
	}
	if b.shared {
		b.rooms, b.shared = slices.Clone(b.rooms), false
	}
	b.bytes = bytes
	switch {
	case removed:
		b.rooms = slices.Delete(b.rooms, at, at+1)
	case known:
		b.rooms[at].Entry = entry
	default:
		b.rooms = slices.Insert(b.rooms, at, cluster.Room{Name: name, Entry: entry})
	}
	return true
}

// share returns the rooms; later changes are made to a copy.
func (b *board) share() []cluster.Room {
	b.shared = true
	return b.rooms
}

// apply sets the rooms of a message, and reports whether all are within the limits.
func (b *board) apply(rooms []*clusterv1.Room) bool {
	ok := true
	for _, r := range rooms {
		ok = b.set(r.GetName(), r.GetEntry(), r.GetRemoved()) && ok
	}
	return ok
}

// own is the board of this server, with its unsent changes.
type own struct {
	board
	changed map[string]bool
}

// announce notes a change, and reports false beyond the limits.
func (o *own) announce(room string, entry []byte) bool {
	removed := entry == nil
	if _, known := o.find(room); removed && !known {
		return true
	}
	if !removed && (cluster.CheckName(room) != nil || len(entry) > cluster.MaxEntry) || !o.set(room, entry, removed) {
		return false
	}
	o.changed[room] = true
	return true
}

// changes returns messages with all unsent changes. Each is a version of the board.
func (o *own) changes(id string) (all [][]byte) {
	names := slices.Sorted(maps.Keys(o.changed))
	clear(o.changed)
	rooms := make([]*clusterv1.Room, 0, len(names))
	for _, name := range names {
		r := &clusterv1.Room{Name: name}
		if at, known := o.find(name); known {
			r.Entry = o.rooms[at].Entry
		} else {
			r.Removed = true
		}
		rooms = append(rooms, r)
	}
	for _, some := range parts(rooms) {
		all = append(all, encode(&clusterv1.Changes{Id: id, From: o.version, To: o.version + 1, Rooms: some}))
		o.version++
	}
	return all
}

// whole returns messages with the whole board.
func (o *own) whole(id string) (all [][]byte) {
	rooms := make([]*clusterv1.Room, 0, len(o.rooms))
	for _, r := range o.rooms {
		rooms = append(rooms, &clusterv1.Room{Name: r.Name, Entry: r.Entry})
	}
	several := parts(rooms)
	if len(several) == 0 {
		several = [][]*clusterv1.Room{nil}
	}
	for i, some := range several {
		p := &clusterv1.Part{Version: o.version, Part: uint32(i), Last: i == len(several)-1, Rooms: some}
		all = append(all, encode(&clusterv1.Direct{From: id, Content: &clusterv1.Direct_Part{Part: p}}))
	}
	return all
}

// parts cuts rooms into messages.
func parts(rooms []*clusterv1.Room) (all [][]*clusterv1.Room) {
	for len(rooms) > 0 {
		n, bytes := 0, 0
		for n < len(rooms) && n < maxPart && bytes < partSize {
			bytes += len(rooms[n].GetName()) + len(rooms[n].GetEntry())
			n++
		}
		all = append(all, rooms[:n])
		rooms = rooms[n:]
	}
	return all
}
