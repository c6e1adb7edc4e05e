package seats

import (
	"crypto/rand"
	"crypto/sha256"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/netloop/netloop/internal/transport"
)

// Seats holds the seats of a room: one per client, from its admission until it has left.
// Admissions use it on their own goroutines. A seat outlives the connections of its client: a new
// connection with the seat's secret, or of the same player, takes it over.
type Seats struct {
	mu       sync.Mutex
	Playing  Count   // the seats of players; its Most is set before the first use
	Watching Count   // the seats of spectators
	locked   bool    // only clients with a ticket or a seat are admitted
	awaited  []*Seat // seats of disconnected clients, in the order of their loss
	tickets  map[secretID]*Ticket
	bound    map[secretID]*Ticket // bound tickets by the keys of their original texts
	expires  time.Duration        // no ticket expires before this time
	secrets  map[secretID]*Seat
	players  map[string]*Seat                // by subject; with Allow its first seat
	sessions map[*transport.Session]struct{} // sessions that have not ended
	closed   *transport.Closed               // the room has ended
	// set when an empty room ends: no more seats are assigned
	ending  *transport.Closed
	changed atomic.Bool // a count has changed since the last tick
	Rouse   func()      // wakes the room, which publishes the change; nil: not called
	Places  places
}

// changedLocked records that a count has changed, and wakes a sleeping room: its next tick
// publishes the free seats and updates the next expiry of a ticket.
func (s *Seats) changedLocked() {
	s.changed.Store(true)
	if s.Rouse != nil {
		s.Rouse()
	}
}

// Changed reports whether a count has changed since the last tick.
func (s *Seats) Changed() bool { return s.changed.Load() }

// Ticked resets Changed, and frees the seats of expired tickets. The room calls it after each
// tick.
func (s *Seats) Ticked(now time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expireLocked(now)
	s.changed.Store(false)
}

// Vacate makes a room without taken or reserved seats refuse all requests for seats, with the
// reason why, and returns true. If a seat is taken or reserved, Vacate has no effect and returns
// false.
func (s *Seats) Vacate(now time.Duration, why *transport.Closed) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expireLocked(now)
	if s.Playing.taken+s.Playing.held+s.Watching.taken+s.Watching.held > 0 {
		return false
	}
	s.ending = why
	return true
}

// Sizes returns the number of entries of each table. Any goroutine may call it.
func (s *Seats) Sizes() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return map[string]int{"tickets": len(s.tickets), "bound": len(s.bound), "secrets": len(s.secrets), "players": len(s.players), "sessions": len(s.sessions)}
}

// refusedLocked returns the error for requests for seats after Vacate; nil before.
func (s *Seats) refusedLocked() error {
	if s.ending == nil {
		return nil
	}
	return &transport.Refusal{Code: s.ending.Code, Text: s.ending.Text}
}

// Count holds the numbers of taken and of reserved seats, and the limit of their sum, for players
// or for spectators.
type Count struct {
	taken int
	held  int // seats reserved for tickets, in addition
	Most  int
}

func (p *Count) full() bool { return p.taken+p.held >= p.Most }

// kindLocked returns the seats of a kind.
func (s *Seats) kindLocked(spectator bool) *Count {
	if spectator {
		return &s.Watching
	}
	return &s.Playing
}

// Seat is the seat of one client. The mutex of its [Seats] guards all fields except ID.
//
// A seat has owners: its client in the room, and each connection that was admitted to the seat and
// has not entered the room yet. The seat is released when its last owner has left.
type Seat struct {
	ID      uint64
	subject string
	conns   uint64 // number of connections so far: also the number of the newest connection
	attempt uint64 // number of the client's attempt to connect that led to the newest connection
	// secret was issued to the newest connection. before is the secret that the client showed to
	// make that connection; it is valid until data arrives over the connection, because secret may
	// never have reached the client.
	secret, before secretID
	// spent is the secret that became invalid last. A client with this secret is refused: either a
	// later connection of the client was faster, or the secret was stolen.
	spent   secretID
	awaited bool   // the seat's client has lost its connection
	holder  string // the player of the newest join, or the address of a client without one

	entering int     // number of admitted connections that have not entered the room
	taken    bool    // the room has a client in it
	plays    bool    // it counts in Playing
	watches  bool    // it counts in Watching; in both while the role changes
	watching bool    // the client in it is a spectator; valid while taken
	ticket   *Ticket // the ticket of the seat, until its client has sent data
	who      *Join   // join of the newest admission without a secret
	place    string  // the player that has its place in the seat; empty: none
}

