package seats

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/netloop/netloop/internal/transport"
)

// fixture has seats for two players and one spectator, with the actions of a test.
type fixture struct {
	*testing.T
	s    Seats
	ids  uint64
	made map[string]*Ticket
}

func newFixture(t *testing.T) *fixture {
	return &fixture{T: t, s: Seats{Playing: Count{Most: 2}, Watching: Count{Most: 1}}, made: map[string]*Ticket{}}
}

func (b *fixture) sit(who *Join, policy SameSubject, t *Ticket) (*Seat, uint64, error) {
	return b.s.Assign(&Request{Who: who, Policy: policy, Ticket: t, NextID: func() uint64 { b.ids++; return b.ids }})
}

// enter lets the connection of a seat enter the room, as a client of a role.
func (b *fixture) enter(at *Seat) {
	b.s.Take(at, at.who.Spectator)
	b.s.Entered(at)
}

// sits admits a client, which must succeed.
func (b *fixture) sits(who *Join, t *Ticket) *Seat {
	b.Helper()
	at, conn, err := b.sit(who, TakeOver, t)
	if err != nil || conn != 1 {
		b.Fatalf("connection %d, %v", conn, err)
	}
	b.enter(at)
	return at
}

// refused checks the error of a refused client.
func (b *fixture) refused(what string, err error, want error) {
	b.Helper()
	got, wanted := (*transport.Refusal)(nil), (*transport.Refusal)(nil)
	if !errors.As(err, &got) || !errors.As(want, &wanted) || *got != *wanted {
		b.Errorf("%s: %v, want %v", what, err, want)
	}
}

// Reserve adds tickets of these names.
func (b *fixture) reserve(now, until time.Duration, spectator bool, names ...string) error {
	var all []*Ticket
	for _, name := range names {
		t := &Ticket{id: sha256.Sum256([]byte(name)), until: until, Spectator: spectator}
		b.made[name], all = t, append(all, t)
	}
	return b.s.reserve(all, now)
}

// counts checks the numbers of players, spectators and tickets.
func (b *fixture) counts(now time.Duration, want string) {
	b.Helper()
	if got := fmt.Sprint(b.s.Count(now)); got != want {
		b.Errorf("at %v there are players, spectators and reserved seats: %s, want %s", now, got, want)
	}
}

// A player's second connection is handled by the policy, and no more seats of a kind are given
// than exist.
func TestASeatForAPlayerThatIsThere(t *testing.T) {
	b := newFixture(t)
	first := b.sits(&Join{Subject: "ann"}, nil)
	if at, conn, err := b.sit(&Join{Subject: "ann"}, TakeOver, nil); at != first || conn != 2 || err != nil {
		t.Errorf("who takes over gets seat %v, connection %d: %v", at, conn, err)
	}
	b.enter(first)
	_, _, err := b.sit(&Join{Subject: "ann"}, Refuse, nil)
	b.refused("a second connection", err, transport.Refuse(transport.CodeRefused, "you are in the room already"))
	b.counts(0, "1 0 0")
	second, _, err := b.sit(&Join{Subject: "ann"}, Allow, nil)
	if err != nil || second == first {
		t.Errorf("who may be there twice: %v", err)
	}
	b.enter(second)
	b.counts(0, "2 0 0")
	_, _, err = b.sit(&Join{Subject: "bob"}, TakeOver, nil)
	b.refused("a third of two", err, ErrFull(2))
	b.s.Leave(second)
	if at, _, err := b.sit(&Join{Subject: "ann"}, TakeOver, nil); at != first || err != nil {
		t.Error("the second of a player was taken for the first")
	}
	b.enter(first)
	b.s.Leave(first)
	b.s.Leave(first) // Once is enough.
	b.counts(0, "0 0 0")
	nobody, other := b.sits(&Join{}, nil), b.sits(&Join{}, nil)
	if nobody == other {
		t.Error("two of whom nobody knows who they are share a seat")
	}
}

