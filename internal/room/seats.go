package room

import (
	"crypto/rand"
	"crypto/sha256"
	"sync"
	"time"

	"github.com/netloop/netloop/internal/transport"
)

// SameSubject says what becomes of a newcomer whose player is in the room already.
type SameSubject uint8

// The policies.
const (
	TakeOver SameSubject = iota // it gets the player's client, over its own connection
	Refuse                      // it is refused
	Allow                       // it is another client
)

// seats are the places of a room's clients, from their admission until they have left. Admissions
// use it on their own goroutines. A seat outlives the connections of its client: whoever shows its
// secret, or is the same player, comes back to it.
type seats struct {
	mu       sync.Mutex
	playing  places
	watching places
	locked   bool // only who has a ticket, or a seat, comes in
	awaiting int  // seats whose clients have lost their connection
	tickets  map[secretID]*ticket
	expires  time.Duration // before that no ticket does
	secrets  map[secretID]*seat
	players  map[string]*seat                // by subject; under Allow the first of each
	sessions map[*transport.Session]struct{} // that have not gone
	closed   *transport.Closed               // the room has ended
}

// places are the seats of one kind: of those who play, or of those who watch.
type places struct {
	taken int
	held  int // reserved for tickets, beside them
	most  int
}

func (p *places) full() bool { return p.taken+p.held >= p.most }

// kindLocked returns the seats of a kind.
func (s *seats) kindLocked(spectator bool) *places {
	if spectator {
		return &s.watching
	}
	return &s.playing
}

// seat is the place of one client. But for its id it belongs to the mutex of its seats.
type seat struct {
	id      uint64
	subject string
	conns   uint64 // connections that it has had, and so the number of the newest
	attempt uint64 // by which the newest came back, as the client counts them
	// The secret of the newest connection; and that with which the client came to it, until
	// something has arrived over it: it may never have told the client its own.
	secret, before secretID
	// The one that was given up last. Whoever shows it has been overtaken on the way, or stole it.
	spent   secretID
	left    bool
	awaited bool // its client has lost its connection

	spectator bool
	ticket    *ticket // that it was, until its client has been heard
	returned  *ticket // that it has become again, because its client left unheard
	who       *Join   // by whom it was taken last
}

// secretLen is the length of the secret with which a client comes back.
const secretLen = 32

// secretID is what a secret is found by. It is a digest, so that how long finding takes tells
// nothing of the secret.
type secretID [sha256.Size]byte

// request is who wants a seat, once admission has let it in.
type request struct {
	who    *Join
	policy SameSubject
	ticket *ticket // nil: it has none
	nextID func() uint64
}

// sit gives a client its seat: that of its player, if the policy says so, that of its ticket, or
// one of its own. It counts the connection.
func (s *seats) sit(q *request) (at *seat, conn uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	subject, spectator := q.who.Subject, q.who.Spectator
	own := s.players[subject]
	switch {
	case subject == "" || own == nil || q.policy == Allow:
	case q.policy == Refuse:
		return nil, 0, transport.Refuse(transport.CodeRefused, "you are in the room already")
	default:
		return s.takeOverLocked(own, q.who)
	}
	switch t, kind := q.ticket, s.kindLocked(spectator); {
	case t != nil && s.tickets[t.id] != t: // Its client has been heard meanwhile.
		return nil, 0, ErrTicket
	case t != nil && t.seat != nil:
		t.shown = false
		return s.takeOverLocked(t.seat, q.who)
	case t == nil && s.locked:
		return nil, 0, errLocked
	case t == nil && kind.full():
		return nil, 0, errFull(kind.most)
	}
	at = &seat{id: q.nextID(), subject: subject, conns: 1, spectator: spectator, who: q.who}
	if q.ticket != nil {
		s.seatLocked(q.ticket, at)
	}
	s.takeLocked(at)
	return at, at.conns, nil
}

// takeOverLocked gives a seat to another connection of the one whose seat it is, who may want to
// watch now, or to play.
func (s *seats) takeOverLocked(own *seat, who *Join) (at *seat, conn uint64, err error) {
	spectator := who.Spectator
	if own.spectator != spectator {
		from, to := s.kindLocked(own.spectator), s.kindLocked(spectator)
		if to.full() {
			return nil, 0, errFull(to.most)
		}
		if !own.left {
			from.taken--
			to.taken++
		}
		own.spectator = spectator
	}
	s.forgetLocked(own)
	own.who, own.attempt = who, 0
	own.conns++
	return own, own.conns, nil
}

var errLocked = transport.Refuse(transport.CodeRefused, "the room is locked")

func errFull(most int) error {
	return transport.Refuse(transport.CodeFull, "the room is full: %d clients", most)
}

// claim finds the seat of whoever shows a secret, and counts a connection of it. An attempt that
// a later one has overtaken on the way is refused.
func (s *seats) claim(secret []byte, attempt uint64) (at *seat, conn uint64, err error) {
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
		return nil, 0, transport.Refuse(transport.CodeReplaced, "a later connection was faster")
	}
	if shown == at.secret {
		at.before, at.secret = at.secret, at.before
	}
	delete(s.secrets, at.secret) // What the client does not show it may not know.
	at.secret = secretID{}
	at.attempt = attempt
	at.conns++
	return at, at.conns, nil
}

