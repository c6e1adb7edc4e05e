package main

import (
	"fmt"
	"sync"
	"time"
)

// ledger collects the facts that bots observe, and checks them.
type ledger struct {
	now func() time.Duration

	mu     sync.Mutex
	rooms  map[string]*incarnation // newest of each name
	at     map[string]place        // present place of each player
	got    map[string]uint32       // number of the last answer by room and player
	faults []string
	counts counts
	no     error // why the last player without a seat found none
}

// incarnation is the newest room of a name.
type incarnation struct {
	number uint64
	server string
}

// counts are the figures of a run.
type counts struct {
	joins, moves, crossed, lost, refused int
	// gaps are the times from the last answer in a room to the first one in the next.
	gaps []time.Duration
	// carried are moves with the room, and pause is the longest of their gaps.
	carried int
	pause   time.Duration
}

func newLedger(now func() time.Duration) *ledger {
	return &ledger{now: now, rooms: map[string]*incarnation{}, at: map[string]place{}, got: map[string]uint32{}}
}

// entered records the place of a player, as its room has told.
func (l *ledger) entered(name string, p place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.Player != name {
		l.faultLocked("room %s takes %s for %s", p.Room, name, p.Player)
	}
	newest := l.rooms[p.Room]
	switch {
	case newest == nil || p.Incarnation > newest.number:
		l.rooms[p.Room] = &incarnation{p.Incarnation, p.Server}
	case p.Incarnation < newest.number:
		l.faultLocked("room %s at server %.6s admits %s, although server %.6s has a newer one", p.Room, p.Server, name, newest.server)
	case p.Server != newest.server:
		l.faultLocked("room %s, incarnation %d, is at the servers %.6s and %.6s", p.Room, p.Incarnation, p.Server, newest.server)
	}
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
	key := a.Place.Room + " " + name
	if last := l.got[key]; a.Number <= last {
		l.faultLocked("room %s at server %.6s counts %d answers to %s, which has got %d", a.Place.Room, a.Place.Server, a.Number, name, last)
	}
	l.got[key] = max(l.got[key], a.Number)
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
