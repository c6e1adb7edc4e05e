package seats

import (
	"crypto/sha256"
	"math"
	"strings"
	"time"

	"github.com/netloop/netloop/internal/transport"
)

// A ticket reserves one seat of a room for the client that shows it. With tickets a lobby has seats
// before it moves its players, and a party gets all seats or none. The ticket's text consists of a
// secret and the name of the room. The states of a ticket:
//
//	reserve ──▶ free ──▶ show ──▶ shown ──▶ sit ──▶ seated ──▶ heard: used up
//	             │ ▲               │                  │
//	      expires  └── PutBack ────┘    leave ────────┘
//
// A client with a seat that has sent no data may not know of its seat, because its welcome may be
// lost. The seat is then assigned to the next client that shows the ticket.

// Reservation describes the seats to reserve.
type Reservation struct {
	Seats     int
	TTL       time.Duration
	Spectator bool
	Params    []byte // JSON, for the game's admission
}

// Ticket is a reserved seat. The mutex of the room's [Seats] guards it.
type Ticket struct {
	id        secretID
	until     time.Duration // expiry, on the room's clock
	Spectator bool
	Params    []byte
	shown     bool  // a client with the ticket is being admitted
	seat      *Seat // the seat for which the ticket was redeemed
	// The ticket is bound to player, unless that is nil; first is the key of its first text.
	player *Identity
	first  secretID
}

// ticketSecret is the length of a ticket's secret in bytes, before base64.
const ticketSecret = 16

// ticketMark separates a ticket's secret from the name of its room.
const ticketMark = "@"

// TicketRoom returns the name of the room of a ticket, or false if the text is not a ticket.
func TicketRoom(ticket string) (name string, ok bool) {
	_, name, ok = strings.Cut(ticket, ticketMark)
	return name, ok
}

// Reserve reserves seats of a room and returns one ticket for each: for all seats, or none.
func (s *Seats) Reserve(res Reservation, room string, now time.Duration) ([]string, error) {
	all := make([]*Ticket, res.Seats)
	texts := make([]string, res.Seats)
	for i := range all {
		texts[i] = newTicket(room)
		all[i] = &Ticket{id: sha256.Sum256([]byte(texts[i])), until: now + res.TTL, Spectator: res.Spectator, Params: res.Params}
	}
	return texts, s.reserve(all, now)
}

// ErrTicket is the error for every invalid ticket, so that a guess reveals no information.
var ErrTicket = transport.Refuse(transport.CodeTicket, "the ticket is not known, has expired, or was used")

// errShown is the error for a ticket that is shown again before its first admission has ended, for
// example by a client that has lost its connection meanwhile. The client may try again.
var errShown = transport.Refuse(transport.CodeBusy, "another client is joining by this ticket: try again")

// reserve adds tickets, if enough seats are free.
func (s *Seats) reserve(all []*Ticket, now time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expireLocked(now)
	if err := s.refusedLocked(); err != nil {
		return err
	}
	kind := s.kindLocked(all[0].Spectator)
	if kind.taken+kind.held+len(all) > kind.Most {
		return ErrFull(kind.Most)
	}
	if s.tickets == nil {
		s.tickets = map[secretID]*Ticket{}
	}
	for _, t := range all {
		s.tickets[t.id] = t
		if len(s.tickets) == 1 || t.until < s.expires {
			s.expires = t.until
		}
	}
	kind.held += len(all)
	s.changedLocked()
	return nil
}

// expireLocked frees the seats of expired tickets. It checks the tickets only after the time Expiry
// has passed.
func (s *Seats) expireLocked(now time.Duration) {
	if len(s.tickets) == 0 || now < s.expires {
		return
	}
	next := time.Duration(1<<63 - 1)
	for _, t := range s.tickets {
		switch {
		case t.shown || t.seat != nil: // Such a ticket cannot expire before freeLocked.
		case t.until <= now:
			s.dropLocked(t)
			s.changedLocked() // A reader of the counts may be earlier than the room's tick.
		default:
			next = min(next, t.until)
		}
	}
	s.expires = next
}

// dropLocked removes a ticket without a seat.
func (s *Seats) dropLocked(t *Ticket) {
	s.removeLocked(t)
	s.kindLocked(t.Spectator).held--
}

// Show returns the ticket with a text, and locks it until the admission of its client has ended.
// The error is ErrTicket for an invalid ticket, and errShown for a locked ticket.
func (s *Seats) Show(text string, now time.Duration) (*Ticket, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expireLocked(now)
	t := s.tickets[sha256.Sum256([]byte(text))]
	switch {
	case t == nil:
		return nil, ErrTicket
	case t.shown:
		return nil, errShown
	}
	t.shown = true
	return t, nil
}

// PutBack unlocks a ticket after a failed admission.
func (s *Seats) PutBack(t *Ticket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.shown {
		t.shown = false
		s.freeLocked(t)
	}
}

// freeLocked lets a ticket expire again.
func (s *Seats) freeLocked(t *Ticket) {
	s.expires = min(s.expires, t.until)
	s.changedLocked()
}

// Expiry returns the time, on the room's clock, before which no ticket expires, or math.MaxInt64
// without tickets.
func (s *Seats) Expiry() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.tickets) == 0 {
		return math.MaxInt64
	}
	return s.expires
}

// redeemsLocked reports whether a ticket is valid and has no seat yet; false for nil.
func (s *Seats) redeemsLocked(t *Ticket) bool {
	return t != nil && s.tickets[t.id] == t && t.seat == nil
}

// seatLocked redeems a ticket for a seat.
func (s *Seats) seatLocked(t *Ticket, at *Seat) {
	s.kindLocked(t.Spectator).held--
	t.seat, at.ticket = at, t
}

// returnLocked restores the ticket of a client that has left before any of its packets arrived,
// because the client may not know that it had joined.
func (s *Seats) returnLocked(at *Seat) {
	t := at.ticket
	if t == nil {
		return
	}
	at.ticket, t.seat = nil, nil
	s.kindLocked(t.Spectator).held++
	s.freeLocked(t)
}

// usedLocked removes the ticket of a client that has sent data, and returns it; nil without one.
func (s *Seats) usedLocked(at *Seat) *Ticket {
	t := at.ticket
	if t != nil {
		s.removeLocked(t)
		at.ticket = nil
	}
	return t
}