// secretLen is the length, in bytes, of the secret with which a client resumes.
const secretLen = 32

// secretID is the key of a secret. It is a digest, so that the time of a look-up does not reveal
// the secret.
type secretID [sha256.Size]byte

// Request is a request for a seat that admission has approved.
type Request struct {
	Who    *Join
	Policy SameSubject
	Ticket *Ticket // nil: none
	// Otherwise is the error for a client without a ticket and without a seat. If it is nil, such
	// a client may take a free seat.
	Otherwise error
	// Placed means that the room is the place of the player. The seat keeps the place from then
	// on.
	Placed bool
	NextID func() uint64
	// Evicts is the id of the client that loses its seat to the requesting client; 0: none. Assign
	// sets it.
	Evicts uint64
}

// Assign returns a seat for a client: the seat of its player if the policy is TakeOver, else the
// seat of its ticket, else a free seat. conn is the number of the connection, which owns the seat
// until Entered. The error is a refusal for the client.
func (s *Seats) Assign(q *Request) (at *Seat, conn uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	own, err := s.ownLocked(q)
	switch {
	case err != nil:
		return nil, 0, err
	case own != nil:
		return s.takeOverLocked(own, q)
	}
	spectator := q.Who.Spectator
	switch t, kind := q.Ticket, s.kindLocked(spectator); {
	case t != nil && s.tickets[t.id] != t: // The ticket was used up meanwhile.
		return nil, 0, ErrTicket
	case t != nil && t.seat != nil:
		return s.takeOverLocked(t.seat, q)
	case t == nil && q.Otherwise != nil:
		return nil, 0, q.Otherwise
	case t == nil && s.locked:
		return nil, 0, errLocked
	case t == nil && kind.full() && !s.yieldLocked(q):
		return nil, 0, ErrFull(kind.Most)
	}
	return s.admitLocked(&Seat{ID: q.NextID()}, q)
}

// ownLocked returns the seat of the player that a request takes over, or nil. The error is a
// refusal of all requests of the player.
func (s *Seats) ownLocked(q *Request) (own *Seat, err error) {
	if err := s.refusedLocked(); err != nil {
		return nil, err
	}
	own = s.players[q.Who.Subject]
	switch {
	case q.Who.Subject == "" || own == nil || q.Policy == Allow:
		return nil, nil
	case q.Policy == Refuse:
		return nil, transport.Refuse(transport.CodeRefused, "you are in the room already")
	}
	return own, nil
}

// takeOverLocked admits another connection, of the same player or with the same ticket, to a seat,
// and invalidates the seat's secrets. A change between player and spectator needs a free seat of
// the new kind, or a ticket for such a seat.
func (s *Seats) takeOverLocked(own *Seat, q *Request) (at *Seat, conn uint64, err error) {
	if kind := s.kindLocked(q.Who.Spectator); !*own.counted(q.Who.Spectator) && !s.redeemsLocked(q.Ticket) && kind.full() {
		return nil, 0, ErrFull(kind.Most)
	}
	s.forgetLocked(own)
	return s.admitLocked(own, q)
}

// admitLocked admits a connection to a seat, and assigns the connection's ticket to the seat.
func (s *Seats) admitLocked(at *Seat, q *Request) (*Seat, uint64, error) {
	redeems := s.redeemsLocked(q.Ticket)
	if redeems || at.ticket != nil && at.ticket.Spectator != q.Who.Spectator {
		s.usedLocked(at) // An older ticket of the player is void.
	}
	if redeems {
		s.seatLocked(q.Ticket, at)
	}
	if q.Ticket != nil {
		q.Ticket.shown = false
	}
	s.placeLocked(at, q)
	s.nameLocked(at, q.Who.Subject)
	s.countLocked(at, q.Who.Spectator, true)
	at.who, at.holder, at.attempt = q.Who, q.Who.Holder().Key, 0
	at.conns++
	at.entering++
	return at, at.conns, nil
}

// HeldShare limits the seats that the disconnected clients of one player or address may keep when
// a new client needs a seat. The limit is 1/HeldShare of the seats of that kind, but at least one
// seat.
const HeldShare = 4

// yieldLocked frees a seat in a full room for a new client, if the disconnected clients of one
// player or address hold more seats than HeldShare permits. Otherwise an address could fill a room
// with connections that vanish. The room removes the dropped client when the new client enters.
func (s *Seats) yieldLocked(q *Request) bool {
	at := s.yieldingLocked(q)
	if at == nil {
		return false
	}
	s.forgetLocked(at)
	s.countLocked(at, q.Who.Spectator, false)
	q.Evicts = at.ID
	return true
}

