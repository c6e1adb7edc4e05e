package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/bridge"
	"github.com/netloop/netloop/internal/net/driver"
	"github.com/netloop/netloop/internal/schema"
	"github.com/netloop/netloop/internal/transport"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// returner is a rig with a reconnecting client: the test decides the results of its dials.
type returner struct {
	*rig
	dials  []*attempt
	phases []string
}

// newReturner has joined a server that keeps its place for 20 s.
func newReturner(t *testing.T, cfg Config) *returner {
	t.Helper()
	cfg.Schema = rigSchema
	r := &returner{rig: newRigOf(t, cfg)}
	r.conn.jitter = rand.New(rand.NewPCG(1, 1))
	r.conn.dial = func(_ context.Context, e *attempt) { r.dials = append(r.dials, e) }
	r.OnState(func(s State) { r.phases = append(r.phases, fmt.Sprint(s.Phase, " ", s.Attempt)) })
	r.connect(r.welcome("first"))
	r.arrives(transport.Arrival{Kind: transport.Accepted})
	r.phases = nil
	return r
}

// welcome returns the welcome of the first server, which admits the client as number 1.
func (r *returner) welcome(secret string) *netloopv1.Welcome {
	hz := &netloopv1.Rate{Num: 10, Den: 1}
	return &netloopv1.Welcome{
		Protocol: 1, ClientId: 1, TickRate: hz, FixedRate: hz, SendEvery: 1, InstanceId: []byte("one"),
		Epoch: &netloopv1.Epoch{Tick: 1}, ServerNs: uint64(r.clock.Now()),
		ResumeToken: []byte(secret), KeepNs: uint64(20 * time.Second),
	}
}

// back returns the welcome of a resumed client.
func (r *returner) back(secret string) *netloopv1.Welcome {
	w := r.welcome(secret)
	w.Resumed = true
	return w
}

// breaks ends the connection.
func (r *returner) breaks(code netloop.Code) {
	r.t.Helper()
	r.arrives(transport.Arrival{Kind: transport.Gone, Closed: &transport.Closed{Code: code, Text: "so it goes"}})
}

// answer lets the dial that is under way bring a connection, which the next frame takes.
func (r *returner) answer(w *netloopv1.Welcome) {
	r.t.Helper()
	e := r.dials[len(r.dials)-1]
	s, link := transport.NewSession(e.config)
	r.link = link
	e.finish(s, w, nil)
	r.frame(0)
}

// fail ends the dial that is under way.
func (r *returner) fail(err error) { r.dials[len(r.dials)-1].finish(nil, nil, err) }

// After a break a client dials at once, and after each failure it waits about twice as long as
// before, with random deviations: up to 5 s while the server answers and refuses, and less while no
// server answers. Finally it gives up, with an error.
func TestABreakIsFollowedByAttempts(t *testing.T) {
	t.Run("refused", func(t *testing.T) {
		testAttempts(t, transport.Refuse(netloop.CodeFull, "full"), "transport: refused: full", 5*time.Second, 14, 25)
	})
	t.Run("unanswered", func(t *testing.T) {
		testAttempts(t, errors.New("nobody is there"), "nobody is there", 600*ms, 70, 140)
	})
}

// A client that gives up remains closed, although the server's messages of the same frame admit it
// and move it to another room.
func TestAClientThatHasGivenUpFollowsNoMove(t *testing.T) {
	r := newReturner(t, Config{})
	r.breaks(netloop.CodeLost)
	r.answer(r.welcome("second"))
	r.clock.Advance(time.Minute)
	r.arrives(transport.Arrival{Kind: transport.Accepted}, transport.Arrival{Kind: transport.MoveTold, Message: transport.Message{Text: "ticket@oak"}})
	if why := r.Closed(); why == nil || why.Code != netloop.CodeLost || r.State().Phase != Closed || r.conn.rejoin != nil {
		t.Errorf("it is closed with %v, and %v", why, r.State().Phase)
	}
}

