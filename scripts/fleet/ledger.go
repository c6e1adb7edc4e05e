package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// ledger collects the facts that bots observe, and checks them.
type ledger struct {
	now func() time.Duration

	mu     sync.Mutex
	rooms  map[string][]incarnation // by name, the oldest first
	at     map[string]place         // present place of each player
	got    map[string]*got          // by room and player
	told   map[string]int           // answers by server
	faults []string
	counts counts
	no     error // why the last player without a seat found none
}

// incarnation is a room of a name. Times are milliseconds of the machine's clock.
type incarnation struct {
	number   uint64
	server   string
	opened   uint64
	admitted uint64 // the newest admission, less ticketTime if that was by a ticket
}

// ticketTime is the time for which a ticket may be under way: the room that has reserved the seat
// may have lost its name since.
const ticketTime = 10_000

// got has the numbers of the answers of a room to a player.
type got struct {
	place  place
	number uint32 // of the last one
	// saved and next were the last numbers at two times, the first one more than saveTime ago: the
	// store has them.
	saved, next uint32
	nextAt      time.Duration
	// forked: the room's server has failed, so that a newer room continues from a save. It has at
	// least the number saved.
	forked bool
}

// saveTime is the time in which a save reaches the store, also on a busy machine.
const saveTime = saveEvery + 3*time.Second

// counts are the figures of a run.
type counts struct {
	joins, moves, crossed, lost, refused int
	// gaps are the times from the last answer in a room to the first one in the next.
	gaps []time.Duration
	// carried are moves with the room, and pause is the longest of their gaps.
	carried int
	pause   time.Duration
	listed  time.Duration // longest time for which a room was listed that was not there
}

func newLedger(now func() time.Duration) *ledger {
	return &ledger{now: now, rooms: map[string][]incarnation{}, at: map[string]place{}, got: map[string]*got{}, told: map[string]int{}}
}

// entered records the place of a player, as its room has told.
func (l *ledger) entered(name string, a answer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := a.Place
	if p.Player != name {
		l.faultLocked("room %s takes %s for %s", p.Room, name, p.Player)
	}
	l.admittedLocked(name, a)
	was, moved := l.at[name]
	switch {
	case !moved:
		l.counts.joins++
	case was.Server != p.Server:
		l.counts.crossed++
		l.counts.moves++
	case was.Room != p.Room:
		l.counts.moves++
	}
	l.at[name] = p
}

// admittedLocked records an admission. An older room admits nobody after a newer one was opened.
func (l *ledger) admittedLocked(name string, a answer) {
	p, all := a.Place, l.rooms[a.Place.Room]
	i, known := slices.BinarySearchFunc(all, p.Incarnation, func(i incarnation, number uint64) int { return cmp.Compare(i.number, number) })
	if !known {
		all = slices.Insert(all, i, incarnation{number: p.Incarnation, server: p.Server, opened: a.Opened})
		l.rooms[p.Room] = all
	}
	if all[i].server != p.Server {
		l.faultLocked("room %s, incarnation %d, is at the servers %.6s and %.6s", p.Room, p.Incarnation, p.Server, all[i].server)
	}
	at := a.Admitted
	if a.Ticket {
		at -= min(at, ticketTime)
	}
	all[i].admitted = max(all[i].admitted, at)
	for n := range all {
		newer := &all[n]
		for o := range n {
			older := &all[o]
			if older.admitted > newer.opened {
				l.faultLocked("room %s at server %.6s has admitted a player (now: %s) %d ms after server %.6s had opened a newer one",
					p.Room, older.server, name, older.admitted-newer.opened, newer.server)
				older.admitted = 0 // One fault is enough.
			}
		}
	}
}

// left records that a player is in no room.
func (l *ledger) left(name string, lost bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.at, name)
	if lost {
		l.counts.lost++
	}
}

// gap records the time of a move without a room; carried: the player moved with its room.
func (l *ledger) gap(d time.Duration, carried bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts.gaps = append(l.counts.gaps, d)
	if carried {
		l.counts.carried++
		l.counts.pause = max(l.counts.pause, d)
	}
}

// answered records the number of an answer: the room counts all answers to a player, also those
// that it gave on another server.
func (l *ledger) answered(name string, a answer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p, key := a.Place, a.Place.Room+" "+name
	l.told[p.Server]++
	g := l.got[key]
	switch {
	case g == nil:
		g = &got{place: p, nextAt: l.now()}
		l.got[key] = g
	case p.Incarnation < g.place.Incarnation:
		l.faultLocked("room %s at server %.6s answers %s, which has got answers of a newer one", p.Room, p.Server, name)
	case p.Incarnation == g.place.Incarnation || !g.forked:
		if a.Number <= g.number {
			l.faultLocked("room %s at server %.6s counts %d answers to %s, which has got %d", p.Room, p.Server, a.Number, name, g.number)
		}
	case a.Number <= g.saved:
		l.faultLocked("room %s at server %.6s counts %d answers to %s, although %d were saved", p.Room, p.Server, a.Number, name, g.saved)
	}
	if p.Incarnation > g.place.Incarnation {
		*g = got{place: p, nextAt: l.now()}
	}
	g.number = a.Number
	if now := l.now(); !g.forked && now-g.nextAt >= saveTime {
		g.saved, g.next, g.nextAt = g.next, a.Number, now
	}
}

// fails records that a server is about to fail: the saves before count, if other servers open its
// rooms.
func (l *ledger) fails(server string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, g := range l.got {
		if g.place.Server == server {
			g.forked = true
		}
	}
}

// recovered records that a server works again: its rooms without newer ones have continued.
func (l *ledger) recovered(server string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, g := range l.got {
		all := l.rooms[g.place.Room]
		if g.place.Server == server && all[len(all)-1].number == g.place.Incarnation {
			g.forked, g.next, g.nextAt = false, g.saved, l.now()
		}
	}
}

// absent records that a room is listed, and was not there for a time.
func (l *ledger) absent(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts.listed = max(l.counts.listed, d)
}

// answers returns the number of answers of a server to all players.
func (l *ledger) answers(server string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.told[server]
}

// crossed returns the number of moves to other servers.
func (l *ledger) crossed() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts.crossed
}

// roomsAt returns the names of the rooms with players at a server, the fullest first.
func (l *ledger) roomsAt(server string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	players := map[string]int{}
	for _, p := range l.at {
		if p.Server == server {
			players[p.Room]++
		}
	}
	return slices.SortedFunc(maps.Keys(players), func(a, b string) int {
		return cmp.Or(cmp.Compare(players[b], players[a]), cmp.Compare(a, b))
	})
}

// refusal records that a player found no seat, and tries again.
func (l *ledger) refusal(why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts.refused++
	l.no = why
}

// refused returns the error of the last refusal.
func (l *ledger) refused() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.no
}

// fault records a broken promise.
func (l *ledger) fault(format string, a ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faultLocked(format, a...)
}

const maxFaults = 20

func (l *ledger) faultLocked(format string, a ...any) {
	if len(l.faults) < maxFaults {
		l.faults = append(l.faults, fmt.Sprintf("%5.1f s: ", l.now().Seconds())+fmt.Sprintf(format, a...))
	}
}

// players returns the number of players in rooms, of one server or, for "", of all.
func (l *ledger) players(server string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.at {
		if server == "" || p.Server == server {
			n++
		}
	}
	return n
}

// result returns the figures, and the faults.
func (l *ledger) result() (counts, []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts, l.faults
}
