package simulation

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/match"
	"github.com/netloop/netloop/persist"
	"github.com/netloop/netloop/phase"
)

// The parts of a room that use the packages above netloop: a purse that package persist keeps, a
// phase, a queue of parties, and a list of rooms.

// purse is the stored state of a room.
type purse struct {
	N    uint64   // changes, in all rooms of the key
	Rest []uint64 // copies of N, so that a part of the state is noticed
}

func (s *purse) whole() bool {
	return len(s.Rest) == int(s.N%20) && !slices.ContainsFunc(s.Rest, func(n uint64) bool { return n != s.N })
}

// board shows the purse and the phase of a room to its clients.
type board struct {
	Purse uint64
	Seen  uint64 // what Open has fetched
	Phase phase.State
}

// row is a room in a list of rooms.
type row struct {
	Name    string `net:"max=64"`
	Players uint16
}

// errFetch is the refusal of a room whose fetch fails.
var errFetch = &netloop.Refusal{Code: netloop.CodeRefused, Text: "the story lets the fetch fail"}

// load loads the state of the room. The lock of the world is free, because the store may wait.
func (h *gameRoom) load(r *netloop.Room) (err error) {
	h.board.Seen, err = netloop.Fetch(r, func(context.Context) (uint64, error) {
		defer h.p.enter()()
		n := h.p.resources.fetched()
		if h.rules.Fails {
			return 0, errFetch
		}
		return n, nil
	})
	if h.rules.Fails {
		h.p.resources.failed(h.key, err)
	}
	if err != nil || !h.rules.Keep {
		return err
	}
	every := time.Duration(h.rules.Every) * time.Second
	s, stored, err := persist.Keep(r, persist.Config[purse]{Keeper: h.p.keeps.keeper, Key: purseOf(h.key.name), Save: h.toSave, Every: every})
	h.p.keeps.loaded(h.key, every, stored, err)
	if err != nil {
		return err
	}
	if h.saver = s; stored != nil {
		h.board.Purse = stored.N
	}
	return nil
}

func purseOf(room string) string { return "purse of " + room }

// toSave returns the purse; one that is empty is no record.
func (h *gameRoom) toSave() *purse {
	s := purse{N: h.board.Purse}
	for range s.N % 20 {
		s.Rest = append(s.Rest, s.N)
	}
	if s.N == 0 {
		return nil
	}
	return &s
}

// earn changes the purse. A room without a store has one too.
func (h *gameRoom) earn(t *netloop.Tick, o command) {
	h.board.Purse++
	if o.N%16 == 0 {
		h.board.Purse = 0
	}
	h.shown.o.Edit(t).Purse = h.board.Purse
	if h.saver == nil {
		return
	}
	h.p.keeps.changed(h.key, h.board.Purse)
	h.saver.Changed(t)
	h.p.settle()
}

// phases is the game's own record of its phase.
type phases struct {
	n      uint64
	due    time.Duration // by the clock of the phase
	scaled bool
	runs   bool
}

// begin begins a phase. Its end must come in the first tick at or after its deadline.
func (h *gameRoom) begin(t *netloop.Tick, o command) {
	f := &h.phase
	f.n++
	n, length := f.n, time.Duration(1+o.N%6000)*time.Millisecond
	f.scaled, f.runs = o.N>>16%3 == 0, true
	f.due = h.phaseNow(t) + length
	next := phase.Phase{For: length, Scaled: f.scaled, End: func(t *netloop.Tick) { h.endPhase(t, n) }}
	if o.N>>20%2 == 0 {
		next.ForAbsent = time.Duration(1+o.N>>24%2000) * time.Millisecond
	}
	h.full, h.absent, h.absentFor = f.due, false, next.ForAbsent
	h.timer.Begin(t, next)
}

func (h *gameRoom) phaseNow(t *netloop.Tick) time.Duration {
	if h.phase.scaled {
		return t.ScaledTime()
	}
	return t.GameTime()
}

// away reports that the player of the phase is absent, or present.
func (h *gameRoom) away(t *netloop.Tick, o command) {
	absent := o.N%2 == 0
	if h.timer.SetAbsent(t, absent); absent == h.absent || !h.phase.runs || h.absentFor == 0 {
		return
	}
	if h.absent, h.phase.due = absent, h.full; absent {
		h.phase.due = min(h.full, h.phaseNow(t)+h.absentFor)
	}
}