// A handler may close the client: the later messages of the frame are not handled.
func TestAClosedClientHandlesNoMessage(t *testing.T) {
	r := newReturner(t, Config{})
	r.OnState(func(s State) {
		if s.Closing > 0 {
			r.Close()
		}
	})
	r.arrives(transport.Arrival{Kind: transport.WillClose, Value: 1e9}, transport.Arrival{Kind: transport.WillClose, Value: 2e9})
	if s := r.State(); s.Phase != Closed || s.Closing != 0 {
		t.Errorf("its state is %+v", s)
	}
}

// testAttempts lets all attempts fail, of which there are so many, so far apart at most.
func testAttempts(t *testing.T, fails error, says string, most time.Duration, least, greatest int) {
	r := newReturner(t, Config{})
	r.breaks(netloop.CodeLost)
	if len(r.dials) != 1 || r.dials[0].limit != time.Second || r.Closed() != nil || r.Stats().Drops != 1 {
		t.Fatalf("%d dials, closed %v", len(r.dials), r.Closed())
	}
	s := r.State()
	if s.Phase != Reconnecting || s.Attempt != 1 || s.Left != 20*time.Second {
		t.Errorf("its state is %+v", s)
	}
	r.frame(time.Second)
	if s = r.State(); s.Left != 19*time.Second || len(r.dials) != 1 {
		t.Errorf("a second later its state is %+v, %d dials", s, len(r.dials))
	}
	var limits, begins []time.Duration
	for r.Closed() == nil {
		r.fail(fails)
		failed := r.clock.Now()
		r.frame(0)
		for n := len(r.dials); len(r.dials) == n && r.Closed() == nil; {
			r.frame(5 * ms)
		}
		limits, begins = append(limits, r.dials[len(r.dials)-1].limit), append(begins, r.clock.Now()-failed)
	}
	want := 100 * ms
	for n, wait := range begins[:len(begins)-1] {
		if wait < want/2 || wait > want*3/2+5*ms {
			t.Errorf("after attempt %d it waited %v, want about %v", n+1, wait, want)
		}
		want = min(2*want, most)
	}
	if n := len(r.dials); n < least || n > greatest || !slices.Equal(limits[:4], []time.Duration{2 * time.Second, 4 * time.Second, 5 * time.Second, 5 * time.Second}) {
		t.Errorf("%d dials, limited to %v", n, limits)
	}
	for n, e := range r.dials {
		if e.began+e.limit > time.Minute {
			t.Errorf("attempt %d of %v may last until %v", n+1, e.began, e.began+e.limit)
		}
	}
	why := r.Closed()
	if why.Code != netloop.CodeLost || !strings.HasSuffix(why.Text, fmt.Sprintf("%d attempts to reconnect in 1m0s failed: ", len(r.dials))+says) {
		t.Errorf("it was closed: %v", why)
	}
	if r.State().Phase != Closed || r.State().Left != 0 {
		t.Errorf("its state is %+v", r.State())
	}
	if r.frame(time.Minute); r.phases[0] != "reconnecting 1" || r.phases[1] != "reconnecting 2" || len(r.phases) != len(r.dials)+1 {
		t.Errorf("it told of %q", r.phases)
	}
}

// An attempt without an answer is given up after a second, or three round trips of the connection
// before: it does not wait for QUIC's timeout.
func TestAnUnansweredAttemptIsGivenUp(t *testing.T) {
	for srtt, want := range map[time.Duration]time.Duration{50 * ms: time.Second, 600 * ms: 1800 * ms} {
		r := newReturner(t, Config{})
		r.link.SetRTT(srtt)
		r.breaks(netloop.CodeLost)
		if got := r.dials[0].quiet; got != want {
			t.Errorf("after a round trip of %v it waits %v for an answer, want %v", srtt, got, want)
		}
	}
	deaf, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = deaf.Close() }()
	d, err := NewDialer()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	r := newReturner(t, Config{})
	e := r.conn.newAttempt()
	e.quiet = 20 * ms
	d.dial(t.Context(), deaf.LocalAddr().String(), &r.conn.cfg, e)
	if _, err := e.result(); err == nil || err.Error() != "no answer" {
		t.Errorf("the error is %v", err)
	}
}

