package simulation

import (
	"maps"
	"slices"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
)

// rooms checks seats and the life of clients. The documents: RoomSpec and the hooks in GUIDE.md and
// in the comments of netloop.Room; "A client outlives its connections" in ARCHITECTURE.md.
//
//   - No room has more players or spectators than seats, and no player twice unless it may.
//   - OnJoin comes first, then OnDrop and OnResume, then OnLeave once, for each client.
//   - OnRole follows the leave and the join of a player in another role.
//   - Each room of a name has a larger Incarnation than all before.
//   - At rest each seat is of a client that plays, each client that plays has a seat, no client is
//     loading, rooms that are empty for long have closed, and no room is overloaded.
//   - After the end each client has left.
type rooms struct {
	p       *play
	byName  map[string]*roomFacts
	newest  map[string]uint64        // incarnation
	gone    map[string]time.Duration // when the last room of a name ended
	lastEnd time.Duration            // of any room
	lived   time.Duration            // of ended rooms
	stalled time.Duration            // end of the last stall
	stalls  time.Duration            // of all of them
	delayed bool                     // a room has delayed spectators
}

// maxDelay is the largest SpectatorDelay that is drawn.
const maxDelay = 3 * time.Second

type roomFacts struct {
	key      roomKey
	gameRoom *gameRoom
	spec     netloop.RoomSpec
	in       map[netloop.ClientID]*seat
	left     map[string]time.Duration // when players left, by subject
	watched  map[string]bool          // whether they left as spectators
	opened   time.Duration
	joined   time.Duration             // newest join
	empty    time.Duration             // since then, if it is
	kicked   map[netloop.ClientID]bool // by the operator
	unseated bool                      // a function of OnJoin has panicked before the game's
}

type seat struct {
	bot       int
	subject   string
	spectator bool
	dropped   bool
}

func newRooms(p *play) rooms {
	return rooms{p: p, byName: map[string]*roomFacts{}, newest: map[string]uint64{}, gone: map[string]time.Duration{}}
}

func (r *rooms) now() time.Duration {
	if r.p.w == nil {
		return 0
	}
	return r.p.w.Now()
}

func (r *rooms) opened(h *gameRoom) {
	r.p.server = h.room.Server()
	name := h.key.name
	r.p.note("room %q opens, incarnation %d", name, h.key.inc)
	if h.key.inc <= r.newest[name] {
		r.p.fail("incarnations", "room %q has the incarnation %d after one of %d", name, h.key.inc, r.newest[name])
	}
	r.newest[name] = h.key.inc
	r.delayed = r.delayed || h.room.Spec().SpectatorDelay > 0
	r.byName[name] = &roomFacts{key: h.key, gameRoom: h, spec: h.room.Spec(), in: map[netloop.ClientID]*seat{}, left: map[string]time.Duration{}, watched: map[string]bool{}, kicked: map[netloop.ClientID]bool{}, opened: r.now(), empty: r.now()}
}

// of returns the facts of a room that has not ended, or nil.
func (r *rooms) of(key roomKey) *roomFacts {
	if f := r.byName[key.name]; f != nil && f.key == key {
		return f
	}
	return nil
}

func (r *rooms) joined(key roomKey, c *netloop.Client, bot int) {
	f := r.of(key)
	s := &seat{bot: bot, subject: c.Join().Subject, spectator: c.Spectator()}
	r.p.note("room %q: client %d of bot %d joins, spectator %v", key.name, c.ID(), bot, s.spectator)
	if f == nil || f.in[c.ID()] != nil {
		r.p.fail("seats", "client %d joins room %q, which has ended or has it", c.ID(), key.name)
		return
	}
	f.joined = r.now()
	for id, other := range f.in {
		if s.subject != "" && other.subject == s.subject && f.spec.Duplicate != netloop.DuplicateAllow {
			r.p.fail("seats", "player %q joins room %q as client %d, and is in as client %d", s.subject, key.name, c.ID(), id)
		}
	}
	f.in[c.ID()] = s
	r.p.secrets.is(bot, key, c.ID())
	players, spectators := f.count()
	if players > f.spec.MaxClients || spectators > f.spec.MaxSpectators {
		r.p.fail("seats", "room %q has %d players and %d spectators on %d and %d seats", key.name, players, spectators, f.spec.MaxClients, f.spec.MaxSpectators)
	}
}

func (f *roomFacts) count() (players, spectators int) {
	for _, s := range f.in {
		if s.spectator {
			spectators++
		} else {
			players++
		}
	}
	return players, spectators
}

// seat returns the seat of a client, which must exist.
func (r *rooms) seat(key roomKey, c *netloop.Client, what string) *seat {
	if f := r.of(key); f != nil && f.in[c.ID()] != nil {
		return f.in[c.ID()]
	}
	r.p.fail("seats", "%s of client %d, which is not in room %q", what, c.ID(), key.name)
	return &seat{}
}

