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
	if fault := l.differ(); fault == "" || !l.p.until(l.p.w.Now()+time.Second) {
		return
	}
	if fault := l.differ(); fault != "" { // Not because a room closes at this moment.
		l.p.fail("listings", "%s", fault)
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
