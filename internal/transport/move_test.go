package transport

import (
	"errors"
	"testing"

	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// moved is a pair of ends; the server's session ends by a move.
type moved struct {
	t              *testing.T
	server, client *end
	next           *end // the server's, once the client is let in
	followed       *Session
	inbox          *Inbox // of followed
	failed         error
	late           func()
	refuse         error
	known          bool // the server uses its data of the client
}

func newMoved(t *testing.T) *moved {
	m := &moved{t: t}
	m.server, m.client = pair(SessionConfig{Moves: true})
	m.server.LetMove(Moves{
		Admit: func(hello *netloopv1.Hello, known bool) (*Admitted, error) {
			m.known = known
			m.late() // The hello has arrived: the timeout has no effect.
			if m.refuse != nil {
				return nil, m.refuse
			}
			m.next = &end{stats: new(Stats), woken: m.server.woken}
			m.next.inbox = NewInbox(0, m.next.stats)
			return &Admitted{
				Welcome: &netloopv1.Welcome{ClientId: 9, TickRate: &netloopv1.Rate{Num: 60, Den: 1}, FixedRate: &netloopv1.Rate{Num: 60, Den: 1}},
				Session: SessionConfig{ID: 9, Inbox: m.next.inbox},
				Joined:  func(s *Session) { m.next.Session, m.next.Link, m.next.conn = s, m.server.Link, s.conn },
			}, nil
		},
		Later: func(fn func()) { m.late = fn },
	})
	return m
}

// tell ends the session at the server, and passes moved to the client.
func (m *moved) tell() {
	m.t.Helper()
	m.server.Session.Move("ticket")
	carry(m.t, m.server, m.client, 1)
	told := false
	for _, a := range m.client.arrivals() {
		told = told || a.Kind == MoveTold && a.Message.Text == "ticket"
	}
	if !told {
		m.t.Fatal("the client was not told")
	}
}

// follow lets the client ask for the next session.
func (m *moved) follow() {
	m.t.Helper()
	m.inbox = NewInbox(0, new(Stats))
	m.client.Follow(Next{
		Hello:   &netloopv1.Hello{Protocol: ProtocolVersion, Ticket: "ticket"},
		Session: SessionConfig{Inbox: m.inbox, Stats: new(Stats)},
		Done:    func(s *Session, _ *netloopv1.Welcome, err error) { m.followed, m.failed = s, err },
	})
}

// flushed is a datagram that an end sends for itself.
func flushed(t *testing.T, e *end, say string) []byte {
	t.Helper()
	e.Send(Message{Method: 1, Payload: []byte(say)})
	e.Flush(1)
	b, ok := e.appendDatagram(nil, 1)
	if !ok {
		t.Fatal("nothing was sent")
	}
	return b
}

// One session follows another over the same link: its data arrives, and late datagrams of the
// earlier session are recognised by their numbers.
func TestASessionFollowsAnother(t *testing.T) {
	m := newMoved(t)
	late, lateDown := flushed(t, m.client, "late"), flushed(t, m.server, "late")
	m.server.Send(Message{Method: 2, Reliable: true, Payload: []byte("last words")})
	m.tell()
	m.client.Send(Message{Method: 3, Reliable: true, Payload: []byte("under way")})
	m.follow()
	carry(t, m.client, m.server, 2)
	gone := m.server.arrivals()
	if k := kinds(gone); len(k) != 1 || k[0] != Gone || gone[0].Closed.Code != CodeMoved {
		t.Errorf("the owner of the session before was told %v", k)
	}
	carry(t, m.next, m.client, 3)
	if m.followed == nil || m.failed != nil || m.followed.ID() != 9 {
		t.Fatalf("followed by %v: %v", m.followed, m.failed)
	}
	m.server.ReceiveDatagram(4, late)
	if m.next.inbox.Len() != 0 {
		t.Errorf("%d arrivals of the session before in the next", m.next.inbox.Len())
	}
	if m.client.ReceiveDatagram(4, lateDown); m.inbox.Len() != 0 {
		t.Errorf("%d arrivals of the session before at the client", m.inbox.Len())
	}
	first := flushed(t, m.next, "first")
	if m.client.ReceiveDatagram(4, first); m.inbox.Len() == 0 {
		t.Error("the first datagram of the next session is taken for one of the session before")
	}
	after := &end{Session: m.followed, Link: m.client.Link, conn: m.followed.conn, woken: m.client.woken}
	for _, reliable := range []bool{false, true} {
		after.Send(Message{Method: 4, Reliable: reliable, Payload: []byte("new")})
	}
	after.Flush(5)
	carry(t, after, m.next, 5)
	if n := len(m.next.arrivals()); n < 2 {
		t.Errorf("%d arrivals in the next session, want both messages", n)
	}
	m.late() // It has moved: the timeout has no effect.
	m.client.Link.End(Closed{Code: CodeLost})
	m.server.Link.End(Closed{Code: CodeLost})
	if k := kinds(m.next.arrivals()); len(k) != 1 || k[0] != Gone {
		t.Errorf("the end of the link is %v to the owner", k)
	}
}

// A refused move closes the connection with the reason, which the client's Done gets.
func TestAMoveMayBeRefused(t *testing.T) {
	m := newMoved(t)
	m.refuse = &Refusal{Code: CodeTicket, Text: "no"}
	m.tell()
	m.follow()
	if m.server.ReceiveStream(2, m.client.AppendStream(nil, 1000)) == nil {
		t.Error("the server goes on reading")
	}
	why, _ := m.server.Cause()
	if why.Code != CodeTicket || why.Text != "no" {
		t.Errorf("the server closes with %v", why)
	}
	stream := m.server.AppendStream(nil, 1000)
	var closed *Closed
	if err := m.client.ReceiveStream(3, stream); !errors.As(err, &closed) {
		t.Fatal("the client reads no close:", err)
	}
	m.client.Link.End(*closed)
	var refused *Refusal
	if !errors.As(m.failed, &refused) || refused.Code != CodeTicket || m.followed != nil {
		t.Errorf("who asked was told %v", m.failed)
	}
}

// A malformed answer ends the connection of a moving client.
func TestAMalformedAnswerToAMoveClosesTheClient(t *testing.T) {
	m := newMoved(t)
	m.tell()
	m.follow()
	m.client.AppendStream(nil, 1000)
	if m.client.ReceiveStream(3, []byte{4, byte(frameWelcome<<3 | 2), 2, 0xff, 0xff}) == nil {
		t.Error("the client goes on reading")
	}
	if why, _ := m.client.Cause(); why.Code != CodeProtocol || m.followed != nil {
		t.Errorf("the client closes with %v", why)
	}
}

// A client that was told to move and does not is closed, even if it sends other data.
func TestAClientThatDoesNotMoveIsClosed(t *testing.T) {
	m := newMoved(t)
	m.tell()
	m.client.Send(Message{Method: 3, Reliable: true, Payload: []byte("still here")})
	m.client.Flush(2)
	carry(t, m.client, m.server, 2)
	if _, ends := m.server.Cause(); ends || m.server.inbox.Len() != 0 {
		t.Error("it ends by itself, or what it gets is for somebody")
	}
	m.late()
	if why, _ := m.server.Cause(); why.Code != CodeTimeout {
		t.Errorf("it was closed with %v", why)
	}
}

// A hello before moved is a violation, and so is a move without a ticket.
func TestNoClientMovesWithoutAllowMoves(t *testing.T) {
	hello, err := AppendHello(nil, &netloopv1.Hello{Protocol: ProtocolVersion})
	if err != nil {
		t.Fatal(err)
	}
	for what, frame := range map[string][]byte{"a hello": hello, "no ticket": {4, 0x8a, 1, 1, 0}, "an empty move": {3, 0x8a, 1, 0}, "moved by a client": appendMoveFrame(nil, frameMoved, "x")} {
		m := newMoved(t)
		if err := m.server.ReceiveStream(1, frame); err == nil {
			t.Errorf("%s is taken", what)
		}
		if why, _ := m.server.Cause(); why.Code != CodeProtocol || m.next != nil {
			t.Errorf("%s: %v", what, why)
		}
	}
}

// A client that cannot move, or has a link without Moves, is closed with the ticket.
func TestAClientThatCannotMoveGetsTheTicket(t *testing.T) {
	for _, moves := range []bool{false, true} {
		server, _ := pair(SessionConfig{Moves: moves})
		server.Session.Move("ticket")
		if why, _ := server.Cause(); why.Code != CodeMoved || why.Text != "ticket" {
			t.Errorf("closed with %v", why)
		}
	}
}

// The end of a link also ends the session that follows, whether it begins before or after that
// session: each admitted client ends with a Gone.
func TestAnEndReachesTheNextSession(t *testing.T) {
	m := newMoved(t)
	m.tell()
	m.follow()
	carry(t, m.client, m.server, 2)
	m.server.Shutdown(CodeClosing, "closing")
	if why, ends := m.next.Cause(); !ends || why.Code != CodeClosing {
		t.Errorf("the next session ends with %v", why)
	}
	m = newMoved(t)
	m.tell()
	m.client.Link.End(Closed{Code: CodeLost})
	m.follow()
	var closed *Closed
	if !errors.As(m.failed, &closed) || closed.Code != CodeLost {
		t.Errorf("who asks for a session of a link that has ended is told %v", m.failed)
	}
}