func (r *rooms) dropped(key roomKey, c *netloop.Client) {
	s := r.seat(key, c, "OnDrop")
	r.p.note("room %q: client %d is dropped", key.name, c.ID())
	if s.dropped {
		r.p.fail("seats", "client %d is dropped twice", c.ID())
	}
	s.dropped = true
}

func (r *rooms) resumed(key roomKey, c *netloop.Client, bot int) {
	s := r.seat(key, c, "OnResume")
	r.p.note("room %q: client %d of bot %d resumes", key.name, c.ID(), bot)
	if s.spectator != c.Spectator() {
		r.p.fail("seats", "client %d of room %q plays for a while and watches for a while", c.ID(), key.name)
	}
	s.dropped, s.bot = false, bot
	if f := r.of(key); f != nil && f.kicked[c.ID()] { // Another program has taken the client over.
		r.p.reasons.kick(bot)
	}
	r.p.secrets.is(bot, key, c.ID())
}

// role is called once a client has joined in another role.
func (r *rooms) role(key roomKey, c *netloop.Client) {
	s := r.seat(key, c, "OnRole")
	r.p.note("room %q: client %d has another role", key.name, c.ID())
	if f := r.of(key); f != nil && (f.left[s.subject] != r.now() || f.watched[s.subject] == s.spectator) {
		r.p.fail("seats", "client %d of room %q has no new role", c.ID(), key.name)
	}
}

func (r *rooms) left(key roomKey, c *netloop.Client) {
	if f := r.of(key); f != nil && f.unseated && f.in[c.ID()] == nil {
		f.unseated = false
		return
	}
	s := r.seat(key, c, "OnLeave")
	r.p.note("room %q: client %d leaves", key.name, c.ID())
	if f := r.of(key); f != nil {
		if s.subject != "" {
			f.left[s.subject], f.watched[s.subject] = r.now(), s.spectator
		}
		if delete(f.in, c.ID()); len(f.in) == 0 {
			f.empty = r.now()
		}
	}
}

// ended removes a room. Its clients have left before.
func (r *rooms) ended(key roomKey) {
	f := r.of(key)
	if f == nil {
		return
	}
	r.p.note("room %q ends", key.name)
	for id := range f.in {
		r.p.fail("seats", "room %q ends with client %d, for which OnLeave was not called", key.name, id)
	}
	r.lived += r.now() - f.opened
	r.gone[key.name], r.lastEnd = r.now(), r.now()
	delete(r.byName, key.name)
}

// endedAt returns when the last room of a name has ended, now if it runs, and whether there was
// one.
func (r *rooms) endedAt(name string) (time.Duration, bool) {
	if r.byName[name] != nil {
		return r.now(), true
	}
	at, is := r.gone[name]
	return at, is
}

// crashed removes all rooms.
func (r *rooms) crashed() {
	for _, f := range r.byName {
		r.lived += r.now() - f.opened
	}
	clear(r.byName)
	r.p.ends.crashed()
	r.p.operator.crashed()
	r.p.between.crashed()
	clear(r.p.rights.used) // A server keeps the ids of tokens in memory.
}

func (r *rooms) names() []string { return slices.Sorted(maps.Keys(r.byName)) }

// inTicks calls a function in a tick of each room.
func (r *rooms) inTicks(look func(name string, f *roomFacts, t *netloop.Tick)) {
	for _, name := range r.names() {
		if f := r.byName[name]; f != nil { // In real time rooms end meanwhile.
			r.p.w.tick(name, func(t *netloop.Tick) { look(name, f, t) })
		}
	}
}

func (r *rooms) current(name string) roomKey {
	if f := r.byName[name]; f != nil {
		return f.key
	}
	return roomKey{name: name}
}

func (r *rooms) codeOf(name string) string {
	if f := r.byName[name]; f != nil {
		return f.spec.Code
	}
	return ""
}

// check compares the server's own numbers with the limits.
func (r *rooms) check() {
	listed := 0
	for info := range r.p.server.Rooms() {
		if listed++; r.byName[info.Spec.Name] == nil && r.p.w.Ended() == nil && !r.p.real {
			r.p.fail("rooms", "the server has room %q, which has ended", info.Spec.Name)
		}
		players := info.Clients - info.Spectators
		if f := r.byName[info.Spec.Name]; f != nil && info.Reserved > 0 {
			f.empty = r.now() // CloseEmpty waits for reserved seats.
		}
		if players > info.Spec.MaxClients || info.Spectators > info.Spec.MaxSpectators || info.Clients+info.Reserved > info.Spec.MaxClients+info.Spec.MaxSpectators {
			r.p.fail("seats", "room %q has sold %d, %d and %d seats of %d and %d", info.Spec.Name, players, info.Spectators, info.Reserved, info.Spec.MaxClients, info.Spec.MaxSpectators)
		}
	}
	if most := r.p.story.Server.MaxRooms; most > 0 && listed > most {
		r.p.fail("rooms", "the server has %d rooms of %d", listed, most)
	}
}

