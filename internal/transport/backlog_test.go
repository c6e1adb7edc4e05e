package transport

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/netloop/netloop/internal/testing/seeds"
)

// mate is one side of a client's session over several connections, with its sent and received
// messages.
type mate struct {
	backlog  *Backlog
	inbox    *Inbox
	session  *Session
	link     *Link
	client   bool
	sent     int
	before   uint64 // messages that it had had when this connection began
	received uint64
	heard    []string
}

func newMate(client bool) *mate {
	return &mate{backlog: new(Backlog), inbox: NewInbox(1<<15, nil), client: client}
}

// connect begins a connection.
func (m *mate) connect() {
	m.session, m.link = NewSession(SessionConfig{ID: 1, Client: m.client, Inbox: m.inbox})
	m.session.Keep(m.backlog)
	m.before = m.received
}

func (m *mate) say(t *testing.T, payload int) {
	m.sent++
	text := strconv.Itoa(m.sent)
	if !m.session.Send(Message{Method: 1, Reliable: true, Text: text, Payload: make([]byte, payload)}) {
		t.Fatal("a message was refused")
	}
}

// take processes the arrivals.
func (m *mate) take(t *testing.T) {
	for _, a := range m.inbox.Swap(nil) {
		if a.Session != m.session {
			continue // Of an ended connection.
		}
		switch a.Kind {
		case MessageArrived:
			m.heard = append(m.heard, a.Message.Text)
			m.received = m.before + a.Number
			m.session.Received(m.received, a.Size)
		case Accepted:
			if !m.session.Resend(a.Value) {
				t.Fatalf("%d messages of %d cannot have arrived", a.Value, m.sent)
			}
		case Received:
			if !m.backlog.Confirm(a.Value) {
				t.Fatalf("%d messages of %d cannot have been received", a.Value, m.sent)
			}
		}
	}
}

// carryStream transfers at most a number of stream bytes from one side to the other.
func carryStream(t *testing.T, from, to *mate, limit int) {
	from.session.Flush(0)
	if err := to.link.ReceiveStream(0, from.link.AppendStream(nil, limit)); err != nil {
		t.Fatal(err)
	}
	to.take(t)
}

// Wherever connections break, each side receives the other's reliable messages once each and in
// order.
func TestReliableMessagesOutliveConnections(t *testing.T) {
	for seed := range seeds.Of(t, 200) {
		rng := rand.New(rand.NewPCG(seed, 7))
		server, client := newMate(false), newMate(true)
		server.connect()
		client.connect()
		server.session.Accept(0)
		for range 400 {
			a, b := server, client
			if rng.IntN(2) == 0 {
				a, b = b, a
			}
			switch rng.IntN(12) {
			case 0:
				was := client.link
				server.link.End(Closed{Code: CodeLost})
				was.End(Closed{Code: CodeLost})
				server.take(t)
				client.take(t)
				if rng.IntN(2) == 0 {
					a.say(t, rng.IntN(300)) // Both are disconnected meanwhile.
				}
				server.connect()
				client.connect()
				client.session.AwaitPeer()
				server.session.AwaitPeer()
				server.session.Accept(server.received)
				if !server.session.Resend(client.received) {
					t.Fatalf("seed %d: the server has not sent what the client has had", seed)
				}
			case 1, 2, 3, 4, 5:
				a.say(t, rng.IntN(300))
			default:
				carryStream(t, a, b, rng.IntN(2000))
			}
		}
		for range 3 {
			carryStream(t, server, client, 1<<20)
			carryStream(t, client, server, 1<<20)
		}
		for _, m := range []*mate{server, client} {
			other := server
			if m == server {
				other = client
			}
			if len(m.heard) != other.sent {
				t.Fatalf("seed %d: %d messages of %d arrived", seed, len(m.heard), other.sent)
			}
			for i, text := range m.heard {
				if text != strconv.Itoa(i+1) {
					t.Fatalf("seed %d: message %d is %s", seed, i+1, text)
				}
			}
			if n := m.backlog.Len(); n >= 2*receiptMessages {
				t.Errorf("seed %d: %d messages are kept of a peer that has them", seed, n)
			}
		}
	}
}

// A confirmed number above the last message sent, or below an earlier one, is refused without
// effect.
func TestTheBacklogRefusesImpossibleNumbers(t *testing.T) {
	m := newMate(false)
	m.connect()
	for range 3 {
		m.say(t, 1)
	}
	if m.backlog.Confirm(4) || !m.backlog.Confirm(2) || m.backlog.Confirm(1) || m.session.Resend(4) || m.session.Resend(1) {
		t.Error("a number that makes no sense was taken")
	}
	if !m.backlog.Confirm(2) || m.backlog.Len() != 1 || !m.backlog.Confirm(3) || m.backlog.Len() != 0 || m.backlog.kept.size() != 0 {
		t.Errorf("%d messages in %d bytes are kept", m.backlog.Len(), m.backlog.kept.size())
	}
}

// Unconfirmed messages are bounded like unread ones; above the bound the connection is closed.
func TestBacklogIsBounded(t *testing.T) {
	for _, gone := range []bool{false, true} {
		m := newMate(false)
		m.connect()
		if gone {
			m.link.End(Closed{Code: CodeLost})
			m.session.Flush(0)
		}
		kept := 0
		for m.session.Send(Message{Method: 1, Reliable: true, Payload: make([]byte, 10<<10)}) {
			kept++
			m.session.Flush(0)
			m.link.AppendStream(nil, 1<<20)
		}
		why, _ := m.session.Cause()
		if want := maxBacklogBytes / (10<<10 + 8); kept != want || !m.backlog.Overflowed() || !gone && why.Code != CodeSlow || m.backlog.Len() != kept {
			t.Errorf("gone %v: %d messages are kept, %d want; overflowed %v; %v", gone, kept, want, m.backlog.Overflowed(), why)
		}
	}
}

// Messages are confirmed once for a number of messages or bytes, because each confirmation is a
// frame.
func TestReceiptsAreRare(t *testing.T) {
	m := newMate(false)
	m.connect()
	told := func() uint64 {
		m.session.Flush(0)
		m.link.AppendStream(nil, 1<<20)
		return m.link.leg.Load().stats.FramesOut.Load()
	}
	for n := uint64(1); n < 16; n++ { // docs/WIRE.md lists 16 and 32 KiB.
		m.session.Received(n, 10)
	}
	if n := told(); n != 0 {
		t.Errorf("told %d times of few messages", n)
	}
	m.session.Received(16, 10)
	if n := told(); n != 1 {
		t.Errorf("told %d times of 16 messages", n)
	}
	m.session.Received(17, 32<<10-1)
	if n := told(); n != 1 {
		t.Error("told before there were so many bytes")
	}
	m.session.Received(18, 1)
	if n := told(); n != 2 {
		t.Error("not told of so many bytes")
	}
}

// A reliable message after the end of a connection is kept, neither counted as sent nor as dropped;
// an unreliable one is dropped.
func TestMessagesWithoutAConnectionAreKept(t *testing.T) {
	m := newMate(false)
	m.connect()
	m.link.End(Closed{Code: CodeLost})
	m.session.Flush(0)
	m.say(t, 1)
	if m.session.Send(Message{Method: 1}) || m.session.stats.Dropped(DropClosed) != 1 || m.session.stats.FramesOut.Load() != 0 || m.backlog.Len() != 1 {
		t.Errorf("%d dropped, %d kept", m.session.stats.Dropped(DropClosed), m.backlog.Len())
	}
}