// A program that another program of its player has replaced cannot resume by its secret.
func TestATakeOverEndsTheOlderSecret(t *testing.T) {
	b := newFixture(t)
	at := b.sits(&Join{Subject: "ann"}, nil)
	secret := b.s.Issue(at)
	if _, _, err := b.sit(&Join{Subject: "ann"}, TakeOver, nil); err != nil {
		t.Fatal(err)
	}
	if again, _, err := b.s.Claim(secret, 1); again != nil || err != nil {
		t.Errorf("the older program finds seat %v: %v", again, err)
	}
}

// A player that changes its role needs a free seat of that kind, and keeps the other seat until
// the connection has entered the room.
func TestAPlayerThatWatchesNow(t *testing.T) {
	b := newFixture(t)
	at := b.sits(&Join{Subject: "ann"}, nil)
	if again, _, err := b.sit(&Join{Subject: "ann", Spectator: true}, TakeOver, nil); again != at || err != nil {
		t.Fatal(err)
	}
	b.counts(0, "1 1 0")
	b.enter(at)
	b.counts(0, "0 1 0")
	b.sits(&Join{Subject: "bob"}, nil)
	_, _, err := b.sit(&Join{Subject: "bob", Spectator: true}, TakeOver, nil)
	b.refused("a second spectator", err, ErrFull(1))
	b.counts(0, "1 1 0")
	// It leaves while its player joins again as a player: no stranger gets the seat.
	if _, _, err := b.sit(&Join{Subject: "ann"}, TakeOver, nil); err != nil {
		t.Fatal(err)
	}
	b.s.Leave(at)
	b.counts(0, "2 1 0")
	if again, conn, err := b.sit(&Join{Subject: "ann"}, TakeOver, nil); again != at || conn != 4 || err != nil {
		t.Errorf("the next connection gets seat %v, connection %d: %v", again, conn, err)
	}
	b.enter(at)
	b.counts(0, "2 1 0")
	b.enter(at) // It was the last connection being admitted.
	b.counts(0, "2 0 0")
	b.s.Leave(at)
	b.counts(0, "1 0 0")
}

// A ticket is a seat reserved until its time is over, for one client with it.
func TestATicketKeepsASeat(t *testing.T) {
	b := newFixture(t)
	b.refused("three of two", b.reserve(0, 9, false, "x", "y", "z"), ErrFull(2))
	b.counts(0, "0 0 0")
	if err := errors.Join(b.reserve(0, 10, false, "late"), b.reserve(0, 5, false, "soon"), b.reserve(0, 7, true, "watch")); err != nil {
		t.Fatal(err)
	}
	b.counts(4, "0 0 3")
	_, _, err := b.sit(&Join{}, TakeOver, nil)
	b.refused("without a ticket", err, ErrFull(2))
	if full, awaited := b.s.Full(Refuse, 4); full || !awaited {
		t.Error("nobody can come, or nobody is awaited, while there are tickets")
	}
	b.counts(5, "0 0 2") // A ticket expires at until.
	_, err = b.s.Show("soon", 4)
	b.refused("one that has expired", err, ErrTicket)

	// A running admission locks the ticket, and it does not expire meanwhile.
	late, err := b.s.Show("late", 6)
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.s.Show("late", 6)
	b.refused("one that is being shown", err, errShown)
	b.counts(11, "0 0 1")
	b.s.PutBack(late)
	b.s.PutBack(late)
	b.counts(9, "0 0 1")
	b.counts(10, "0 0 0")
	_, _, err = b.sit(&Join{}, TakeOver, late)
	b.refused("one that expired on the way", err, ErrTicket)

	b.s.Lock(true)
	_, _, err = b.sit(&Join{}, TakeOver, nil)
	b.refused("in a locked room", err, errLocked)
	if err := b.reserve(20, 30, false, "in"); err != nil {
		t.Fatal(err)
	}
	in, err := b.s.Show("in", 20)
	if err != nil {
		t.Fatal(err)
	}
	at := b.sits(&Join{Subject: "ann"}, in)
	b.counts(31, "1 0 0")
	// Its welcome may be lost: the client that shows the ticket again gets the seat.
	if _, err := b.s.Show("in", 31); err != nil {
		t.Fatal(err)
	}
	again, conn, err := b.sit(&Join{Subject: "eve"}, TakeOver, in)
	if again != at || conn != 2 || err != nil || in.shown {
		t.Errorf("it is seat %v, connection %d: %v", again, conn, err)
	}
	b.enter(at)
	if b.s.players["ann"] != nil || b.s.players["eve"] != at {
		t.Errorf("the seat is found by the name of its player before: %v", b.s.players)
	}
	// It leaves before it has sent data, so the ticket would be a seat again, but it has expired.
	b.s.Leave(at)
	b.counts(29, "0 0 1")
	b.counts(30, "0 0 0")
}

