package seats

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"time"

	"github.com/netloop/netloop/internal/transport"
)

// Identity is the player to which a ticket is bound: a player of another server, which has
// identified it, or stored its token. The client with the ticket needs no token.
type Identity struct {
	Subject string
	Claims  map[string]any
	Token   string // for the game's admission, if only that identifies the player; else empty
	From    Origin
}

// Origin is the client of another server that a ticket moves.
type Origin struct {
	Server string // its ID; empty: the client had no room
	Room   string
	Client uint64
	Number uint64 // random number of this binding, by which that room recognises the arrival
}

// errBound is the error for a ticket that is bound to another player.
var errBound = transport.Refuse(transport.CodeTicket, "the ticket is bound to another player")

// Bind binds a ticket to a player, and returns the text with which the player's client shows it:
// the original text, which other programs may know, is no longer admitted. It only binds the ticket
// again, for the same player, if the client did not get or use the returned text.
func (s *Seats) Bind(text string, who *Identity, now time.Duration) (bound string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expireLocked(now)
	if err := s.refusedLocked(); err != nil {
		return "", err
	}
	first := secretID(sha256.Sum256([]byte(text)))
	t := s.bound[first]
	if t == nil {
		t = s.tickets[first]
	}
	switch {
	case t == nil:
		return "", ErrTicket
	case t.shown || t.seat != nil:
		return "", errShown
	case t.player != nil && (first == t.id || t.player.Subject != who.Subject || t.player.From.Server != who.From.Server):
		return "", errBound
	}
	name, _ := TicketRoom(text)
	bound = newTicket(name)
	if s.bound == nil {
		s.bound = map[secretID]*Ticket{}
	}
	s.bound[first] = t
	delete(s.tickets, t.id)
	t.first, t.id, t.player = first, sha256.Sum256([]byte(bound)), who
	s.tickets[t.id] = t
	return bound, nil
}

// newTicket returns the text of a new ticket for a room.
func newTicket(room string) string {
	var secret [ticketSecret]byte
	_, _ = rand.Read(secret[:]) // It never fails.
	return base64.RawURLEncoding.EncodeToString(secret[:]) + ticketMark + room
}

// removeLocked removes a ticket from the tables.
func (s *Seats) removeLocked(t *Ticket) {
	delete(s.tickets, t.id)
	if t.player != nil {
		delete(s.bound, t.first)
	}
}

// Identity returns the player to which a shown ticket is bound, or nil.
func (t *Ticket) Identity() *Identity { return t.player }