// stopPhase ends the phase without its end.
func (h *gameRoom) stopPhase(t *netloop.Tick, _ command) {
	h.phase.runs = false
	h.timer.Stop(t)
}

func (h *gameRoom) endPhase(t *netloop.Tick, n uint64) {
	f := &h.phase
	h.p.turns.ended(h.key, n, *f, h.phaseNow(t), h.room.Spec().Rate.Period())
	f.runs = false
	if n%3 == 0 {
		h.begin(t, command{N: n * 7919})
	}
}

// sit asks for a seat in any table.
func (h *gameRoom) sit(t *netloop.Tick, c *netloop.Client, o command) {
	id, asked := c.ID(), h.p.rooms.now()
	v := netloop.Reservation{TTL: 3 * time.Second, Params: o.N}
	h.p.resources.match.Join(t, c.Join().Subject, v, func(t *netloop.Tick, p match.Place, err error) {
		h.p.matches.placed(h.key, asked, v, p, err)
		if c, ok := t.Client(id); ok && err == nil {
			c.Move(t, p.Tickets[0])
		}
	})
	h.p.settle()
}

// queue lets a client, or two, wait for a match.
func (h *gameRoom) wait(t *netloop.Tick, c *netloop.Client, o command) {
	if h.queue == nil {
		return
	}
	p := match.Party[uint64]{Players: []netloop.ClientID{c.ID()}, Properties: o.N >> 16 % 8}
	if mate := h.client(t, o.N>>24); mate != c && o.N>>32%2 == 0 {
		p.Players = append(p.Players, mate.ID())
	}
	waits := slices.ContainsFunc(p.Players, func(id netloop.ClientID) bool { return h.waiting[id] > 0 })
	err := h.queue.Add(t, p)
	if err == nil {
		h.parties++
		for _, id := range p.Players {
			h.waiting[id] = h.parties
		}
	}
	if waits != errors.Is(err, match.ErrWaiting) || err != nil && !waits {
		h.p.fail("matches", "room %q: a party of %v, of which a player waits: %v, is told %v", h.key.name, p.Players, waits, err)
	}
}

// forget removes the party of a client that has left.
func (h *gameRoom) forget(id netloop.ClientID) {
	if n := h.waiting[id]; n > 0 {
		for other, m := range h.waiting {
			if m == n {
				delete(h.waiting, other)
			}
		}
	}
}

// found sends the players of a match to one room.
func (h *gameRoom) found(t *netloop.Tick, m match.Match[uint64]) {
	h.p.matches.found(h, t, m)
	all := m.Players()
	for _, id := range all {
		delete(h.waiting, id)
	}
	h.matched++
	asked := h.p.rooms.now()
	v := netloop.Reservation{Seats: len(all), TTL: 3 * time.Second, Params: 1<<63 | h.key.inc<<16 | h.matched}
	h.p.resources.match.Join(t, "", v, func(t *netloop.Tick, p match.Place, err error) {
		h.p.matches.placed(h.key, asked, v, p, err)
		for i, id := range all {
			if c, ok := t.Client(id); ok && err == nil {
				c.Move(t, p.Tickets[i])
			}
		}
	})
	h.p.settle()
}

// The shape of matches.
const (
	matchTeams = 2
	teamSize   = 2
)

// services registers the parts of the room in its Open.
func (h *gameRoom) services(r *netloop.Room) {
	h.timer = phase.New(func(t *netloop.Tick) *phase.State { return &h.shown.o.Edit(t).Phase })
	if h.rules.Queue {
		h.waiting = map[netloop.ClientID]int{}
		h.queue = match.NewQueue(r, match.QueueConfig[uint64]{
			Teams: matchTeams, TeamSize: teamSize, Found: h.found, Weight: func(n uint64) float64 { return float64(n) },
			Distance:  func(a, b uint64) float64 { return float64(max(a, b) - min(a, b)) },
			Tolerance: func(waited time.Duration) float64 { return 2 + 2*waited.Seconds() },
		})
	}
	if h.rules.Tables {
		match.List(r, h.d.rows, netloop.RoomFilter[listing]{}, func(s *row, l netloop.RoomListing[listing]) {
			s.Name, s.Players = l.Name, uint16(l.Players)
		})
	}
	r.OnStart(func(t *netloop.Tick) {
		defer h.enter()()
		o := h.kinds.boards.class.Spawn(t, h.board)
		h.shown = &typed[board]{&h.kinds.boards, o, everyone}
		h.add(h.shown)
	})
}