// patience is how long the story waits after the last trouble: ten seconds, or until the seats of
// all clients that have gone are free.
func (r *rooms) patience() time.Duration {
	wait := 10 * time.Second
	lost := max(r.p.story.Server.LostAfter, 5*time.Second)
	for _, f := range r.byName {
		wait = max(wait, lost+f.spec.KeepDropped+3*time.Second+8*f.spec.Rate.Period())
	}
	return wait
}

// slowest returns the longest time between two snapshots of a room.
func (r *rooms) slowest() (period time.Duration) {
	for _, f := range r.byName {
		period = max(period, time.Duration(max(f.spec.SendEvery, 1))*f.spec.Rate.Period())
	}
	return period
}

// settled is the longest time that a client may be on its way, at rest: an attempt to connect.
const settled = 6 * time.Second

// stall notes that the server stands still for a time.
func (r *rooms) stall(d time.Duration) {
	r.stalled = r.now() + d
	r.stalls += d
}

// rest looks at seats and phases.
func (r *rooms) rest() {
	for _, g := range r.p.all {
		phase := g.c.State().Phase
		if g.gone || phase == client.Reconnecting && r.now()-g.since < time.Minute {
			continue
		}
		if phase != client.Playing && phase != client.Closed && r.now()-g.since > settled {
			r.p.fail("loading", "bot %d is %v for %v, room %q", g.n, phase, r.now()-g.since, g.c.Room())
		}
		f := r.byName[g.c.Room()]
		if phase != client.Playing || f != nil && f.spec.SpectatorDelay > 0 {
			continue
		}
		if f == nil && r.now()-r.gone[g.c.Room()] <= maxDelay+time.Second {
			continue // A spectator sees the end of the room later.
		}
		if f == nil || f.in[g.c.ID()] == nil || f.in[g.c.ID()].bot != g.n {
			r.p.fail("seats", "bot %d plays as client %d of room %q, and has no seat", g.n, g.c.ID(), g.c.Room())
		}
	}
	for _, name := range r.names() {
		f := r.byName[name]
		for _, id := range slices.Sorted(maps.Keys(f.in)) {
			g := r.p.bots[f.in[id].bot]
			switch {
			case g == nil || g.gone || g.c.Closed() != nil:
				r.p.fail("seats", "room %q keeps a seat for client %d of bot %d, which has gone", name, id, f.in[id].bot)
			case g.playing() && (g.c.ID() != id || g.c.Room() != name):
				r.p.fail("seats", "room %q keeps a seat for client %d of bot %d, which plays as client %d of room %q", name, id, g.n, g.c.ID(), g.c.Room())
			}
		}
		r.sleeps(name, f)
		for info := range r.p.server.Rooms() {
			if info.Spec.Name == name && info.Reserved > 0 {
				r.p.fail("seats", "room %q keeps %d seats for tickets that have expired", name, info.Reserved)
			}
		}
		if e := f.spec.CloseEmpty; e > 0 && f.spec.SpectatorDelay == 0 && len(f.in) == 0 && r.now()-max(f.empty, r.stalled) > e+settled {
			r.p.fail("ends", "room %q is empty since %v and does not close", name, f.empty)
		}
	}
}

// sleeps checks that an empty room sleeps if it may, and no other one. The end of another room
// wakes it for a while, if it lists rooms, and a slow room with overload does not sleep yet. Real
// time does not show it.
func (r *rooms) sleeps(name string, f *roomFacts) {
	w, virtual := r.p.w.(virtualWorld)
	if !virtual {
		return
	}
	asleep, long := w.Room(name).Asleep(), r.now()-max(f.empty, r.stalled, r.lastEnd) > settled
	long = long && (f.gameRoom.room.Overload() == netloop.OverloadNone || !f.slow())
	if asleep && !f.spec.Sleep || !asleep && f.spec.Sleep && len(f.in) == 0 && long {
		r.p.fail("sleep", "room %q is empty since %v and is asleep: %v", name, f.empty, asleep)
	}
}

// slow reports whether the ladder of the overload takes longer to end than the quiet part of a
// story: it counts ticks.
func (f *roomFacts) slow() bool { return f.spec.Rate.Period() > 50*time.Millisecond }

// normal looks at the overload. In real time it depends on the machine.
func (r *rooms) normal() {
	if r.p.real {
		return
	}
	for _, name := range r.names() {
		if f := r.byName[name]; f.gameRoom.room.Overload() != netloop.OverloadNone && !f.slow() {
			r.p.fail("overload", "room %q is still %v, %v after the last stall", name, f.gameRoom.room.Overload(), r.now()-r.stalled)
		}
	}
}

// over looks for clients that have never left, and bots that were not told the end.
func (r *rooms) over() {
	for _, name := range r.names() {
		r.p.fail("ends", "room %q is open after the end of the server, with %d clients", name, len(r.byName[name].in))
	}
	for _, g := range r.p.all {
		if phase := g.c.State().Phase; !g.gone && phase != client.Closed && phase != client.Reconnecting && r.now()-g.since > settled {
			r.p.fail("ends", "bot %d was told nothing of the end of the server: it is %v in room %q", g.n, phase, g.c.Room())
		}
	}
}
