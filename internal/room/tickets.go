package room

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"math"
	"strings"
	"time"

	"github.com/netloop/netloop/internal/transport"
)

// A ticket is one seat of a room that waits for whoever shows it: so a lobby has places before it
// sends its players on, and a party gets all or none. It is a secret and the name of its room.
// What becomes of one:
//
//	reserve ──▶ free ──▶ show ──▶ shown ──▶ sit ──▶ seated ──▶ heard: used up
//	             │ ▲               │                  │
//	      expires  └── putBack ────┘    leave ────────┘
//
// A client that is seated and has never been heard may not know that it is: its welcome may be
// lost. Whoever shows the ticket again gets the seat then.

// Reservation is what seats are reserved for.
type Reservation struct {
	Seats     int
	TTL       time.Duration
	Spectator bool
	Params    []byte // JSON, for the game's admission
}

// ticket is a reserved seat. It belongs to the mutex of the room's seats.
type ticket struct {
	id        secretID
	until     time.Duration // on the room's clock
	spectator bool
	params    []byte
	shown     bool  // whoever shows it is being admitted
	seat      *seat // that it has become
}

// ticketSecret is the length of a ticket's secret.
const ticketSecret = 16

// ticketMark stands between a ticket's secret and the name of its room.
const ticketMark = "@"

// TicketRoom returns the name of the room of a ticket; false is for a text that is none.
func TicketRoom(ticket string) (name string, ok bool) {
	_, name, ok = strings.Cut(ticket, ticketMark)
	return name, ok
}

// Reserve keeps seats for whoever shows one of the tickets that it returns, one for each: all of
// them, or none. Any goroutine may call it.
func (r *Room) Reserve(res Reservation) ([]string, error) {
	if why := r.refusing.Load(); why != nil {
		return nil, &transport.Refusal{Code: why.Code, Text: why.Text}
	}
	all := make([]*ticket, res.Seats)
	texts := make([]string, res.Seats)
	until := r.clock.Now() + res.TTL
	for i := range all {
		var secret [ticketSecret]byte
		_, _ = rand.Read(secret[:]) // It never fails.
		texts[i] = base64.RawURLEncoding.EncodeToString(secret[:]) + ticketMark + r.spec.Name
		all[i] = &ticket{id: sha256.Sum256([]byte(texts[i])), until: until, spectator: res.Spectator, params: res.Params}
	}
	return texts, r.seats.reserve(all, r.clock.Now())
}

// ErrTicket is for every ticket that opens nothing, so that a guess learns nothing.
var ErrTicket = transport.Refuse(transport.CodeTicket, "the ticket is not known, has expired, or was used")

// errShown is for a ticket that is shown again before its first admission has ended, as by a client
// whose connection has broken meanwhile: it may try again.
var errShown = transport.Refuse(transport.CodeBusy, "somebody is coming in by this ticket: try again")

// reserve takes seats for tickets, if there are as many.
func (s *seats) reserve(all []*ticket, now time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expireLocked(now)
	if err := s.refusedLocked(); err != nil {
		return err
	}
	kind := s.kindLocked(all[0].spectator)
	if kind.taken+kind.held+len(all) > kind.most {
		return errFull(kind.most)
	}
	if s.tickets == nil {
		s.tickets = map[secretID]*ticket{}
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

// expire is expireLocked for a caller without the lock.
func (s *seats) expire(now time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expireLocked(now)
}

// expireLocked gives the seats back whose tickets have expired. It walks at most once for each
// time at which one may.
func (s *seats) expireLocked(now time.Duration) {
	if len(s.tickets) == 0 || now < s.expires {
		return
	}
	next := time.Duration(1<<63 - 1)
	for _, t := range s.tickets {
		switch {
		case t.shown || t.seat != nil: // It is looked at when that is over.
		case t.until <= now:
			s.dropLocked(t)
		default:
			next = min(next, t.until)
		}
	}
	s.expires = next
}

// dropLocked forgets a ticket that is no seat.
func (s *seats) dropLocked(t *ticket) {
	delete(s.tickets, t.id)
	s.kindLocked(t.spectator).held--
}

// show finds the ticket that a client shows, and keeps it from all others until its admission has
// ended.
func (s *seats) show(text string, now time.Duration) (*ticket, error) {
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

// putBack lets a ticket be shown again whose admission has failed.
func (s *seats) putBack(t *ticket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.shown {
		t.shown = false
		s.freeLocked(t)
	}
}

// freeLocked lets a ticket expire again.
func (s *seats) freeLocked(t *ticket) {
	s.expires = min(s.expires, t.until)
	s.changedLocked()
}

// expiry is when the next ticket expires, or the end of time.
func (s *seats) expiry() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.tickets) == 0 {
		return math.MaxInt64
	}
	return s.expires
}

// redeemsLocked reports whether a ticket is a place that is still held; nil is none.
func (s *seats) redeemsLocked(t *ticket) bool {
	return t != nil && s.tickets[t.id] == t && t.seat == nil
}

// seatLocked makes a ticket a seat.
func (s *seats) seatLocked(t *ticket, at *seat) {
	s.kindLocked(t.spectator).held--
	t.seat, at.ticket = at, t
}

// returnLocked gives a ticket back whose client has left before anything was heard of it: it may
// not know that it had come in.
func (s *seats) returnLocked(at *seat) {
	t := at.ticket
	if t == nil {
		return
	}
	at.ticket, t.seat = nil, nil
	s.kindLocked(t.spectator).held++
	s.freeLocked(t)
}

// usedLocked forgets the ticket of a client that has been heard.
func (s *seats) usedLocked(at *seat) {
	if at.ticket != nil {
		delete(s.tickets, at.ticket.id)
		at.ticket = nil
	}
}
