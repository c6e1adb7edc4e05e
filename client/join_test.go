package client

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/clock"
	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/transport"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// A value out of range is an error with its name, and an unset value has its default.
func TestBoundsOfReconnecting(t *testing.T) {
	for want, cfg := range map[string]Config{
		"client: Config.LostAfter: 999ms: use 1s to 10s, or 0 for 5s":                    {LostAfter: 999 * ms},
		"client: Config.LostAfter: 10.001s: use 1s to 10s, or 0 for 5s":                  {LostAfter: 10001 * ms},
		"client: Config.Reconnect.GiveUp: -1ns: use 1s to 24h0m0s, or 0 for 1m0s":        {Reconnect: Reconnect{GiveUp: -1}},
		"client: Config.Reconnect.GiveUp: 24h0m0.001s: use 1s to 24h0m0s, or 0 for 1m0s": {Reconnect: Reconnect{GiveUp: 24*time.Hour + ms}},
		"": {LostAfter: time.Second, Reconnect: Reconnect{GiveUp: 24 * time.Hour}},
	} {
		cfg.Schema = rigSchema
		got := ""
		if _, err := newClient(cfg, clock.NewVirtual()); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if c, err := newClient(Config{Schema: rigSchema}, clock.NewVirtual()); err != nil || c.conn.cfg.LostAfter != 5*time.Second || c.conn.cfg.Reconnect.GiveUp != time.Minute {
		t.Errorf("%v, the defaults are %+v", err, c.conn.cfg)
	}
}

// The first hello requests a seat to be kept, unless reconnecting is off.
func TestTheFirstHelloAsksForAPlace(t *testing.T) {
	for _, off := range []bool{false, true} {
		r := newRigOf(t, Config{Schema: rigSchema, Reconnect: Reconnect{Off: off}})
		res := r.conn.newAttempt().hello.GetResume()
		if asks := res != nil; asks == off || len(res.GetToken()) > 0 || res.GetReceived() != 0 || res.GetKept() {
			t.Errorf("off %v: it says %v", off, res)
		}
	}
}

// Each dial asks for a token of its own. A client that shows a secret dials without one if there is
// none: its place may be there. If it is not, it tries again.
func TestEachDialHasItsToken(t *testing.T) {
	var tokens []string
	fails := errors.New("nobody signs now")
	r := newReturner(t, Config{Token: "fallback", Tokens: func(context.Context) (string, error) {
		if len(tokens) == 0 {
			return "", fails
		}
		token := tokens[0]
		tokens = tokens[1:]
		return token, nil
	}})
	first := &attempt{tokens: r.conn.cfg.Tokens, hello: &netloopv1.Hello{Resume: &netloopv1.Resume{}}}
	if err := first.fetchToken(t.Context()); !errors.Is(err, fails) {
		t.Errorf("a newcomer without a token: %v", err)
	}
	r.breaks(netloop.CodeLost)
	tokens = []string{"a"}
	if err := r.dials[0].fetchToken(t.Context()); err != nil || r.dials[0].hello.GetToken() != "a" {
		t.Errorf("%v, the token is %q", err, r.dials[0].hello.GetToken())
	}
	r.fail(errors.New("nobody is there"))
	r.frame(0)
	r.frame(time.Second)
	if err := r.dials[1].fetchToken(t.Context()); err != nil || r.dials[1].hello.GetToken() != "fallback" {
		t.Errorf("%v, without a token it says %q", err, r.dials[1].hello.GetToken())
	}
	r.fail(&transport.Refusal{Code: netloop.CodeUnauthenticated, Text: "who are you"})
	r.frame(0)
	if r.frame(time.Second); r.Closed() != nil || len(r.dials) != 3 {
		t.Fatalf("closed %v, %d dials", r.Closed(), len(r.dials))
	}
	tokens = []string{"b"}
	_ = r.dials[2].fetchToken(t.Context())
	r.fail(&transport.Refusal{Code: netloop.CodeUnauthenticated, Text: "who are you"})
	if r.frame(0); r.Closed() == nil || r.Closed().Code != netloop.CodeUnauthenticated {
		t.Errorf("with a token: closed %v", r.Closed())
	}
}

// A connection without packets while the client runs is broken, though QUIC may keep it open. Time
// in which the client hung does not count.
func TestSilenceBreaksAConnection(t *testing.T) {
	for _, off := range []bool{false, true} {
		r := newReturner(t, Config{LostAfter: 2 * time.Second, Reconnect: Reconnect{Off: off}})
		for range 19 {
			r.frame(100 * ms)
		}
		r.frame(time.Minute) // A hung frame counts as one of 100 ms.
		if off {
			if r.Closed() == nil || r.Closed().Code != netloop.CodeTimeout {
				t.Errorf("closed %v", r.Closed())
			}
		} else if r.State().Phase != Reconnecting || len(r.dials) != 1 {
			t.Errorf("it is %v, %d dials", r.State().Phase, len(r.dials))
		}
		if why, ok := r.conn.session.Cause(); !ok || why.Code != netloop.CodeTimeout {
			t.Errorf("off %v: the server is told %+v", off, why)
		}
	}
	r := newReturner(t, Config{LostAfter: 2 * time.Second})
	for range 5 {
		for range 19 {
			r.frame(100 * ms)
		}
		if silent := r.Stats().Silent; silent != 1900*ms {
			t.Errorf("silent for %v", silent)
		}
		r.link.ReceiveDatagram(r.clock.Now(), []byte{8, byte(r.clock.Now() / (100 * ms))})
	}
	if r.frame(0); r.State().Phase != Loading || r.Stats().Silent != 0 {
		t.Errorf("it has heard from the server, and is %v, silent for %v", r.State().Phase, r.Stats().Silent)
	}
	r.breaks(netloop.CodeLost) // A broken connection is not checked.
	for range 50 {
		r.frame(100 * ms)
	}
	if len(r.dials) != 1 || r.Stats().Drops != 1 || r.Stats().Silent != 5*time.Second {
		t.Errorf("%d dials, %+v", len(r.dials), r.Stats())
	}
	r.answer(r.back("second"))
	for range 21 { // Nor is the game's word: the next one may bring it.
		r.frame(100 * ms)
	}
	if r.frame(200 * ms); len(r.dials) != 2 || r.Stats().Drops != 1 {
		t.Errorf("%d dials, %d drops", len(r.dials), r.Stats().Drops)
	}
}

// Close ends the attempts to reconnect, in any state, and frees all their resources.
func TestCloseEndsTheAttempts(t *testing.T) {
	for name, when := range map[string]func(r *returner){
		"under way": func(*returner) {},
		"waiting":   func(r *returner) { r.fail(errors.New("nobody is there")); r.frame(0) },
		"over, and not looked at": func(r *returner) {
			e := r.dials[0]
			s, _ := transport.NewSession(e.config)
			e.finish(s, r.back("second"), nil)
		},
		"arrived": func(r *returner) {
			r.On(netloop.Initialization, "closes", func(*netloop.Tick) { _ = r.Close() })
			r.answer(r.back("second"))
		},
		"without the game's word": func(r *returner) { r.answer(r.back("second")) },
		"told of": func(r *returner) {
			r.OnState(func(State) { _ = r.Close() })
			r.fail(errors.New("no"))
			r.frame(0)
			r.frame(time.Second)
		},
	} {
		r := newReturner(t, Config{})
		r.breaks(netloop.CodeLost)
		var ctx context.Context
		r.conn.dial = func(c context.Context, e *attempt) { ctx = c; r.dials = append(r.dials, e) }
		when(r)
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		dials := len(r.dials)
		last := r.dials[dials-1]
		if ended, _ := last.result(); !ended { // It arrives after all.
			s, _ := transport.NewSession(last.config)
			last.finish(s, r.back("late"), nil)
		}
		if last.session != nil {
			if why, ok := last.session.Cause(); !ok || why.Code != netloop.CodeLeft {
				t.Errorf("%s: the server is told %+v", name, why)
			}
		}
		if ctx != nil && ctx.Err() == nil {
			t.Errorf("%s: the dial goes on", name)
		}
		for range 100 {
			r.frame(time.Second)
		}
		if len(r.dials) != dials || r.Closed() == nil || r.Closed().Code != netloop.CodeLeft || r.conn.rejoin != nil {
			t.Errorf("%s: %d dials, closed %v", name, len(r.dials), r.Closed())
		}
	}
}

// The client leaves a server with an impossible welcome.
func TestAReturnThatMakesNoSenseEndsTheClient(t *testing.T) {
	for name, play := range map[string]func(r *returner){
		"another client": func(r *returner) { w := r.back("second"); w.ClientId = 2; r.answer(w) },
		"no rates":       func(r *returner) { w := r.back("second"); w.TickRate = nil; r.answer(w) },
		"never sent, at a return": func(r *returner) {
			r.answer(r.back("second"))
			r.arrives(transport.Arrival{Kind: transport.Accepted, Value: 1})
		},
		"never sent": func(r *returner) {
			r.answer(r.back("second"))
			r.arrives(transport.Arrival{Kind: transport.Accepted}, transport.Arrival{Kind: transport.Received, Value: 1})
		},
	} {
		r := newReturner(t, Config{})
		r.breaks(netloop.CodeLost)
		play(r)
		s := r.dials[0].session
		if why, ok := s.Cause(); !ok || why.Code != transport.CodeProtocol {
			t.Errorf("%s: the server is told %+v", name, why)
		}
		r.link.End(transport.Closed{})
		if r.frame(0); r.Closed() == nil || r.Closed().Code != transport.CodeProtocol || len(r.dials) != 1 {
			t.Errorf("%s: closed %v", name, r.Closed())
		}
	}
	r := newReturner(t, Config{}) // A resume that was not requested: no state to resume.
	e := r.conn.newAttempt()
	e.hello.Resume.Token = nil
	if e.welcome = r.back("x"); e.resumed() {
		t.Error("a newcomer has resumed")
	}
}

// A server that keeps no seat gets no counts of messages, and sending to it during a break is an
// error, because the message would not arrive.
func TestAServerThatKeepsNothing(t *testing.T) {
	r := newReturner(t, Config{})
	r.breaks(netloop.CodeLost)
	w := r.welcome("")
	w.KeepNs = 0
	r.answer(w)
	r.arrives(transport.Arrival{Kind: transport.Accepted, Value: 7})
	for n := range 40 {
		r.arrives(r.reliable(word(1, 0), uint64(1+n)))
	}
	if kinds := r.sent(); slices.Contains(kinds, transport.Received) || r.conn.backlog != nil {
		t.Errorf("it is sent %v", kinds)
	}
	r.breaks(netloop.CodeLost)
	if res := r.dials[1].hello.GetResume(); res == nil || len(res.GetToken()) > 0 || res.GetKept() || res.GetReceived() != 0 {
		t.Errorf("it says %v", res)
	}
	if err := Send(r.Client, rigWords, rigWord{}); err == nil || errors.As(err, new(*netloop.Closed)) || r.Stats().Dropped != 1 || r.State().Left != 0 {
		t.Errorf("%v, %d dropped, %v left", err, r.Stats().Dropped, r.State().Left)
	}
}

// Counts of connections add up over all of them.
func TestCountsGoOnOverConnections(t *testing.T) {
	r := newReturner(t, Config{})
	s := r.states(600)
	s.at(1, 0)
	r.arrives(s.at(2, 0)...) // Two packets were lost.
	if lost := r.Stats().Lost; lost != 2 {
		t.Fatalf("%d lost", lost)
	}
	r.arrives(transport.Arrival{Kind: transport.OverloadChanged, Overload: transport.Overload{Level: 1, SendEvery: 2}})
	r.breaks(netloop.CodeLost)
	r.answer(r.back("second"))
	r.arrives(transport.Arrival{Kind: transport.Accepted})
	if r.Overload() != netloop.OverloadNone { // The server sends it again if it still holds.
		t.Errorf("the server is %v", r.Overload())
	}
	s.peer.Resume(true)
	r.arrives(s.at(3, 0)[:1]...)
	if st := r.Stats(); st.Lost != 2 || st.Malformed != 0 {
		t.Errorf("%+v", st)
	}
	s.at(4, 0)
	r.arrives(s.at(5, 0)...)
	if lost := r.Stats().Lost; lost != 5 {
		t.Errorf("%d lost", lost)
	}
}

// A resumed client keeps all of its time, unless its own clock stopped; in another room of the same
// server it keeps only the server's clock, and at another server none.
func TestTimeAfterABreak(t *testing.T) {
	for name, c := range map[string]struct {
		said  time.Duration // the server's time, 10 s by the client's clock after a welcome at 0
		at    continuity
		ready bool
	}{
		"the same":          {said: 109 * time.Second, at: sameRoom, ready: true},
		"a slow handshake":  {said: 108 * time.Second, at: sameRoom, ready: true},
		"another room":      {said: 109 * time.Second, at: newRoom, ready: true},
		"and it was asleep": {said: 200 * time.Second, at: newRoom},
		"it was asleep":     {said: 200 * time.Second, at: sameRoom},
		"it runs too fast":  {said: 100 * time.Second, at: sameRoom},
		"another server":    {said: 110 * time.Second},
	} {
		hz := &netloopv1.Rate{Num: 10, Den: 1}
		w := &netloopv1.Welcome{TickRate: hz, FixedRate: hz, Epoch: &netloopv1.Epoch{Tick: 1}, ServerNs: uint64(100 * time.Second)}
		var s serverTime
		if err := s.welcome(0, 0, w, newServer); err != nil {
			t.Fatal(err)
		}
		for range clock.SyncReady {
			s.sync.Sample(0, 100*time.Second, 100*time.Second, 0)
		}
		s.input(10*time.Second, time.Time{}, ms)
		was := s.tick
		s.steps.skipped, s.requests = 3, 40
		w.ServerNs = uint64(c.said)
		if err := s.welcome(10*time.Second, 2*time.Second, w, c.at); err != nil {
			t.Fatal(err)
		}
		want := 110 * time.Second
		if !c.ready {
			want = c.said
		}
		if s.sync.Ready() != c.ready || s.server(10*time.Second) != want || s.requests != 0 || s.steps.skipped != 3 || (s.tick == was) != (c.at == sameRoom) {
			t.Errorf("%s: ready %v, it is %v, %+v", name, s.sync.Ready(), s.server(10*time.Second), s)
		}
	}
}

// Another server has another time: delayed calls keep their delay, and scaled time is that of the
// new server.
func TestTimersOfAClientMoveToAnotherServer(t *testing.T) {
	r := newReturner(t, Config{})
	r.clock.Advance(time.Hour)
	r.frame(0)
	r.loop.SetScale(loop.Scale{Num: 1, Den: 2, From: time.Hour, To: time.Hour})
	r.frame(100 * ms)
	var heard []string
	r.inspect(func(tick *netloop.Tick) {
		tick.AfterFunc(2*time.Second, func(*netloop.Tick) { heard = append(heard, "game") })
		tick.AfterFuncScaled(3*time.Second, func(*netloop.Tick) { heard = append(heard, "scaled") })
	})
	r.breaks(netloop.CodeLost)
	w := r.welcome("second")
	w.InstanceId, w.Epoch, w.ServerNs = []byte("two"), &netloopv1.Epoch{Tick: 1, ServerNs: 5}, 5
	r.answer(w)
	r.arrives(transport.Arrival{Kind: transport.Accepted})
	r.frame(1900 * ms)
	if len(heard) != 0 {
		t.Errorf("heard %q too early", heard)
	}
	r.frame(200 * ms)
	if !slices.Equal(heard, []string{"game"}) {
		t.Errorf("after 2 s heard %q", heard)
	}
	r.frame(time.Second) // Scaled time runs as fast as game time again.
	if !slices.Equal(heard, []string{"game", "scaled"}) {
		t.Errorf("after 3 s heard %q", heard)
	}
}
