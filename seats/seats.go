package seats

import (
	"slices"
	"time"

	"github.com/netloop/netloop"
)

// Status tells whether the player of a seat is present.
type Status uint8

// The statuses of a player.
const (
	Here Status = iota
	Away        // has lost the connection, or has left, and may return to the seat
	Gone        // may not return any more; the seat is still shown, until [Seats.Unlock]
)

// String returns "here", "away" or "gone".
func (s Status) String() string {
	switch s {
	case Here:
		return "here"
	case Away:
		return "away"
	}
	return "gone"
}

// Presence is the replicated part of a [Seat]: a field of a class.
type Presence struct {
	Status Status
	// Until is the end of the time for which the seat of an absent player is kept; zero: it has no
	// end, or the player is not away.
	Until netloop.Deadline
}

// Config describes the seats of a room.
type Config[S any] struct {
	// Class is the class of the objects: one for each seat.
	Class *netloop.Class[S]
	// Presence returns the Presence in the state of an object.
	Presence func(*S) *Presence
	// Most is the number of seats; zero means [netloop.RoomSpec] MaxClients.
	Most int
	// Keep is the time for which an absent player may return to the seat, while no match is locked
	// ([Seats.Lock]): zero means not at all, and below zero without a limit. It is game time since
	// the player has lost the connection or has left. A client that may still resume
	// ([netloop.RoomSpec] KeepDropped) keeps its seat in any case.
	Keep time.Duration
	// Stored are the players of a stored match, in the order of their seats. Their seats exist
	// from the first tick on, even if they are more than Most, and they are away. The match is
	// locked, and the seats are kept without a limit.
	Stored []string
	// Changed is called when the status of a seat has changed, and for a new and a freed seat. A
	// freed seat has the status Gone, is not in [Seats.All] any more, and its object has despawned.
	// Nil: not called. It is not called for the seats of Stored.
	Changed func(t *netloop.Tick, s *Seat[S])
}

// Seats are the seats of a room. They belong to the room's goroutine.
type Seats[S any] struct {
	cfg      Config[S]
	spec     netloop.RoomSpec
	all      []*Seat[S]
	byPlayer map[player]*Seat[S]
	locked   bool
	keep     time.Duration // of the match, or Config.Keep
}

// player is the owner of a seat: a subject, or a client without one.
type player struct {
	subject string
	client  netloop.ClientID
}

func playerOf(c *netloop.Client) player {
	if subject := c.Join().Subject; subject != "" {
		return player{subject: subject}
	}
	return player{client: c.ID()}
}

// Seat is the seat of one player.
type Seat[S any] struct {
	Object *netloop.Object[S] // do not despawn it, and do not change its owner

	player player
	client *netloop.Client // nil: the player has left
	status Status
	since  time.Duration // game time at which the player went away
	timer  netloop.Timer // ends the time of an absent player
}

// Player returns the subject of the seat's player, "" for a client without one.
func (s *Seat[S]) Player() string { return s.player.subject }

// Status returns the status of the player.
func (s *Seat[S]) Status() Status { return s.status }

// Here reports whether the player is present. It may be called for a nil Seat.
func (s *Seat[S]) Here() bool { return s != nil && s.status == Here }

// New makes the seats of a room. Call it in [netloop.Game] Open, before the game registers its own
// functions for the same events: then these see the seats as they are after the event.
func New[S any](r *netloop.Room, c Config[S]) *Seats[S] {
	if c.Class == nil || c.Presence == nil || c.Most < 0 {
		panic("seats: New: a Config needs a Class and a Presence, and no Most below 0")
	}
	s := &Seats[S]{cfg: c, spec: r.Spec(), byPlayer: map[player]*Seat[S]{}, keep: c.Keep}
	if s.cfg.Most == 0 {
		s.cfg.Most = s.spec.MaxClients
	}
	if len(c.Stored) > 0 {
		s.locked, s.keep = true, -1
		r.OnStart(s.restore)
	}
	r.OnJoin(func(t *netloop.Tick, c *netloop.Client) error { s.enter(t, s.Of(c), c); return nil })
	r.OnResume(func(t *netloop.Tick, c *netloop.Client) { s.enter(t, s.Of(c), c) })
	r.OnDrop(func(t *netloop.Tick, c *netloop.Client) { s.absent(t, c, false) })
	r.OnLeave(func(t *netloop.Tick, c *netloop.Client, _ *netloop.Closed) { s.absent(t, c, true) })
	return s
}