// A ticket is used up once its client has sent data; data of an older connection does not count.
func TestATicketIsUsedUp(t *testing.T) {
	b := newFixture(t)
	if err := b.reserve(0, 10, false, "a"); err != nil {
		t.Fatal(err)
	}
	a := b.made["a"]
	at := b.sits(&Join{}, a)
	b.s.Heard(at, 0)
	if _, err := b.s.Show("a", 0); err != nil {
		t.Errorf("who was not heard cannot show it again: %v", err)
	}
	b.s.PutBack(a)
	b.s.Heard(at, 1)
	_, err := b.s.Show("a", 0)
	b.refused("one that was used", err, ErrTicket)
	_, _, err = b.sit(&Join{}, TakeOver, a)
	b.refused("one that was used meanwhile", err, ErrTicket)
	b.s.Leave(at)
	b.counts(0, "0 0 0")
}

// If a client with a ticket leaves before it has sent data, its ticket is a seat again, unless its
// player is about to take the seat over.
func TestATicketReturnsWithItsSeat(t *testing.T) {
	b := newFixture(t)
	if err := b.reserve(0, 10, false, "a"); err != nil {
		t.Fatal(err)
	}
	at := b.sits(&Join{Subject: "ann"}, b.made["a"])
	b.counts(0, "1 0 0")
	if _, _, err := b.sit(&Join{Subject: "ann"}, TakeOver, nil); err != nil {
		t.Fatal(err)
	}
	b.s.Leave(at)
	b.counts(0, "1 0 0")
	b.enter(at)
	b.s.Leave(at)
	b.counts(0, "0 0 1")
	if other := b.sits(&Join{Subject: "bob"}, b.made["a"]); other == at || b.made["a"].seat != other {
		t.Error("the ticket is still another seat")
	}
}

// A player in the room that shows a ticket uses it up: its reserved seat is free. The ticket
// counts as the seat of its own player, and permits a change of role in a full room.
func TestATicketIsUsedInATakeOver(t *testing.T) {
	b := newFixture(t)
	at := b.sits(&Join{Subject: "ann"}, nil)
	b.sits(&Join{Subject: "bob", Spectator: true}, nil)
	if err := b.reserve(0, 10, false, "a"); err != nil {
		t.Fatal(err)
	}
	b.counts(0, "1 1 1")
	if again, _, err := b.sit(&Join{Subject: "ann"}, TakeOver, b.made["a"]); again != at || err != nil {
		t.Fatalf("seat %v: %v", again, err)
	}
	b.enter(at)
	b.counts(0, "1 1 0")
	b.s.Heard(at, 2)
	_, err := b.s.Show("a", 0)
	b.refused("a ticket that was used in a take-over", err, ErrTicket)

	if err := b.reserve(0, 10, false, "b", "c"); err == nil {
		t.Error("three of two seats")
	}
	if err := b.reserve(0, 10, false, "b"); err != nil {
		t.Fatal(err)
	}
	_, _, err = b.sit(&Join{Subject: "bob"}, TakeOver, nil)
	b.refused("a spectator without a ticket to play in a full room", err, ErrFull(2))
	bob, _, err := b.sit(&Join{Subject: "bob"}, TakeOver, b.made["b"])
	if err != nil {
		t.Fatalf("a spectator whose seat to play is reserved: %v", err)
	}
	b.counts(0, "2 1 0")
	b.enter(bob)
	b.counts(0, "2 0 0")
	b.s.Leave(bob)
	b.counts(0, "1 0 1") // It has sent no data.
}