// yieldingLocked returns the seat that yieldLocked frees, or nil. Among the holders it selects the
// one with the most seats of disconnected clients, and the seat of the client that was dropped
// first. A new client never gets a seat of its own holder this way.
func (s *Seats) yieldingLocked(q *Request) *Seat {
	spectator := q.Who.Spectator
	kind, held, most := s.kindLocked(spectator), map[string]int{}, ""
	for _, at := range s.awaited {
		if at.yields(spectator) {
			if held[at.holder]++; held[at.holder] > held[most] {
				most = at.holder
			}
		}
	}
	if held[most] <= max(kind.Most/HeldShare, 1) || most == q.Who.Holder().Key {
		return nil
	}
	for _, at := range s.awaited {
		if at.holder == most && at.yields(spectator) {
			return at
		}
	}
	return nil
}

// yields reports whether a new client of a kind may get the seat: the seat's client is
// disconnected and of the same kind, and no connection is being admitted to the seat.
func (at *Seat) yields(spectator bool) bool {
	return at.awaited && at.entering == 0 && at.watching == spectator && *at.counted(spectator)
}

// nameLocked sets the player of a seat, and indexes the seat by the player. The index holds only
// the first of several seats of a player.
func (s *Seats) nameLocked(at *Seat, subject string) {
	if at.subject != subject && s.players[at.subject] == at {
		delete(s.players, at.subject)
	}
	at.subject = subject
	if subject == "" || s.players[subject] != nil {
		return
	}
	if s.players == nil {
		s.players = map[string]*Seat{}
	}
	s.players[subject] = at
}

// counted returns the flag that is set while the seat counts among the seats of a kind.
func (at *Seat) counted(spectator bool) *bool {
	if spectator {
		return &at.watches
	}
	return &at.plays
}

// countLocked counts a seat among the seats of a kind, or stops counting it.
func (s *Seats) countLocked(at *Seat, spectator, counts bool) {
	switch is := at.counted(spectator); {
	case counts && !*is:
		*is = true
		s.kindLocked(spectator).taken++
		s.changedLocked()
	case !counts && *is:
		*is = false
		s.kindLocked(spectator).taken--
		s.changedLocked()
	}
}

var errLocked = transport.Refuse(transport.CodeRefused, "the room is locked")

func ErrFull(most int) error {
	return transport.Refuse(transport.CodeFull, "the room is full: %d clients", most)
}

// Claim returns the seat of a secret, or nil if there is none, and the number of the new
// connection to the seat. It returns an error for a spent secret, and for an attempt that is not
// later than the last attempt.
func (s *Seats) Claim(secret []byte, attempt uint64) (at *Seat, conn uint64, err error) {
	if len(secret) != secretLen {
		return nil, 0, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	shown := secretID(sha256.Sum256(secret))
	switch at = s.secrets[shown]; {
	case at == nil:
		return nil, 0, nil
	case shown == at.spent, attempt != 0 && attempt <= at.attempt:
		return nil, 0, transport.Refuse(transport.CodeReplaced, "a newer connection has taken the seat")
	}
	if shown == at.secret {
		at.before, at.secret = at.secret, at.before
	}
	delete(s.secrets, at.secret) // The client may never have received it.
	at.secret = secretID{}
	at.attempt = attempt
	at.conns++
	at.entering++
	return at, at.conns, nil
}

// Knows reports whether a secret or a ticket is valid.
func (s *Seats) Knows(secret []byte, ticket string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(secret) == secretLen && s.secrets[sha256.Sum256(secret)] != nil || s.tickets[sha256.Sum256([]byte(ticket))] != nil
}

// Issue creates the secret of a seat's newest connection.
func (s *Seats) Issue(at *Seat) []byte {
	secret := make([]byte, secretLen)
	_, _ = rand.Read(secret) // It never fails.
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.secrets == nil {
		s.secrets = map[secretID]*Seat{}
	}
	delete(s.secrets, at.secret)
	at.secret = sha256.Sum256(secret)
	s.secrets[at.secret] = at
	return secret
}

// Heard records that data has arrived over a connection. If it is the newest connection of the
// seat, the seat's ticket becomes invalid, and the secret with which the client made the
// connection. If the ticket was bound to a player of another server, Heard returns the player.
func (s *Seats) Heard(at *Seat, conn uint64) *Identity {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at.conns != conn {
		return nil
	}
	var who *Identity
	if t := s.usedLocked(at); t != nil {
		who = t.player
	}
	if at.before != (secretID{}) {
		delete(s.secrets, at.spent)
		at.spent, at.before = at.before, secretID{}
	}
	return who
}

// Take records that the room has a client in a seat.
func (s *Seats) Take(at *Seat, spectator bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at.taken, at.watching = true, spectator
}

// Leave records that the client of a seat has left. While another connection is being admitted to
// the seat, the seat is kept for it.
func (s *Seats) Leave(at *Seat) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !at.taken {
		return
	}
	at.taken = false
	s.awaitLocked(at, false)
	s.settleLocked(at)
}