// restore makes the seats of Stored.
func (s *Seats[S]) restore(t *netloop.Tick) {
	for _, subject := range s.cfg.Stored {
		at := s.add(t, player{subject: subject})
		s.wait(t, at)
	}
}

// Sit gives the player of a client a free seat, or returns the seat that the player has. It returns
// nil for a spectator, and if no seat is free or a match is locked. The player is present if any
// client of the player is connected.
func (s *Seats[S]) Sit(t *netloop.Tick, c *netloop.Client) *Seat[S] {
	if at := s.Of(c); at != nil || c.Spectator() || s.locked || len(s.all) >= s.cfg.Most {
		return at
	}
	if other := s.other(t, c); !c.Connected() && other != nil {
		c = other
	}
	at := s.add(t, playerOf(c))
	at.status = Away // The new status is reported as a change.
	if c.Connected() {
		s.enter(t, at, c)
	} else {
		at.client = c
		s.wait(t, at)
		s.report(t, at)
	}
	return at
}

// Free takes the seat from its player, after a resignation for instance, as if the time of an
// absent player had passed.
func (s *Seats[S]) Free(t *netloop.Tick, at *Seat[S]) {
	if at.status != Gone {
		at.timer.Stop()
		at.Object.SetOwner(t, 0)
		s.end(t, at)
		s.report(t, at)
	}
}

// Lock begins a match: the seats belong to their players, and no other player gets one until
// [Seats.Unlock]. An absent player may return for the time keep since the player has lost the
// connection or has left; below zero without a limit. Later the player is gone, and the seat
// remains.
func (s *Seats[S]) Lock(t *netloop.Tick, keep time.Duration) {
	s.locked, s.keep = true, keep
	s.settle(t)
}

// Unlock ends a match: the seats of gone players become free at once, and the seats of other
// absent players once [Config] Keep has passed.
func (s *Seats[S]) Unlock(t *netloop.Tick) {
	s.locked, s.keep = false, s.cfg.Keep
	s.settle(t)
}

// Of returns the seat of the player of a client, nil without one, and for a spectator.
func (s *Seats[S]) Of(c *netloop.Client) *Seat[S] {
	if c.Spectator() {
		return nil
	}
	return s.byPlayer[playerOf(c)]
}

// All returns the seats in the order in which they were taken, valid until the next change: when a
// seat is freed, the later ones move up. The caller must not change the slice.
func (s *Seats[S]) All() []*Seat[S] { return s.all }

// Players returns the subjects of the players, in the order of All.
func (s *Seats[S]) Players() []string {
	players := make([]string, len(s.all))
	for i, at := range s.all {
		players[i] = at.player.subject
	}
	return players
}

// AnyHere reports whether a player is present.
func (s *Seats[S]) AnyHere() bool { return slices.ContainsFunc(s.all, (*Seat[S]).Here) }

// add makes the seat of a player.
func (s *Seats[S]) add(t *netloop.Tick, p player) *Seat[S] {
	var state S
	at := &Seat[S]{player: p, since: t.GameTime(), Object: s.cfg.Class.Spawn(t, state, netloop.WhenOwnerLeaves(netloop.LeaveKeeps))}
	s.all = append(s.all, at)
	s.byPlayer[p] = at
	return at
}

