package client

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/transport"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// otherServer is the destination of moves.
var otherServer = transport.Destination{{Carrier: "quic", Addr: "other:1"}}

// newTraveller returns a client that can dial other servers.
func newTraveller(t *testing.T, cfg Config) *returner {
	t.Helper()
	r := newReturner(t, cfg)
	r.conn.travels = true
	return r
}

// told delivers a frame moved with the address of another server.
func (r *returner) told(ticket string, to transport.Destination) {
	r.t.Helper()
	r.arrives(transport.Arrival{Kind: transport.MoveTold, Message: transport.Message{Text: ticket}, Decoded: to})
}

// last returns the newest dial.
func (r *returner) last() *attempt { return r.dials[len(r.dials)-1] }

// establish brings the newest dial its connection, and returns whether its hello was sent. The next
// frame takes it.
func (r *returner) establish() (sent *bool) {
	sent = new(bool)
	r.last().hold(func() { *sent = true })
	r.frame(0)
	return sent
}

// elsewhere is the welcome of the other server.
func (r *returner) elsewhere() *netloopv1.Welcome {
	w := r.welcome("other secret")
	w.ClientId, w.InstanceId, w.Room = 9, []byte("two"), "oak"
	return w
}

// accepts is the other server's message that it has accepted the client.
func (r *returner) accepts() {
	r.t.Helper()
	b, err := transport.AppendFrame(nil, &netloopv1.Frame{Kind: &netloopv1.Frame_Accepted{Accepted: &netloopv1.Accepted{}}})
	if err == nil {
		err = r.link.ReceiveStream(r.clock.Now(), b)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	r.frame(0)
}

// A client dials the other server while it plays, leaves its room when the connection is there, and
// has moved when the other server has accepted it. It reconnects to the other server later.
func TestAClientMovesToAnotherServer(t *testing.T) {
	r := newTraveller(t, Config{Token: "once"})
	old := r.conn.session
	r.told("ticket@oak", otherServer)
	if len(r.dials) != 1 || !r.last().holds || r.last().to.Addr != "other:1" {
		t.Fatalf("%d dials", len(r.dials))
	}
	if limit := r.last().limit; limit != 10*time.Second {
		t.Errorf("the attempt ends after %v, want 5 s for the dial and 5 s for the answer", limit)
	}
	h := r.last().hello
	if h.GetTicket() != "ticket@oak" || h.GetRoom() != "" || h.GetToken() != "" || !h.GetTravels() || h.GetResume() == nil || len(h.GetResume().GetToken()) > 0 {
		t.Errorf("it says %v", h)
	}
	r.frame(time.Second)
	if _, ended := old.Cause(); ended || r.State().Phase != Loading || len(r.phases) > 0 {
		t.Fatalf("it does not play on: %v", r.phases)
	}
	sent := r.establish()
	if why, ended := old.Cause(); !ended || why.Code != netloop.CodeMoved || !*sent || r.State().Phase != Moving {
		t.Fatalf("closed %v with %v, hello sent %v, phase %v", ended, why, *sent, r.State().Phase)
	}
	r.answer(r.elsewhere())
	if r.ID() != 1 || r.State().Phase != Moving || r.conn.live() {
		t.Errorf("before it is accepted it is %d, %v", r.ID(), r.State().Phase)
	}
	r.accepts()
	if r.ID() != 9 || r.Room() != "oak" || r.State().Phase != Loading || r.conn.trip != nil || r.Stats().Drops != 0 {
		t.Errorf("it is %d in %q, %v", r.ID(), r.Room(), r.State().Phase)
	}
	r.breaks(netloop.CodeLost)
	if a := r.last(); len(r.dials) != 2 || a.to == nil || a.to.Addr != "other:1" || string(a.hello.GetResume().GetToken()) != "other secret" || a.holds {
		t.Errorf("it reconnects to %v with %v", a.to, a.hello)
	}
}

// A client that the other server does not accept resumes its seat with its secret, and plays.
func TestAClientReturnsFromAnotherServer(t *testing.T) {
	for name, ends := range map[string]func(*returner){
		"refused":              func(r *returner) { r.fail(&transport.Refusal{Code: netloop.CodeTicket, Text: "no"}) },
		"dead":                 func(r *returner) { r.fail(errors.New("connection lost")) },
		"silent":               func(r *returner) { r.frame(travelTime) },
		"silent after welcome": func(r *returner) { r.answer(r.elsewhere()); r.frame(travelTime) },
		"dead after welcome": func(r *returner) {
			r.answer(r.elsewhere())
			r.link.End(transport.Closed{Code: transport.CodeLost})
		},
		"closed after welcome": func(r *returner) {
			r.answer(r.elsewhere())
			r.link.End(transport.Closed{Code: transport.CodeKicked, Remote: true})
		},
		"a bad welcome": func(r *returner) {
			w := r.elsewhere()
			w.TickRate = &netloopv1.Rate{Num: 1 << 40, Den: 1}
			r.answer(w)
			r.accepts()
		},
	} {
		r := newTraveller(t, Config{})
		r.told("ticket@oak", otherServer)
		r.establish()
		ends(r)
		r.frame(0)
		a := r.last()
		if len(r.dials) != 2 || a.to != nil || string(a.hello.GetResume().GetToken()) != "first" || !a.hello.GetResume().GetKept() || a.hello.GetTicket() != "" {
			t.Errorf("%s: %d dials, the last to %v with %v", name, len(r.dials), a.to, a.hello)
			continue
		}
		if r.conn.rejoin.err == nil { // Its limits would be those of a move.
			t.Errorf("%s: it reconnects without a reason", name)
		}
		r.answer(r.back("second"))
		r.arrives(transport.Arrival{Kind: transport.Accepted})
		if r.ID() != 1 || r.State().Phase != Loading || r.Closed() != nil || r.Stats().Resumes != 1 {
			t.Errorf("%s: it is %d, %v", name, r.ID(), r.State())
		}
	}
}

// After a failed or slow dial the client stays in its room.
func TestAClientStaysIfTheOtherServerDoesNotAnswer(t *testing.T) {
	for name, ends := range map[string]func(*returner){
		"failed":  func(r *returner) { r.fail(errors.New("nobody is there")) },
		"refused": func(r *returner) { r.fail(&transport.Refusal{Code: netloop.CodeFull}) },
		"late":    func(r *returner) { r.frame(travelTime) },
	} {
		r := newTraveller(t, Config{})
		r.told("ticket@oak", otherServer)
		ends(r)
		r.frame(0)
		if r.conn.trip != nil || !r.last().discarded || !r.conn.live() || len(r.phases) > 0 || r.State().Phase != Loading {
			t.Errorf("%s: it is %v", name, r.State())
		}
	}
}

// The addresses are dialled in their order, those of the client's own carrier first; an unknown
// carrier is skipped.
func TestTheAddressesOfAnotherServerAreDialledInTurn(t *testing.T) {
	r := newTraveller(t, Config{Transport: WebSocket})
	r.told("ticket@oak", transport.Destination{
		{Carrier: "pigeon", Addr: "a"}, {Carrier: "quic", Addr: "b:1"}, {Carrier: "websocket", Addr: "c:1"},
	})
	for _, want := range []string{"c:1", "b:1"} {
		if a := r.last(); a.to.Addr != want {
			t.Errorf("it dials %v, want %s", a.to, want)
		}
		r.fail(errors.New("nobody is there"))
		r.frame(0)
	}
	if len(r.dials) != 2 || r.conn.trip != nil {
		t.Errorf("%d dials", len(r.dials))
	}
	r.told("ticket@oak", transport.Destination{{Carrier: "pigeon", Addr: "a"}})
	if len(r.dials) != 2 || r.conn.trip != nil || !r.conn.live() {
		t.Error("it dials an unknown carrier")
	}
}

// A later move, to any server, replaces one without a connection.
func TestALaterMoveReplacesAnEarlierOne(t *testing.T) {
	r := newTraveller(t, Config{})
	r.told("first@oak", otherServer)
	first := r.last()
	r.told("second@oak", otherServer)
	if len(r.dials) != 2 || !first.discarded || r.last().hello.GetTicket() != "second@oak" {
		t.Errorf("%d dials, the first discarded: %v", len(r.dials), first.discarded)
	}
	second := r.last()
	r.arrives(transport.Arrival{Kind: transport.MoveTold, Message: transport.Message{Text: "here@elm"}})
	if !second.discarded || r.conn.trip != nil || r.State().Phase != Moving {
		t.Errorf("after a move within the server: %v", r.State())
	}
}

// If the old server ends during the dial, the client continues to the other one, and has no way
// back.
func TestAClientOutlivesItsOldServer(t *testing.T) {
	for name, accepted := range map[string]bool{"accepted": true, "refused": false} {
		r := newTraveller(t, Config{})
		r.told("ticket@oak", otherServer)
		r.breaks(netloop.CodeClosing)
		if r.Closed() != nil || r.State().Phase != Moving {
			t.Fatalf("%s: closed %v", name, r.Closed())
		}
		r.frame(time.Second)
		if sent := r.establish(); !*sent {
			t.Errorf("%s: it does not go on", name)
		}
		if accepted {
			r.answer(r.elsewhere())
			r.accepts()
			if r.ID() != 9 || r.State().Phase != Loading {
				t.Errorf("%s: it is %d, %v", name, r.ID(), r.State())
			}
			continue
		}
		r.fail(&transport.Refusal{Code: netloop.CodeFull, Text: "full"})
		r.frame(0)
		if why := r.Closed(); why == nil || why.Code != netloop.CodeFull || len(r.dials) != 1 {
			t.Errorf("%s: closed %v", name, why)
		}
	}
	r := newTraveller(t, Config{})
	r.told("ticket@oak", otherServer)
	r.breaks(netloop.CodeClosing)
	r.fail(errors.New("nobody is there"))
	r.frame(0)
	if why := r.Closed(); why == nil || why.Code != netloop.CodeClosing {
		t.Errorf("without either server it is closed with %v", why)
	}
	r = newTraveller(t, Config{})
	r.told("ticket@oak", otherServer)
	r.breaks(netloop.CodeKicked)
	if why := r.Closed(); why == nil || why.Code != netloop.CodeKicked || !r.last().discarded {
		t.Errorf("a kicked client is closed with %v", why)
	}
}

// A client that loses its connection during the dial tries both, and goes to the other server when
// that answers.
func TestAConnectionBreaksDuringTheDial(t *testing.T) {
	r := newTraveller(t, Config{})
	r.told("ticket@oak", otherServer)
	trip := r.last()
	r.breaks(netloop.CodeLost)
	if len(r.dials) != 2 || r.last().to != nil {
		t.Fatalf("%d dials", len(r.dials))
	}
	back := r.last()
	r.answer(r.back("second"))
	r.arrives(transport.Arrival{Kind: transport.Accepted})
	if trip.discarded || r.conn.trip == nil || r.State().Phase != Loading {
		t.Fatalf("back in its room it does not go on: %v", r.State())
	}
	sent := false
	trip.hold(func() { sent = true })
	r.frame(0)
	if !sent || r.State().Phase != Moving || string(back.hello.GetResume().GetToken()) != "first" {
		t.Errorf("sent %v, %v", sent, r.State())
	}
	r = newTraveller(t, Config{})
	r.told("ticket@oak", otherServer)
	trip = r.last()
	r.breaks(netloop.CodeLost)
	trip.hold(func() {})
	r.frame(0)
	if !r.last().discarded || r.State().Phase != Moving {
		t.Errorf("the way back is dialled further: %v", r.State())
	}
}

// Without reconnecting there is no way back.
func TestWithoutReconnectingThereIsNoWayBack(t *testing.T) {
	r := newTraveller(t, Config{Reconnect: Reconnect{Off: true}})
	r.conn.secret = nil
	r.told("ticket@oak", otherServer)
	r.establish()
	r.fail(&transport.Refusal{Code: netloop.CodeFull, Text: "full"})
	r.frame(0)
	if why := r.Closed(); why == nil || why.Code != netloop.CodeFull {
		t.Errorf("closed %v", why)
	}
}

// A server that answers with the address of another one is believed three times in a row.
func TestAClientIsPassedOn(t *testing.T) {
	passed := func(n int) error {
		m := &transport.MovedTo{Ticket: fmt.Sprint("t", n, "@oak"), To: transport.Destination{{Carrier: "quic", Addr: fmt.Sprint("s", n, ":1")}}}
		return &transport.Refusal{Code: netloop.CodeMoved, Text: "elsewhere", Moved: m}
	}
	r := newTraveller(t, Config{Token: "once"})
	r.breaks(netloop.CodeLost)
	for n := range maxRedirects {
		r.fail(passed(n))
		r.frame(0)
		a := r.last()
		if len(r.dials) != n+2 || a.to == nil || a.to.Addr != fmt.Sprint("s", n, ":1") || a.hello.GetTicket() != fmt.Sprint("t", n, "@oak") || a.hello.GetToken() != "" || len(a.hello.GetResume().GetToken()) > 0 {
			t.Fatalf("%d: %d dials, the last to %v with %v", n, len(r.dials), a.to, a.hello)
		}
	}
	r.fail(passed(maxRedirects))
	r.frame(0)
	if why := r.Closed(); why == nil || why.Code != netloop.CodeMoved {
		t.Errorf("closed %v after %d dials", why, len(r.dials))
	}
	r = newTraveller(t, Config{})
	r.told("ticket@oak", otherServer)
	r.establish()
	r.fail(passed(0))
	r.frame(0)
	if len(r.dials) != 2 || r.last().to.Addr != "s0:1" || r.last().holds {
		t.Fatalf("a travelling client is passed on: %d dials", len(r.dials))
	}
	r.answer(r.elsewhere())
	r.accepts()
	if r.ID() != 9 {
		t.Errorf("it is %d, %v", r.ID(), r.State())
	}
}
