package transport

import (
	"errors"
	"testing"
	"time"
)

// A session with too many bytes under way gets no further messages accepted, until the owner
// returns their charge: an unreliable one is lost, a reliable one is reported to the owner, and the
// session continues. Other arrivals are accepted.
func TestBytesUnderWayLimitFurtherMessages(t *testing.T) {
	server, client := pair(SessionConfig{})
	server.cfg.Decode = func(*Message) (any, any, error) { return "method", "message", nil }
	server.cfg.Size = func(*Message) int { return MaxDecoded - 1<<10 }
	at := time.Duration(0)
	say := func(reliable bool) []Arrival {
		at += time.Second
		client.Send(Message{Method: 3, Stage: 2, Call: 9, Reliable: reliable, Payload: []byte{1, 2, 3}})
		client.AckRecord(7)
		client.Flush(at)
		carry(t, client, server, at)
		return server.arrivals()
	}
	carryAll := func() (kept int) {
		server.inbox.Each(func(a *Arrival) {
			if a.Kind == MessageArrived {
				kept, a.Held = a.Held, 0
			}
		})
		return kept
	}
	client.Send(Message{Method: 3, Reliable: true, Payload: []byte{1}})
	client.Flush(0)
	carry(t, client, server, 0)
	kept := carryAll()
	if kept != MaxDecoded-1<<10+entryBytes {
		t.Fatalf("a message holds %d bytes", kept)
	}
	if as := say(false); len(as) != 1 || as[0].Kind != RecordsApplied || as[0].Value != 7 || as[0].Number != 0 || server.stats.Dropped(DropInboxHeld) != 1 {
		t.Errorf("without room for an unreliable one %v arrive", kinds(as))
	}
	as := say(true)
	want := Message{Method: 3, Stage: 2, Call: 9, Reliable: true}
	if len(as) != 2 || as[0].Kind != NoRoom || as[0].Number != 2 || as[0].Size != 3 || as[0].Message.Call != want.Call ||
		as[0].Message.Method != want.Method || as[0].Message.Stage != want.Stage || as[0].Message.Payload != nil || as[1].Kind != RecordsApplied {
		t.Errorf("without room for a reliable one there are %+v", as)
	}
	server.Session.Held(-kept)
	if as := say(true); len(as) != 2 || as[0].Kind != MessageArrived || as[0].Number != 3 || as[0].Value != 0 {
		t.Errorf("with room again there are %+v", as)
	}
	if why, gone := server.Session.Cause(); gone {
		t.Errorf("the session has ended: %v", why)
	}
	if n := server.underWay.Load(); n != 0 {
		t.Errorf("%d bytes are under way of nothing", n)
	}
}

// No bytes are under way for messages that could not be decoded, for merged arrivals, or after a
// panic in a call of Each.
func TestUndecodedMessagesHaveNoBytesUnderWay(t *testing.T) {
	server, client := pair(SessionConfig{})
	server.cfg.Decode = func(m *Message) (any, any, error) {
		if m.Method == 1 {
			return nil, nil, errors.New("no")
		}
		return nil, nil, nil // It is passed on unchanged.
	}
	for n := range 40 {
		client.Send(Message{Method: uint32(n % 3), Reliable: n%2 == 0, Payload: make([]byte, 100)})
		client.AckState(uint64(n))
		client.AckRecord(uint64(n))
		client.RequestFullState()
		client.Flush(0)
		carry(t, client, server, 0)
	}
	if server.underWay.Load() == 0 {
		t.Fatal("nothing is under way")
	}
	panics := func() {
		t.Helper()
		func() {
			defer func() { _ = recover() }()
			server.inbox.Each(func(a *Arrival) {
				if a.Kind == FullStateRequest {
					a.Session.Held(-a.Held)
					panic("ouch")
				}
			})
			t.Error("nothing has panicked")
		}()
		if n := server.underWay.Load(); n != 0 || server.inbox.Len() != 0 {
			t.Errorf("%d bytes are under way of nothing, and %d arrivals wait", n, server.inbox.Len())
		}
	}
	panics()
	// The same with a single arrival.
	server.inbox.Push(Arrival{Kind: FullStateRequest, Session: server.Session})
	panics()
	if client.Session.Held(100); client.underWay.Load() != 0 {
		t.Error("a client, which trusts its server, counts what is under way")
	}
	client.Send(Message{Method: 2, Payload: make([]byte, 100)})
	client.Flush(0)
	carry(t, client, server, 0)
	if as := server.arrivals(); len(as) != 2 || len(as[0].Acks) == 0 || len(as[1].Message.Payload) != 100 {
		t.Errorf("then there are %+v", as)
	}
}

// A burst of 2 000 small messages between two ticks is taken in full, by a room's defaults.
func TestABurstOfSmallMessagesIsTaken(t *testing.T) {
	server, client := pair(SessionConfig{})
	server.inbox.maxPerSession = 256 + 2000
	server.cfg.Decode = func(*Message) (any, any, error) { return "method", "message", nil }
	server.cfg.Size = func(*Message) int { return 40 }
	server.cfg.Limits, client.cfg.Limits = DefaultLimits, Limits{}
	for range 2000 {
		client.Send(Message{Method: 3, Stage: 5, Reliable: true, Payload: make([]byte, 24)})
	}
	client.Flush(0)
	carry(t, client, server, 0)
	if n := len(server.arrivals()); n != 2000 {
		t.Errorf("%d are taken", n)
	}
}