// A broken connection is followed by another one. A close by the server or the game is not, nor is
// any end of a client without reconnection.
func TestACloseByTheServerIsNoBreak(t *testing.T) {
	for code, comesBack := range map[netloop.Code]bool{
		netloop.CodeLost: true, netloop.CodeTimeout: true, netloop.CodeLeft: false, netloop.CodeClosing: false, netloop.CodeKicked: false,
		netloop.CodeProtocol: false, transport.CodeSlow: false, netloop.CodeFlood: false, netloop.CodeInternal: false,
		transport.CodeReplaced: false, netloop.CodeGame: false,
	} {
		for _, off := range []bool{false, true} {
			r := newReturner(t, Config{Reconnect: Reconnect{Off: off}})
			r.breaks(code)
			if back := r.Closed() == nil; back != (comesBack && !off) || back != (len(r.dials) == 1) {
				t.Errorf("%v, off %v: closed %v, %d dials", code, off, r.Closed(), len(r.dials))
			}
			if c := r.Closed(); c != nil && (c.Code != code || c.Text != "so it goes") {
				t.Errorf("%v became %v", code, c)
			}
		}
	}
}

// A refusal that may pass is followed by another attempt; any other ends the client with its code.
// So it is with a connection that the server ends before the game has taken the client.
func TestRefusalsThatPass(t *testing.T) {
	for code, passes := range map[netloop.Code]bool{
		transport.CodeUnspecified: true, netloop.CodeFull: true, netloop.CodeBusy: true, netloop.CodeClosing: true, netloop.CodeTimeout: true,
		netloop.CodeFlood: true, netloop.CodeInternal: true, netloop.CodeLost: true,
		netloop.CodeBadVersion: false, netloop.CodeSchemaMismatch: false, netloop.CodeRoomUnknown: false, netloop.CodeRefused: false,
		netloop.CodeUnauthenticated: false, netloop.CodeKicked: false, transport.CodeReplaced: false, netloop.CodeProtocol: false, netloop.CodeGame: false,
	} {
		for name, end := range map[string]func(r *returner){
			"refused":  func(r *returner) { r.fail(&transport.Refusal{Code: code, Text: "no"}) },
			"closed":   func(r *returner) { r.fail(&transport.Closed{Code: code, Text: "no"}) },
			"let down": func(r *returner) { r.answer(r.back("second")); r.breaks(code) },
		} {
			r := newReturner(t, Config{})
			r.breaks(netloop.CodeLost)
			end(r)
			r.frame(0)
			if len(r.dials) != 1 {
				t.Errorf("%s: %v: dialled again at once", name, code)
			}
			if r.frame(150 * ms); passes != (len(r.dials) == 2) || passes != (r.Closed() == nil) {
				t.Errorf("%s: %v: %d dials, closed %v", name, code, len(r.dials), r.Closed())
			}
			if c := r.Closed(); c != nil && (c.Code != code || c.Text == "") {
				t.Errorf("%s: %v became %v", name, code, c)
			}
		}
	}
	// QUIC returns net.ErrClosed for an attempt without an answer, too.
	for err, final := range map[error]bool{driver.ErrDialerClosed: true, net.ErrClosed: false} {
		r := newReturner(t, Config{})
		r.breaks(netloop.CodeLost)
		r.fail(fmt.Errorf("dial: %w", err))
		if r.frame(0); final != (r.Closed() != nil && r.Closed().Code == netloop.CodeLeft) {
			t.Errorf("after %v: closed %v", err, r.Closed())
		}
	}
}