// enter makes a client the present client of a seat; at may be nil.
func (s *Seats[S]) enter(t *netloop.Tick, at *Seat[S], c *netloop.Client) {
	if at == nil {
		return
	}
	at.client = c
	at.timer.Stop()
	if at.Object.Owner() != c.ID() {
		at.Object.SetOwner(t, c.ID())
	}
	if s.show(t, at, Here, netloop.Deadline{}) {
		s.report(t, at)
	}
}

// absent handles the present client of a seat that has left, or lost its connection.
func (s *Seats[S]) absent(t *netloop.Tick, c *netloop.Client, left bool) {
	at := s.Of(c)
	if at == nil || at.client != c {
		return
	}
	other := s.other(t, c)
	if other != nil && other.Connected() {
		s.enter(t, at, other)
		return
	}
	if left {
		at.client = other
	}
	if at.status == Here {
		at.since = t.GameTime()
	}
	if s.wait(t, at) {
		s.report(t, at)
	}
}

// other returns another client of the player of c, if possible a connected one.
func (s *Seats[S]) other(t *netloop.Tick, c *netloop.Client) (found *netloop.Client) {
	if s.spec.Duplicate != netloop.DuplicateAllow || c.Join().Subject == "" {
		return nil
	}
	for o := range t.Clients() {
		if o != c && !o.Spectator() && o.Join().Subject == c.Join().Subject && (found == nil || o.Connected()) {
			found = o
		}
	}
	return found
}

// settle applies new times to the seats of absent players.
func (s *Seats[S]) settle(t *netloop.Tick) {
	var changed []*Seat[S]
	for _, at := range slices.Clone(s.all) {
		if at.status != Here && s.wait(t, at) {
			changed = append(changed, at)
		}
	}
	for _, at := range changed { // The game may lock and unlock.
		s.report(t, at)
	}
}

// wait sets the time of an absent player, or ends it. It reports whether the status has changed, or
// the seat is free.
func (s *Seats[S]) wait(t *netloop.Tick, at *Seat[S]) (changed bool) {
	at.timer.Stop()
	keep := s.keep
	switch {
	case at.client != nil && keep >= 0: // It may resume.
		keep = max(keep, s.spec.KeepDropped)
	case at.client == nil && at.player.subject == "": // It cannot return.
		keep = 0
	}
	left := keep - (t.GameTime() - at.since)
	switch {
	case at.status == Gone && s.locked:
		return false
	case at.status == Gone:
		return s.end(t, at)
	case keep < 0:
		return s.show(t, at, Away, netloop.Deadline{})
	case left > 0:
		until := t.In(left)
		at.timer = t.At(until, func(t *netloop.Tick) {
			if s.wait(t, at) {
				s.report(t, at)
			}
		})
		return s.show(t, at, Away, until)
	case at.client != nil: // It leaves in this tick.
		return s.show(t, at, Away, netloop.Deadline{})
	}
	return s.end(t, at)
}

// end takes the seat from its player, and frees it if no match is locked.
func (s *Seats[S]) end(t *netloop.Tick, at *Seat[S]) (changed bool) {
	delete(s.byPlayer, at.player)
	if s.locked {
		return s.show(t, at, Gone, netloop.Deadline{})
	}
	at.status = Gone
	i := slices.Index(s.all, at)
	s.all = slices.Delete(s.all, i, i+1)
	at.Object.Despawn(t)
	return true
}

// show stores and replicates the status of a seat, and reports whether it has changed.
func (s *Seats[S]) show(t *netloop.Tick, at *Seat[S], status Status, until netloop.Deadline) (changed bool) {
	changed = at.status != status
	at.status = status
	*s.cfg.Presence(at.Object.Edit(t)) = Presence{status, until}
	return changed
}

// report calls the game.
func (s *Seats[S]) report(t *netloop.Tick, at *Seat[S]) {
	if s.cfg.Changed != nil {
		s.cfg.Changed(t, at)
	}
}