// Replayed records, in a replay, that a connection was admitted to a seat: with a join, or by the
// seat's secret if join is nil.
func (s *Seats) Replayed(at *Seat, join *Join) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at.entering++
	if join != nil {
		s.countLocked(at, join.Spectator, true)
	}
}

// Entered records that a connection that was admitted to a seat has entered the room, or was
// rejected there.
func (s *Seats) Entered(at *Seat) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at.entering--
	s.settleLocked(at)
}

// settleLocked releases a seat without an owner. If the seat is taken and no connection is being
// admitted to it, it then counts only for the role of its client, player or spectator.
func (s *Seats) settleLocked(at *Seat) {
	switch {
	case at.entering > 0:
	case at.taken:
		s.countLocked(at, !at.watching, false)
		if at.ticket != nil && at.ticket.Spectator != at.watching {
			s.returnLocked(at) // The connection with the ticket was rejected.
		}
	default:
		s.countLocked(at, true, false)
		s.countLocked(at, false, false)
		s.returnLocked(at)
		s.forgetLocked(at)
		s.freePlaceLocked(at)
		if s.players[at.subject] == at {
			delete(s.players, at.subject)
		}
	}
}

// forgetLocked invalidates the secrets of a seat.
func (s *Seats) forgetLocked(at *Seat) {
	delete(s.secrets, at.secret)
	delete(s.secrets, at.before)
	delete(s.secrets, at.spent)
	at.secret, at.before, at.spent = secretID{}, secretID{}, secretID{}
}

// Join returns the join with which a connection was last admitted to the seat. A connection that
// resumes the seat with its secret has no Join, and does not change the stored Join.
func (s *Seats) Join(at *Seat) *Join {
	s.mu.Lock()
	defer s.mu.Unlock()
	return at.who
}

// Count returns the number of taken seats of players and of spectators, and of reserved seats.
func (s *Seats) Count(now time.Duration) (players, spectators, reserved int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expireLocked(now)
	return s.Playing.taken, s.Watching.taken, s.Playing.held + s.Watching.held
}

// Players returns the number of players' seats that are taken or reserved.
func (s *Seats) Players(now time.Duration) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expireLocked(now)
	return s.Playing.taken + s.Playing.held
}

// Lock stops or permits the admission of clients with neither a ticket nor a seat.
func (s *Seats) Lock(locked bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.locked = locked
}

func (s *Seats) Locked() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.locked
}

// Full reports whether no new client can get a seat, and whether the room awaits clients:
// disconnected clients, and holders of tickets. full is false if the room awaits clients, or if it
// has players under the policy TakeOver.
func (s *Seats) Full(policy SameSubject, now time.Duration) (full, awaited bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expireLocked(now)
	awaited = len(s.awaited)+s.Playing.held+s.Watching.held > 0
	takenOver := policy == TakeOver && len(s.players) > 0
	return s.Playing.full() && s.Watching.full() && !awaited && !takenOver, awaited
}

// Returning reports whether new connections may take over the client of their player, because the
// policy is TakeOver and the room has players. If so, it also reports whether a client has lost
// its connection.
func (s *Seats) Returning(policy SameSubject) (players, dropped bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	players = policy == TakeOver && len(s.players) > 0
	return players, players && len(s.awaited) > 0
}

// Await records whether the client of a seat has lost its connection.
func (s *Seats) Await(at *Seat, awaited bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.awaitLocked(at, awaited)
}

func (s *Seats) awaitLocked(at *Seat, awaited bool) {
	switch {
	case awaited && !at.awaited:
		s.awaited = append(s.awaited, at)
	case !awaited && at.awaited:
		i := slices.Index(s.awaited, at)
		s.awaited = slices.Delete(s.awaited, i, i+1)
	}
	at.awaited = awaited
}