// A resumed client notices only the delay: its messages are sent once the server has told how many
// it has received, calls wait for their answers, objects are kept.
func TestAClientContinuesItsState(t *testing.T) {
	r := newReturner(t, Config{})
	s := r.states(3)
	var seen []string
	Watch(r.Client, rigPlaces, Watcher[rigPlace]{
		Spawn:   func(_ *netloop.Tick, o *netloop.Object[rigPlace]) { seen = append(seen, "spawn") },
		Despawn: func(_ *netloop.Tick, o *netloop.Object[rigPlace], _ rigPlace) { seen = append(seen, "despawn") },
	})
	r.arrives(s.at(1, 0)...)
	r.arrives(r.reliable(word(1, 0), 1), r.reliable(word(2, 0), 2))
	var answers []string
	Call(r.Client, rigAsk, rigWord{}, func(_ *netloop.Tick, w rigWord, err error) { answers = append(answers, fmt.Sprint(w.N, err)) })
	r.served() // The call is sent, but not acknowledged.
	r.Verify(func(err error) { answers = append(answers, fmt.Sprint("verified ", err)) })
	playing := r.State().Phase
	r.breaks(netloop.CodeTimeout)
	hello := r.dials[0].hello
	if res := hello.GetResume(); string(res.GetToken()) != "first" || res.GetReceived() != 2 || !res.GetKept() || res.GetAttempt() != 2 {
		t.Errorf("it says %v", res)
	}
	for range 3 {
		if err := Send(r.Client, rigWords, rigWord{5}); err != nil {
			t.Error(err)
		}
	}
	if err := Send(r.Client, rigLoose, rigWord{}); err != nil || r.Stats().Dropped != 1 {
		t.Errorf("of an unreliable message: %v, %d dropped", err, r.Stats().Dropped)
	}
	old := r.conn.session
	r.answer(r.back("second"))
	if r.conn.session == old || r.State().Phase != Reconnecting || len(r.dials) != 1 {
		t.Errorf("before the game's word it is %v", r.State().Phase)
	}
	_ = Send(r.Client, rigWords, rigWord{6})
	_ = Send(r.Client, rigLoose, rigWord{})
	if n := countMessages(r.served()); n != 0 || r.Stats().Dropped != 2 {
		t.Errorf("%d messages were sent before, %d dropped", n, r.Stats().Dropped)
	}
	old.Inbox().Push(transport.Arrival{Kind: transport.Gone, Session: old, Closed: &transport.Closed{Code: netloop.CodeKicked}})
	r.arrives(transport.Arrival{Kind: transport.Accepted, Value: 1}) // It has had the call.
	if n := countMessages(r.served()); n != 4 {
		t.Errorf("%d of 4 messages were sent", n)
	}
	m := bridge.Netloop.Method(rigAsk).Queue
	r.arrives(r.reliable(transport.Arrival{
		Kind: transport.MessageArrived, Message: transport.Message{Method: m.ID, Reply: true, Call: 1}, Decoded: schema.Erase(rigWord{7}),
	}, 1))
	s.peer.Resume(true)
	r.arrives(s.at(2, 0)...)
	if !slices.Equal(answers, []string{"7 <nil>"}) || !slices.Equal(seen, []string{"spawn", "spawn", "spawn"}) || r.conn.received != 3 {
		t.Errorf("heard %q and %q, %d received", answers, seen, r.conn.received)
	}
	if st := r.Stats(); st.Drops != 1 || st.Resumes != 1 || r.State().Phase != playing || r.ID() != 1 || st.Malformed != 0 || st.Applied != 2 {
		t.Errorf("afterwards client %d is %v: %+v", r.ID(), r.State().Phase, st)
	}
	if want := []string{"playing 0", "reconnecting 1", playing.String() + " 0"}; !slices.Equal(r.phases, want) {
		t.Errorf("it told of %q, want %q", r.phases, want)
	}
	r.breaks(netloop.CodeLost)
	if res := r.dials[1].hello.GetResume(); string(res.GetToken()) != "second" || res.GetReceived() != 3 {
		t.Errorf("the second time it says %v", res)
	}
}

