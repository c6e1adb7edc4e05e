package simulation

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/netloop/netloop"
)

// lists checks listings. The documents: the comments of netloop.RoomListing, ListRooms, WatchRooms,
// "Directory" in ARCHITECTURE.md.
//
//   - At rest a listing has each room that is neither private nor locked nor about to end, with its
//     players.
//   - A room that watches has been told the same.
type lists struct {
	p       *play
	watched map[roomKey]map[string]int
}

func newLists(p *play) lists { return lists{p, map[roomKey]map[string]int{}} }

// told notes a change that a watching room was told.
func (l *lists) told(key roomKey, name string, players int, gone bool) {
	if l.watched[key] == nil {
		l.watched[key] = map[string]int{}
	}
	if gone {
		delete(l.watched[key], name)
	} else {
		l.watched[key][name] = players
	}
}

func (l *lists) rest() {
	l.agree("")
	w, virtual := l.p.w.(virtualWorld)
	if !virtual {
		return
	}
	// A room lists the seat in one tick, and tells its watchers in the next, both before the end.
	reserved := 2*time.Second + 4*l.p.rooms.slowest()
	for _, name := range l.p.rooms.names() {
		f := l.p.rooms.byName[name]
		if f == nil || !w.Room(name).Asleep() {
			continue
		}
		if _, err := l.p.reserve(name, netloop.Reservation{TTL: reserved}); err != nil {
			continue
		}
		by := w.Now() + reserved
		l.agree(", with a seat that is reserved")
		if l.p.until(by) {
			l.agree(", with a seat that was reserved")
		}
		return
	}
}

// agree looks until the listings are right, and for a second or two at most: a room may close at
// this moment.
func (l *lists) agree(when string) {
	if !l.p.await(time.Second+2*l.p.rooms.slowest(), func() bool { return l.differ() == "" }) {
		return
	}
	if fault := l.differ(); fault != "" {
		l.p.fail("listings", "%s%s", fault, when)
	}
}

// differ describes how the listings differ from the rooms.
func (l *lists) differ() string {
	want, got := map[string]int{}, map[string]int{}
	for _, name := range l.p.rooms.names() {
		f := l.p.rooms.byName[name]
		if _, ends := l.p.ends.told[f.key]; !ends && !f.spec.Private && !f.gameRoom.room.Locked() {
			want[name], _ = f.count()
		}
	}
	for info := range l.p.server.Rooms() { // At rest no seat of a spectator is reserved.
		if _, listed := want[info.Spec.Name]; listed {
			want[info.Spec.Name] += info.Reserved
		}
	}
	for _, r := range netloop.ListRooms(l.p.server, netloop.RoomFilter[struct{}]{}) {
		got[r.Name] = r.Players
	}
	if !maps.Equal(want, got) {
		return fmt.Sprintf("the rooms have %s players, and are listed with %s", sorted(want), sorted(got))
	}
	for _, name := range l.p.rooms.names() {
		if f := l.p.rooms.byName[name]; f.gameRoom.rules.Watch && !maps.Equal(got, l.watched[f.key]) {
			return fmt.Sprintf("room %q watches %s, and the list is %s", name, sorted(l.watched[f.key]), sorted(got))
		}
	}
	return l.p.matches.differ()
}

func sorted(of map[string]int) (text string) {
	for _, name := range slices.Sorted(maps.Keys(of)) {
		text += fmt.Sprintf("%q:%d ", name, of[name])
	}
	return text
}