// The secret of the newest connection finds its seat, as does that of the one before until the
// newest has sent data; each secret is valid for one connection.
func TestASecretIsGoodForOneConnection(t *testing.T) {
	b := newFixture(t)
	overtaken := transport.Refuse(transport.CodeReplaced, "a newer connection has taken the seat")
	at := b.sits(&Join{}, nil)
	first := b.s.Issue(at)
	if len(first) != secretLen {
		t.Fatalf("a secret of %d bytes", len(first))
	}
	nothing := func(what string, secret []byte) {
		t.Helper()
		if got, _, err := b.s.Claim(secret, 0); got != nil || err != nil {
			t.Errorf("%s finds %v, %v", what, got, err)
		}
	}
	nothing("a short secret", first[1:])
	nothing("none", nil)
	nothing("a wrong secret", make([]byte, secretLen))
	back := func(secret []byte, attempt, conn uint64) {
		t.Helper()
		if got, n, err := b.s.Claim(secret, attempt); got != at || n != conn || err != nil {
			t.Errorf("attempt %d finds %v, connection %d, %v", attempt, got, n, err)
		}
		b.enter(at)
	}
	back(first, 3, 2)
	second := b.s.Issue(at)
	_, _, err := b.s.Claim(first, 3)
	b.refused("the same attempt again", err, overtaken)
	_, _, err = b.s.Claim(first, 2)
	b.refused("one from before", err, overtaken)
	back(first, 4, 3) // Its welcome was lost.
	nothing("a secret that the client does not know", second)
	b.s.Issue(at)
	b.s.Heard(at, 2) // That was an older connection.
	back(first, 5, 4)
	third := b.s.Issue(at)
	b.s.Heard(at, 4)
	_, _, err = b.s.Claim(first, 6)
	b.refused("a secret that was given up", err, overtaken)
	back(third, 0, 5)
	fourth := b.s.Issue(at)
	b.s.Heard(at, 5)
	nothing("one that was given up long ago", first)
	if len(b.s.secrets) != 2 {
		t.Errorf("%d secrets are kept of one seat", len(b.s.secrets))
	}
	b.s.Leave(at)
	nothing("one of a seat that is free", fourth)
	if len(b.s.secrets) != 0 {
		t.Errorf("a free seat has %d secrets", len(b.s.secrets))
	}
}

// No client is admitted once all seats are taken, unless a client is awaited or may be taken over.
func TestWhetherARoomIsFull(t *testing.T) {
	b := newFixture(t)
	full := func(what string, policy SameSubject, want, wait bool) {
		t.Helper()
		if full, awaited := b.s.Full(policy, 0); full != want || awaited != wait {
			t.Errorf("%s: full %v, awaited %v", what, full, awaited)
		}
	}
	full("empty", TakeOver, false, false)
	ann, watch := b.sits(&Join{}, nil), b.sits(&Join{Spectator: true}, nil)
	full("one seat is left", TakeOver, false, false)
	bob := b.sits(&Join{}, nil)
	full("all are taken", TakeOver, true, false)
	b.s.Await(ann, true)
	b.s.Await(ann, true)
	full("one has lost the connection", TakeOver, false, true)
	b.s.Await(ann, false)
	b.s.Await(ann, false)
	full("and is back", TakeOver, true, false)
	b.s.Await(bob, true)
	b.s.Leave(bob)
	full("who was awaited has left", TakeOver, false, false)
	b.sits(&Join{Subject: "eve"}, nil)
	full("eve may take over", TakeOver, false, false)
	full("and may not", Refuse, true, false)
	b.s.Leave(watch)
	full("a spectator may come", Refuse, false, false)
	if err := b.reserve(0, 9, true, "watch"); err != nil {
		t.Fatal(err)
	}
	full("with a ticket", Refuse, false, true)
}