// The new seat of a client that has lost its own may break before the game has admitted the client.
// The client resumes the new seat then, and counts no resume: its earlier messages are lost.
func TestAResumedNewSeatIsNoResume(t *testing.T) {
	r := newReturner(t, Config{})
	r.breaks(netloop.CodeLost)
	w := r.welcome("second")
	w.ClientId = 9
	r.answer(w)
	r.breaks(netloop.CodeLost)
	r.frame(time.Second)
	back := r.back("third")
	back.ClientId = 9
	r.answer(back)
	r.arrives(transport.Arrival{Kind: transport.Accepted})
	if st := r.Stats(); r.State().Phase == Reconnecting || r.ID() != 9 || st.Drops != 1 || st.Resumes != 0 {
		t.Errorf("client %d is %v, with %d drops and %d resumes", r.ID(), r.State().Phase, st.Drops, st.Resumes)
	}
}

// reliable turns an arrival into a reliable message with its number.
func (r *returner) reliable(a transport.Arrival, number uint64) transport.Arrival {
	a.Message.Reliable, a.Number = true, number
	return a
}

// countMessages counts those among arrivals.
func countMessages(all []transport.Arrival) (n int) {
	for _, a := range all {
		if a.Kind == transport.MessageArrived {
			n++
		}
	}
	return n
}

// A client joins anew if its seat is gone: each of its objects despawns with its last value, in the
// order of the ids, and calls in flight fail, before the new state arrives.
func TestAClientWithoutASeatJoinsAnew(t *testing.T) {
	for _, instance := range []string{"one", "two"} {
		r := newReturner(t, Config{})
		s := r.states(2)
		var told []string
		note := func(format string, a ...any) { told = append(told, fmt.Sprintf(format, a...)) }
		Watch(r.Client, rigPlaces, Watcher[rigPlace]{
			Spawn: func(_ *netloop.Tick, o *netloop.Object[rigPlace]) { note("spawn %d", o.State().X) },
			Despawn: func(_ *netloop.Tick, o *netloop.Object[rigPlace], last rigPlace) {
				note("despawn %d %v", last.X, o.Alive())
			},
		})
		r.clock.Advance(time.Hour)
		r.arrives(s.at(36000, 0)...)
		Call(r.Client, rigAsk, rigWord{}, func(_ *netloop.Tick, _ rigWord, err error) {
			var closed *netloop.Closed
			note("call failed %v", errors.As(err, &closed) && closed.Code == netloop.CodeLost)
			Call(r.Client, rigAsk, rigWord{}, func(*netloop.Tick, rigWord, error) { note("call failed again") })
		})
		r.breaks(netloop.CodeLost)
		_ = Send(r.Client, rigWords, rigWord{})
		told = nil
		w := r.welcome("second")
		w.ClientId, w.InstanceId, w.Minor = 9, []byte(instance), 2
		if instance == "two" {
			w.Epoch, w.ServerNs = &netloopv1.Epoch{Tick: 10, ServerNs: 7}, 7
		}
		r.answer(w)
		want := []string{"despawn 36000 false", "despawn 36000 false", "call failed true"}
		if !slices.Equal(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
		if st := r.Stats(); r.ID() != 9 || r.Minor() != 2 || st.Resumes != 0 || st.Dropped != 2 || st.Applied != 0 || st.Calls != 1 {
			t.Errorf("client %d: %+v", r.ID(), st)
		}
		tick := uint64(36001)
		if instance == "two" {
			tick = 10
		}
		if r.Stats().ServerTick != tick {
			t.Errorf("at instance %s it is tick %d, want %d", instance, r.Stats().ServerTick, tick)
		}
		if r.State().Phase != Reconnecting || countMessages(r.served()) != 1 {
			t.Errorf("before the game's word it is %v", r.State().Phase)
		}
		r.arrives(transport.Arrival{Kind: transport.Accepted, Value: 1})
		told = nil
		fresh := r.states(1)
		r.arrives(fresh.at(tick+1, 0)...)
		if want := []string{fmt.Sprintf("spawn %d", tick+1)}; !slices.Equal(told, want) || r.State().Phase != Playing {
			t.Errorf("told %q, want %q; it is %v", told, want, r.State().Phase)
		}
		if want := []string{"playing 0", "reconnecting 1", "loading 0", "playing 0"}; !slices.Equal(r.phases, want) {
			t.Errorf("it told of %q, want %q", r.phases, want)
		}
	}
}
