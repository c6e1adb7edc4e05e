package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	logtest "go.uber.org/zap/zaptest/observer"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/bridge"
	"github.com/netloop/netloop/internal/logging"
	"github.com/netloop/netloop/internal/loop"
	declared "github.com/netloop/netloop/internal/schema"
	"github.com/netloop/netloop/internal/transport"
)

// peers is a server with connections that have no client program: the test sends frames that no
// client would send, and reads each frame that the server sends.
type peers struct {
	t    *testing.T
	s    bridge.Server
	tick uint64
	logs *logtest.ObservedLogs
	// links are the drivers' sides of the connections.
	links map[*transport.Session]*transport.Link
}

func newPeers(t *testing.T, cfg netloop.Config, g netloop.Game) *peers {
	t.Helper()
	core, logs := logtest.New(zapcore.InfoLevel)
	cfg.Log = logging.Slog(zap.New(core))
	s, err := netloop.New(cfg, g)
	if err != nil {
		t.Fatal(err)
	}
	return &peers{t: t, s: bridge.Netloop.Server(s), logs: logs, links: map[*transport.Session]*transport.Link{}}
}

// admit requests admission from an address.
func (p *peers) admit(ctx context.Context, token, addr string) (*transport.Admitted, error) {
	hello := bridge.Netloop.Schema(p.s.Schema).Hello()
	hello.Token = token
	return p.s.Handler.Admit(ctx, hello, addr)
}

func (p *peers) join(token, addr string) *transport.Session {
	p.t.Helper()
	adm, err := p.admit(p.t.Context(), token, addr)
	if err != nil {
		p.t.Fatal(err)
	}
	s, link := transport.NewSession(adm.Session)
	p.links[s] = link
	adm.Joined(s)
	return s
}

func (p *peers) step(n int) {
	p.t.Helper()
	for range n {
		p.tick++
		in := p.s.Room.Timeline().Input(p.tick)
		in.Epoch = loop.Epoch{Tick: 1}
		if err := p.s.Room.Step(in); err != nil {
			p.t.Fatal(err)
		}
	}
}

// flood receives more messages of a client than the limits allow.
func (p *peers) flood(s *transport.Session) {
	p.t.Helper()
	if !s.Inbox().Push(transport.Arrival{Kind: transport.Discarded, Session: s, Value: 1 << 20}) {
		p.t.Fatal("the inbox does not take it")
	}
}

// say receives a message of a client.
func (p *peers) say(s *transport.Session, m *declared.Method, call uint64, msg any) {
	p.t.Helper()
	a := transport.Arrival{
		Kind: transport.MessageArrived, Session: s, Method: m, Decoded: msg,
		Message: transport.Message{Method: m.Queue.ID, Call: call},
	}
	if !s.Inbox().Push(a) {
		p.t.Fatal("the inbox does not take it")
	}
}

// heard returns the frames on a client's stream.
func (p *peers) heard(s *transport.Session) []transport.Arrival {
	p.t.Helper()
	inbox := transport.NewInbox(0, nil)
	_, far := transport.NewSession(transport.SessionConfig{Client: true, Inbox: inbox})
	if err := far.ReceiveStream(0, p.links[s].AppendStream(nil, 1<<20)); err != nil {
		p.t.Fatal(err)
	}
	return inbox.Swap(nil)
}

// count returns how many of them are of a kind.
func count(all []transport.Arrival, kind transport.ArrivalKind) (n int) {
	for i := range all {
		if all[i].Kind == kind {
			n++
		}
	}
	return n
}

// logged returns how many lines of the log have a message.
func (p *peers) logged(message string) int { return p.logs.FilterMessage(message).Len() }

// TestATimeScaleIsSentOnlyWhenItChanges, not in each tick and not when it is set to its value.
func TestATimeScaleIsSentOnlyWhenItChanges(t *testing.T) {
	p := newPeers(t, netloop.Config{}, script(func(r *netloop.Room) {
		r.On(netloop.Update, "test.scale", func(tick *netloop.Tick) {
			switch tick.Number() {
			case 5:
				r.SetTimeScale(tick, 1, 2)
			case 8:
				r.SetTimeScale(tick, 2, 4)
			case 10:
				r.SetTimeScale(tick, 1, 1)
			}
		})
	}))
	s := p.join("", "here")
	var told []uint64
	for range 15 {
		p.step(1)
		if count(p.heard(s), transport.TimeScaleChanged) > 0 {
			told = append(told, p.tick)
		}
	}
	if want := []uint64{5, 10}; !slices.Equal(told, want) && !slices.Equal(told, []uint64{6, 11}) {
		t.Errorf("sent in the ticks %v, want %v or the ones after", told, want)
	}
}