// A newcomer to a full room gets the seat of the client that was dropped first of the address with
// the most disconnected clients. A client does not lose its seat while another connection of it is
// being admitted.
func TestWhichSeatYields(t *testing.T) {
	b := newFixture(t)
	b.s.Playing.Most, b.s.Watching.Most = 8, 2
	var all []*Seat
	for _, join := range []*Join{
		{Addr: "10.0.0.9:1"}, {Addr: "10.0.0.1:1", Spectator: true}, {Addr: "10.0.0.1:1"}, {Addr: "10.0.0.1:2"}, {Addr: "10.0.0.1:3"},
		{Addr: "10.0.0.1:4"}, {Addr: "10.0.0.1:5"}, {Addr: "10.0.0.2:1"}, {Addr: "10.0.0.3:1"},
	} {
		at := b.sits(join, nil)
		b.s.Await(at, true)
		all = append(all, at)
	}
	secret := b.s.Issue(all[2])
	if at, _, err := b.s.Claim(secret, 1); at != all[2] || err != nil {
		t.Fatalf("seat %v: %v", at, err)
	}
	for n, want := range all[3:5] {
		q := &Request{Who: &Join{Addr: fmt.Sprintf("10.0.1.%d:1", n)}, NextID: func() uint64 { b.ids++; return b.ids }}
		if _, _, err := b.s.Assign(q); err != nil || q.Evicts != want.ID {
			t.Errorf("newcomer %d gets the seat of client %d, want that of %d: %v", n, q.Evicts, want.ID, err)
		}
	}
	_, _, err := b.sit(&Join{Addr: "10.0.1.2:1"}, TakeOver, nil)
	b.refused("a newcomer while each address has its share", err, ErrFull(8))
}

// Once a room ends because it is empty, seats are neither given nor reserved: a client would never
// enter.
func TestNoSeatIsGivenInARoomThatEndsEmpty(t *testing.T) {
	b := newFixture(t)
	why := &transport.Closed{Code: transport.CodeClosing, Text: "nobody is in the room"}
	want := transport.Refuse(transport.CodeClosing, "nobody is in the room")
	at := b.sits(&Join{}, nil)
	if b.s.Vacate(0, why) {
		t.Error("a room with a client is empty")
	}
	b.s.Leave(at)
	if err := b.reserve(0, 10, false, "a"); err != nil {
		t.Fatal(err)
	}
	if b.s.Vacate(9, why) {
		t.Error("a room with a reserved seat is empty")
	}
	if !b.s.Vacate(10, why) {
		t.Error("a room is not empty once its ticket has expired")
	}
	_, _, err := b.sit(&Join{}, TakeOver, nil)
	b.refused("a client", err, want)
	b.refused("a reservation", b.reserve(10, 20, false, "b"), want)
}

// A session that starts after the end of the room is told of it, as are present ones.
func TestSessionsOfARoomThatHasEnded(t *testing.T) {
	var s Seats
	session := func() (*transport.Session, *transport.Link) {
		stats := new(transport.Stats)
		return transport.NewSession(transport.SessionConfig{Inbox: transport.NewInbox(1, stats), Stats: stats, Clock: func() time.Duration { return 0 }})
	}
	there, told := session()
	gone, untold := session()
	late, toldLate := session()
	s.AddSession(there)
	s.AddSession(gone)
	s.RemoveSession(gone)
	s.Close(transport.CodeGame, "over")
	s.Close(transport.CodeInternal, "again")
	s.AddSession(late)
	over := transport.Closed{Code: transport.CodeGame, Text: "over"}
	for what, c := range map[string]struct {
		link *transport.Link
		want transport.Closed
	}{"there": {told, over}, "gone": {untold, transport.Closed{}}, "late": {toldLate, over}} {
		if why, _ := c.link.Cause(); why != c.want {
			t.Errorf("who is %s is told %v", what, why)
		}
	}
	if s.sessions != nil {
		t.Error("sessions are kept")
	}
}