// knows reports whether a secret or a ticket is one of those that were given out.
func (s *seats) knows(secret []byte, ticket string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(secret) == secretLen && s.secrets[sha256.Sum256(secret)] != nil || s.tickets[sha256.Sum256([]byte(ticket))] != nil
}

// issue makes the secret of a seat's newest connection.
func (s *seats) issue(at *seat) []byte {
	secret := make([]byte, secretLen)
	_, _ = rand.Read(secret) // It never fails.
	s.mu.Lock()
	defer s.mu.Unlock()
	if at.left {
		return nil
	}
	if s.secrets == nil {
		s.secrets = map[secretID]*seat{}
	}
	delete(s.secrets, at.secret)
	at.secret = sha256.Sum256(secret)
	s.secrets[at.secret] = at
	return secret
}

// heard ends the secret of the connection before, and the ticket, once something has arrived over
// the newest.
func (s *seats) heard(at *seat, conn uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at.conns != conn {
		return
	}
	s.usedLocked(at)
	if at.before != (secretID{}) {
		delete(s.secrets, at.spent)
		at.spent, at.before = at.before, secretID{}
	}
}

// leave frees a seat.
func (s *seats) leave(at *seat) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at.left {
		return
	}
	at.left = true
	s.awaitLocked(at, false)
	s.kindLocked(at.spectator).taken--
	s.returnLocked(at)
	s.forgetLocked(at)
	if s.players[at.subject] == at {
		delete(s.players, at.subject)
	}
}

// regain takes a seat again whose client has left while its player was on the way to take it over:
// who says goodbye and comes at once. It may be one more than there are, until somebody leaves.
func (s *seats) regain(at *seat) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !at.left {
		return
	}
	at.left = false
	if t := at.returned; t != nil && s.tickets[t.id] == t && t.seat == nil {
		s.seatLocked(t, at)
	}
	s.takeLocked(at)
}

// takeLocked counts a seat, and notes its player.
func (s *seats) takeLocked(at *seat) {
	s.kindLocked(at.spectator).taken++
	if at.subject == "" || s.players[at.subject] != nil {
		return
	}
	if s.players == nil {
		s.players = map[string]*seat{}
	}
	s.players[at.subject] = at
}

// forgetLocked ends the secrets of a seat.
func (s *seats) forgetLocked(at *seat) {
	delete(s.secrets, at.secret)
	delete(s.secrets, at.before)
	delete(s.secrets, at.spent)
	at.secret, at.before, at.spent = secretID{}, secretID{}, secretID{}
}

// count returns how many seats are taken, by those who play and by those who watch, and how many
// are reserved.
func (s *seats) count(now time.Duration) (players, spectators, reserved int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expireLocked(now)
	return s.playing.taken, s.watching.taken, s.playing.held + s.watching.held
}

// lock keeps everybody out who has neither a ticket nor a seat, or lets them in again.
func (s *seats) lock(locked bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.locked = locked
}

func (s *seats) isLocked() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.locked
}

// enters notes a session that begins. One that comes too late is told how the room has ended: no
// tick will ever take it.
func (s *seats) enters(session *transport.Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed != nil {
		session.Abandon(s.closed.Code, s.closed.Text)
		return
	}
	if s.sessions == nil {
		s.sessions = map[*transport.Session]struct{}{}
	}
	s.sessions[session] = struct{}{}
}

// gone forgets a session.
func (s *seats) gone(session *transport.Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, session)
}

// close ends all sessions of a room that has ended, those of clients that were on their way in
// among them.
func (s *seats) close(code transport.Code, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed == nil {
		s.closed = &transport.Closed{Code: code, Text: text}
	}
	for session := range s.sessions {
		session.Abandon(code, text) // Unless its client was told already.
	}
	s.sessions = nil
}

// ended is what those are told who are there when the room has ended.
func (s *seats) ended() *transport.Closed {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed == nil { // Its end has failed.
		return &transport.Closed{Code: transport.CodeInternal, Text: "the server has failed"}
	}
	return s.closed
}

// full reports whether nobody who comes gets a seat, whoever it is, and whether somebody is awaited
// who has one: a client that has lost its connection, or the holder of a ticket.
func (s *seats) full(policy SameSubject, now time.Duration) (full, awaited bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expireLocked(now)
	awaited = s.awaiting+s.playing.held+s.watching.held > 0
	takenOver := policy == TakeOver && len(s.players) > 0
	return s.playing.full() && s.watching.full() && !awaited && !takenOver, awaited
}

// await notes whether the client of a seat has lost its connection.
func (s *seats) await(at *seat, awaited bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.awaitLocked(at, awaited)
}

func (s *seats) awaitLocked(at *seat, awaited bool) {
	switch {
	case awaited && !at.awaited:
		s.awaiting++
	case !awaited && at.awaited:
		s.awaiting--
	}
	at.awaited = awaited
}

// entrance is how somebody comes in, or back: what admission has found out, for the tick that
// takes it.
type entrance struct {
	seat *seat
	join *Join // nil: it has shown the secret of its seat, and nobody was asked
	// What the hello said of coming back.
	resumable bool   // it may want to
	received  uint64 // reliable messages of the room's that it has had
	kept      bool   // it has its copies of the state
	addr      string
}