// A welcome has the room's snapshot interval.
func TestAWelcomeHasTheSnapshotInterval(t *testing.T) {
	p := newPeers(t, netloop.Config{Room: netloop.RoomSpec{SendEvery: 3, Rate: netloop.Hz(20), FixedRate: netloop.Hz(40)}}, script(func(*netloop.Room) {}))
	adm, err := p.admit(t.Context(), "", "here")
	if err != nil {
		t.Fatal(err)
	}
	if w := adm.Welcome; w.GetSendEvery() != 3 || w.GetTickRate().GetNum() != 20 || w.GetFixedRate().GetNum() != 40 || w.GetTimeScale() != nil {
		t.Errorf("%v", w)
	}
}

// A client may send RPCs and questions, each in its own frame, and no answers.
func TestAClientSendsNoAnswers(t *testing.T) {
	p := newPeers(t, netloop.Config{}, script(func(*netloop.Room) {}))
	adm, err := p.admit(t.Context(), "", "here")
	if err != nil {
		t.Fatal(err)
	}
	rpc, call := bridge.Netloop.Method(spawned), bridge.Netloop.Method(add)
	payload := func(m any, append func([]byte, any) ([]byte, error)) []byte {
		b, err := append(nil, m)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	announcement, question := payload(&announcement{}, rpc.In.Append), payload(&pair{}, call.In.Append)
	for name, c := range map[string]struct {
		m  transport.Message
		ok bool
	}{
		"an RPC":               {transport.Message{Method: rpc.Queue.ID, Payload: announcement}, true},
		"a question":           {transport.Message{Method: call.Queue.ID, Call: 1, Payload: question}, true},
		"an RPC with a number": {transport.Message{Method: rpc.Queue.ID, Call: 1, Payload: announcement}, false},
		"a question without":   {transport.Message{Method: call.Queue.ID, Payload: question}, false},
		"an answer":            {transport.Message{Method: call.Queue.ID, Call: 1, Reply: true, Payload: question}, false},
		"an RPC as an answer":  {transport.Message{Method: rpc.Queue.ID, Reply: true, Payload: announcement}, false},
		"of no method":         {transport.Message{Method: 60_000}, true}, // The queue counts it.
	} {
		if _, _, err := adm.Session.Decode(&c.m); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An OnAdmit function that takes longer than AdmitTimeout is ended by its context, and the client
// gets this reason.
func TestAnAdmissionThatTakesTooLongIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeers(t, netloop.Config{AdmitTimeout: 3 * time.Second}, script(func(r *netloop.Room) {
			r.OnAdmit(func(ctx context.Context, _ *netloop.Join) error { <-ctx.Done(); return ctx.Err() })
		}))
		began := time.Now()
		_, err := p.admit(t.Context(), "", "here")
		var refused *transport.Refusal
		if !errors.As(err, &refused) || refused.Code != netloop.CodeTimeout || time.Since(began) != 3*time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}

// Clients without a known address share no limit and no penalty.
func TestClientsWithoutAnAddressShareNoLimits(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for addr, refused := range map[string]bool{"": false, "10.1.2.3:1": true} {
		p := newPeers(t, netloop.Config{}, script(func(*netloop.Room) {}))
		s := p.join("", addr)
		p.step(1)
		p.flood(s)
		p.step(1)
		if why, ok := s.Cause(); !ok || why.Code != netloop.CodeFlood {
			t.Fatalf("a flooding client gets %v", why)
		}
		if _, err := p.admit(ended, "", addr); (err != nil) != refused { // It has no time to wait.
			t.Errorf("from %q the next gets %v", addr, err)
		}
	}
}

// A client that was already closed in this tick keeps the first reason.
func TestAClientIsClosedWithTheFirstReason(t *testing.T) {
	several := netloop.Config{Room: netloop.RoomSpec{Duplicate: netloop.DuplicateAllow}}
	p := newPeers(t, several, script(func(r *netloop.Room) {
		r.OnAdmit(func(_ context.Context, j *netloop.Join) error { j.Subject = "ann"; return nil })
		r.On(netloop.Initialization, "test.kick", func(tick *netloop.Tick) {
			if c, ok := tick.Client(1); ok && tick.Number() == 2 {
				c.Kick(tick, netloop.CodeGame, "out")
			}
		})
	}))
	first, second := p.join("", "here"), p.join("", "there")
	p.step(1)
	p.flood(second)
	p.step(1)
	for s, code := range map[*transport.Session]netloop.Code{first: netloop.CodeGame, second: netloop.CodeFlood} {
		if why, ok := s.Cause(); !ok || why.Code != code {
			t.Errorf("client %d got %v, want %v", s.ID(), why, code)
		}
	}
}

// A check's refusal is sent as the answer of a call only. Messages posted by the server are the
// game's own and are not checked.
func TestOnlyRefusedCallsAreAnswered(t *testing.T) {
	guarded := netloop.NewSchema("guarded", 1, 0)
	secret := netloop.NewRPC[text](guarded, "secret", netloop.MinRole(5))
	question := netloop.NewCall[text, text](guarded, "question", netloop.MinRole(5))
	ran := 0
	var room *netloop.Room
	p := newPeers(t, netloop.Config{}, game{guarded, func(r *netloop.Room) {
		room = r
		secret.Handle(r, func(_ *netloop.Tick, from *netloop.Client, _ text) error {
			if ran++; from != nil {
				t.Error("it ran for a client")
			}
			return nil
		})
		question.Handle(r, func(*netloop.Tick, *netloop.Client, text) (text, error) { ran++; return text{}, nil })
	}})
	s := p.join("", "here")
	p.step(1)
	p.heard(s)
	p.say(s, bridge.Netloop.Method(secret), 0, &text{})
	if p.step(1); count(p.heard(s), transport.MessageArrived) != 0 {
		t.Error("an RPC was answered")
	}
	p.say(s, bridge.Netloop.Method(question), 7, &text{})
	p.step(1)
	if all := p.heard(s); len(all) != 1 || all[0].Message.Call != 7 || all[0].Message.Code != uint32(netloop.CodeRefused) {
		t.Errorf("a question was answered with %+v", all)
	}
	if err := secret.Post(room, text{}); err != nil {
		t.Fatal(err)
	}
	if p.step(1); ran != 1 {
		t.Errorf("of a post and two messages of a client %d ran", ran)
	}
}

// Of two failed checks of a kind, the first declared one decides.
func TestChecksOfAKindRunInTheOrderOfTheirDeclaration(t *testing.T) {
	checked := netloop.NewSchema("checked", 1, 0)
	no := func(why string) netloop.RPCOption {
		return netloop.Validate(func(text) error { return netloop.Refuse(netloop.CodeGame, "%s", why) })
	}
	question := netloop.NewCall[text, text](checked, "question", no("first"), no("second"), no("third"))
	p := newPeers(t, netloop.Config{}, game{checked, func(r *netloop.Room) {
		question.Handle(r, func(*netloop.Tick, *netloop.Client, text) (text, error) { return text{}, nil })
	}})
	s := p.join("", "here")
	p.step(1)
	p.heard(s)
	p.say(s, bridge.Netloop.Method(question), 7, &text{})
	p.step(1)
	if all := p.heard(s); len(all) != 1 || all[0].Message.Text != "first" {
		t.Errorf("answered with %+v", all)
	}
}

// A client may send the id of any object. Get finds no object of another class.
func TestARefToAnotherClassFindsNothing(t *testing.T) {
	w := open(t, func(*netloop.Room) {})
	c := play(t, w, perfect)
	var ref netloop.Ref[thing]
	find := func(tick *netloop.Tick) {
		if o, ok := ref.Get(tick); ok {
			t.Errorf("found %v", o)
		}
	}
	w.Tick(func(tick *netloop.Tick) {
		other := notes.Spawn(tick, note{Text: "a note"}).Ref()
		ref = *(*netloop.Ref[thing])(unsafe.Pointer(&other)) // As decoded from the wire.
		find(tick)
	})
	w.Step(3)
	if len(look(w, c, notes)) != 1 {
		t.Fatal("the client does not have the note")
	}
	w.Look(c, find)
}

// An answer's internal error is logged, not sent to the client.
func TestTheReasonOfAnInternalErrorIsLogged(t *testing.T) {
	answer := errors.New("the database is gone")
	p := newPeers(t, netloop.Config{}, script(func(r *netloop.Room) {
		add.HandleLater(r, func(tick *netloop.Tick, _ *netloop.Client, q pair, reply netloop.Reply[sum]) {
			reply.Send(tick, sum{}, answer)
		})
	}))
	s := p.join("", "here")
	p.step(1)
	lines := func() (n int) {
		for _, e := range p.logs.TakeAll() {
			if strings.Contains(fmt.Sprint(e.Message, e.ContextMap()), "add") {
				n++
			}
		}
		return n
	}
	p.say(s, bridge.Netloop.Method(add), 1, &pair{})
	if p.step(1); lines() != 1 {
		t.Error("the log has no line")
	}
	answer = netloop.Refuse(netloop.CodeGame, "not today")
	p.say(s, bridge.Netloop.Method(add), 2, &pair{})
	if p.step(1); lines() != 0 {
		t.Error("the log has the text of the client's refusal")
	}
}
