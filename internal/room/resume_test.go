package room_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/room"
	"github.com/netloop/netloop/internal/transport"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// returns is a room with clients that drop and resume, and a record of its game's calls.
type returns struct {
	*bare
	game    bareGame
	told    []string
	ran     []uint64 // messages that reached their handler
	owed    []netloop.Reply[blob]
	heardAt time.Duration
}

// newReturns opens a room with admission by player name as the token.
func newReturns(t *testing.T, cfg netloop.Config) *returns {
	t.Helper()
	w := &returns{}
	w.game = func(r *netloop.Room) {
		tell := func(what string) func(*netloop.Tick, *netloop.Client) {
			return func(*netloop.Tick, *netloop.Client) { w.told = append(w.told, what) }
		}
		r.OnAdmit(func(_ context.Context, j *netloop.Join) error { j.Subject = j.Token; return nil })
		bareWords.Handle(r, func(_ *netloop.Tick, _ *netloop.Client, m word) error {
			w.ran = append(w.ran, m.N)
			return nil
		})
		bareBig.HandleLater(r, func(_ *netloop.Tick, _ *netloop.Client, _ word, answer netloop.Reply[blob]) {
			w.owed = append(w.owed, answer)
		})
		r.OnJoin(func(tick *netloop.Tick, c *netloop.Client) error { tell("join")(tick, c); return nil })
		r.OnDrop(tell("drop"))
		r.OnResume(tell("resume"))
		r.OnRole(tell("role"))
		r.OnLeave(func(_ *netloop.Tick, _ *netloop.Client, why *netloop.Closed) {
			w.told = append(w.told, "leave: "+why.Code.String())
		})
	}
	w.bare = newBareAs(t, cfg, w.game)
	w.step()
	return w
}

// arrive admits a client that may resume later, or resumes with a secret, and lets it send data.
func (w *returns) arrive(player string, r *netloopv1.Resume) (*testConn, *netloopv1.Welcome) {
	w.t.Helper()
	g, welcome, err := w.ask(player, r)
	if err != nil {
		w.t.Fatal(err)
	}
	w.step()
	w.speak(g)
	return g, welcome
}

func (w *returns) ask(player string, r *netloopv1.Resume) (*testConn, *netloopv1.Welcome, error) {
	h := hello(bareSchema)
	h.Token, h.Resume = player, r
	adm, err := w.server.Handler.Admit(context.Background(), h, "here")
	if err != nil {
		return nil, nil, err
	}
	return newTestConn(adm), adm.Welcome, nil
}

// speak delivers some data of a client.
func (w *returns) speak(g *testConn) {
	w.t.Helper()
	w.heardAt++
	if err := g.ReceiveStream(w.heardAt, []byte{0}); err != nil { // An unknown frame.
		w.t.Fatal(err)
	}
	w.step()
}

// say sends reliable messages of a client, each with a number.
func (w *returns) say(g *testConn, numbers ...byte) {
	w.t.Helper()
	for _, n := range numbers {
		m := netloopv1.Message{Method: idOf(bareWords), Payload: []byte{n}}
		b, err := transport.AppendFrame(nil, &netloopv1.Frame{Kind: &netloopv1.Frame_Message{Message: &m}})
		if err == nil {
			err = g.ReceiveStream(w.heardAt, b)
		}
		if err != nil {
			w.t.Fatal(err)
		}
	}
}

// client returns the only client of the room; nil for none.
func (w *returns) client() *room.Client {
	if all := w.room.Clients(); len(all) > 0 {
		return all[0]
	}
	return nil
}

// send sends the client messages with these texts.
func (w *returns) send(texts ...string) {
	c := w.client()
	for _, text := range texts {
		c.Send(transport.Message{Method: idOf(bareWords), Reliable: true, Text: text})
	}
}

func (w *returns) wantTold(want ...string) {
	w.t.Helper()
	if !slices.Equal(w.told, want) {
		w.t.Errorf("the game was told %q, want %q", w.told, want)
	}
	w.told = nil
}

// newcomer returns the resume part of a first hello.
func newcomer() *netloopv1.Resume { return &netloopv1.Resume{} }

func with(w *netloopv1.Welcome, received uint64) *netloopv1.Resume {
	return &netloopv1.Resume{Token: w.GetResumeToken(), Received: received, Kept: true}
}

// texts returns the reliable messages sent to a client, and how many messages of the client the
// server has acknowledged.
func texts(t *testing.T, g *testConn) (sent []string, accepted, received uint64) {
	t.Helper()
	for _, a := range heard(t, g) {
		switch a.Kind {
		case transport.MessageArrived:
			sent = append(sent, a.Message.Text)
		case transport.Accepted:
			accepted = a.Value
		case transport.Received:
			received = a.Value
		}
	}
	return sent, accepted, received
}

var lostLink = transport.Closed{Code: transport.CodeLost}

// A client with a broken connection keeps its seat; over another connection it continues, as do
// the messages in both directions.
func TestAClientReturns(t *testing.T) {
	w := newReturns(t, netloop.Config{})
	g, welcome := w.arrive("", newcomer())
	id := welcome.GetClientId()
	if len(welcome.GetResumeToken()) != 32 || time.Duration(welcome.GetKeepNs()) != 20*time.Second || welcome.GetResumed() {
		t.Fatalf("the welcome says %v", welcome)
	}
	w.send("a", "b", "c")
	w.say(g, 1, 2, 3, 4, 5)
	w.step()
	if sent, _, _ := texts(t, g); !slices.Equal(sent, []string{"a", "b", "c"}) {
		t.Fatalf("sent %q", sent)
	}
	g.End(lostLink)
	w.step()
	w.wantTold("join", "drop")
	c := w.client()
	if c == nil || c.Connected() || w.room.Admission.Seats() != 1 {
		t.Fatalf("client %v, %d seats", c, w.room.Admission.Seats())
	}
	w.send("d")
	w.step()

	again, back := w.arrive("", with(welcome, 2))
	w.wantTold("resume")
	if !back.GetResumed() || back.GetClientId() != id || bytes.Equal(back.GetResumeToken(), welcome.GetResumeToken()) || w.client() != c || !c.Connected() {
		t.Errorf("it is back as %v", back)
	}
	if sent, accepted, _ := texts(t, again); !slices.Equal(sent, []string{"c", "d"}) || accepted != 5 {
		t.Errorf("sent again: %q, and %d are said to have arrived", sent, accepted)
	}
	w.say(again, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21)
	w.step()
	if _, _, received := texts(t, again); received != 21 {
		t.Errorf("%d are said to have arrived, want 21", received)
	}
}

// A connection that replaces one not yet found broken closes the older one, and later data of the
// older one is ignored.
func TestAClientReturnsBeforeItsLossIsNoticed(t *testing.T) {
	w := newReturns(t, netloop.Config{})
	g, welcome := w.arrive("", newcomer())
	_, back, err := w.ask("", with(welcome, 0))
	if err != nil {
		t.Fatal(err)
	}
	w.say(g, 1) // After the newcomer in the inbox.
	w.step()
	g.End(lostLink)
	w.step()
	w.wantTold("join", "resume")
	if why, ok := g.Cause(); !ok || why.Code != transport.CodeReplaced {
		t.Errorf("the older connection is told %v", why)
	}
	if c := w.client(); c == nil || !c.Connected() || back.GetClientId() != c.ID() {
		t.Error("the client is not connected")
	}
}

// A secret is valid until data has arrived over the next connection, and then only the next one's
// is valid: a welcome may be lost, and a secret may be stolen.
func TestASecretHoldsUntilTheNextIsKnown(t *testing.T) {
	w := newReturns(t, netloop.Config{})
	_, first := w.arrive("", newcomer())
	_, second, err := w.ask("", with(first, 0)) // Its welcome is lost.
	if err != nil {
		t.Fatal(err)
	}
	w.step()
	_, third, err := w.ask("", with(first, 0))
	if err != nil || !third.GetResumed() {
		t.Fatal("with the first secret nobody comes back although the second one may be unknown")
	}
	w.step()
	if _, lost, _ := w.ask("", with(second, 0)); lost.GetResumed() {
		t.Error("a secret that was never used holds beside two others")
	}
	w.step()
	fourth, fourthWelcome := w.arrive("", with(third, 0))
	for name, old := range map[string]*netloopv1.Welcome{"first": first, "second": second, "third": third} {
		if _, again, _ := w.ask("", with(old, 0)); again.GetResumed() {
			t.Errorf("the %s secret still holds", name)
		}
	}
	if _, closing := fourth.Cause(); closing {
		t.Error("the client was thrown out")
	}
	// A stolen secret is useless later too.
	w.arrive("", with(fourthWelcome, 0))
	if _, again, err := w.ask("", with(third, 0)); err != nil || again.GetResumed() {
		t.Errorf("the secret of the connection before the last one still holds: %v", err)
	}
}

// A client that does not resume in time leaves, and its secret is void; a later connection with it
// is a newcomer.
func TestADroppedClientLeavesInTheEnd(t *testing.T) {
	w := newReturns(t, netloop.Config{Room: netloop.RoomSpec{KeepDropped: 2 * time.Second}})
	g, welcome := w.arrive("", newcomer())
	g.End(lostLink)
	for range 16 { // A room reports four times a second.
		w.step()
	}
	if !w.scraped("netloop_clients_dropped 1") {
		t.Error("a client that has been dropped is not counted")
	}
	w.tick += 103 // A tick at two seconds.
	w.step()
	if w.client() == nil {
		t.Fatal("it has left before its time")
	}
	late, _, err := w.ask("", with(welcome, 0)) // It is being admitted.
	if err != nil {
		t.Fatal(err)
	}
	way := w.room.Inbox().Swap(nil) // But has not entered yet.
	w.step()
	w.wantTold("join", "drop", "leave: connection lost")
	if w.client() != nil || w.room.Admission.Seats() != 1 {
		t.Error("it has not left, or its seat is not kept for the connection on its way")
	}
	if len(way) != 1 || !w.room.Inbox().Push(way[0]) {
		t.Fatalf("%d arrivals were on their way", len(way))
	}
	w.step()
	if w.room.Admission.Seats() != 0 {
		t.Error("its seat is kept for nobody")
	}
	if why, ok := late.Cause(); !ok || why.Code != transport.CodeLost {
		t.Errorf("who comes too late is told %v", why)
	}
	if _, again := w.arrive("", with(welcome, 0)); again.GetResumed() || again.GetClientId() == welcome.GetClientId() {
		t.Error("a secret holds for a place that is gone")
	}
}

// A client that closes its connection, is kicked, never sent data, or cannot resume, leaves at
// once.
func TestSeatsThatAreNotKept(t *testing.T) {
	for name, c := range map[string]struct {
		cfg    netloop.RoomSpec
		resume *netloopv1.Resume
		player string
		silent bool
		end    transport.Closed
		kept   bool
	}{
		"broken":           {resume: newcomer(), end: lostLink, kept: true},
		"timed out":        {resume: newcomer(), end: transport.Closed{Code: transport.CodeTimeout}, kept: true},
		"another player":   {player: "ann", end: lostLink, kept: true},
		"goodbye":          {resume: newcomer(), end: transport.Closed{Code: transport.CodeLeft, Remote: true}},
		"protocol":         {resume: newcomer(), end: transport.Closed{Code: transport.CodeProtocol}},
		"silent":           {resume: newcomer(), silent: true, end: lostLink},
		"no way back":      {end: lostLink},
		"several":          {player: "ann", cfg: netloop.RoomSpec{Duplicate: netloop.DuplicateAllow}, end: lostLink},
		"nobody kept":      {resume: newcomer(), cfg: netloop.RoomSpec{KeepDropped: -1}, end: lostLink},
		"refuses a second": {player: "ann", resume: newcomer(), cfg: netloop.RoomSpec{Duplicate: netloop.DuplicateRefuse}, end: lostLink, kept: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newReturns(t, netloop.Config{Room: c.cfg})
			g, welcome, err := w.ask(c.player, c.resume)
			if err != nil {
				t.Fatal(err)
			}
			if has := len(welcome.GetResumeToken()) > 0; has != (c.resume != nil && c.cfg.KeepDropped >= 0) || has != (welcome.GetKeepNs() > 0) {
				t.Errorf("the welcome says %v", welcome)
			}
			w.step()
			if !c.silent {
				w.speak(g)
			}
			g.End(c.end)
			w.step()
			want := []string{"join", "leave: " + c.end.Code.String()}
			if c.kept {
				want[1] = "drop"
			}
			w.wantTold(want...)
		})
	}
}

// Silence is treated like a broken connection, and a client that never sent data leaves for good.
func TestSilenceIsALostConnection(t *testing.T) {
	w := newReturns(t, netloop.Config{LostAfter: 2 * time.Second})
	talker, _ := w.arrive("", newcomer())
	mute, _, err := w.ask("", newcomer())
	if err != nil {
		t.Fatal(err)
	}
	w.step()
	w.told = nil
	w.tick += 117
	w.step()
	w.wantTold()
	if silent := w.client().Silent(); silent < 1900*time.Millisecond || silent >= 2*time.Second {
		t.Errorf("silent for %v", silent)
	}
	w.tick += 2
	w.step()
	w.wantTold("drop", "leave: timed out")
	for _, g := range []*testConn{talker, mute} {
		if why, ok := g.Cause(); !ok || why.Code != transport.CodeTimeout {
			t.Errorf("a silent client is told %v", why)
		}
	}
	talker.End(lostLink) // The end of its connection changes no state.
	w.step()
	w.wantTold()
}

// A client that has sent data once is kept, also if its next connection breaks before it sends
// data.
func TestAClientMayBreakAgainAtOnce(t *testing.T) {
	w := newReturns(t, netloop.Config{})
	g, welcome := w.arrive("", newcomer())
	g.End(lostLink)
	w.step()
	again, _, err := w.ask("", with(welcome, 0))
	if err != nil {
		t.Fatal(err)
	}
	w.step()
	again.End(lostLink)
	w.step()
	w.wantTold("join", "drop", "resume", "drop")
}

// So is a client that sends data and is lost in the tick of its join.
func TestAClientMayBreakInTheTickOfItsJoin(t *testing.T) {
	w := newReturns(t, netloop.Config{})
	g, _, err := w.ask("", newcomer())
	if err == nil {
		err = g.ReceiveStream(1, []byte{0})
	}
	if err != nil {
		t.Fatal(err)
	}
	g.End(lostLink)
	w.step()
	w.wantTold("join", "drop")
}

// Another program of the same player takes over the player's client, also in a full room, without
// the pending data of the first; the older connection is told.
func TestAPlayerTakesItsPlaceOver(t *testing.T) {
	w := newReturns(t, netloop.Config{Room: netloop.RoomSpec{MaxClients: 1}})
	g, welcome := w.arrive("ann", newcomer())
	w.say(g, 1, 2)
	w.send("a")
	w.step()
	if _, _, err := w.ask("bob", newcomer()); err == nil {
		t.Fatal("the room has one more seat than it has")
	}
	again, back := w.arrive("ann", newcomer())
	w.wantTold("join", "resume")
	if back.GetResumed() || back.GetClientId() != welcome.GetClientId() || w.room.Admission.Seats() != 1 {
		t.Errorf("it is told %v, %d seats", back, w.room.Admission.Seats())
	}
	if why, ok := g.Cause(); !ok || why.Code != transport.CodeReplaced {
		t.Errorf("the older connection is told %v", why)
	}
	if sent, accepted, _ := texts(t, again); len(sent) != 0 || accepted != 0 {
		t.Errorf("sent %q, %d said to have arrived", sent, accepted)
	}
	if _, stolen, _ := w.ask("bob", with(welcome, 0)); stolen.GetResumed() {
		t.Error("the older program's secret still holds")
	}
	again.End(lostLink)
	w.step()
	w.arrive("ann", nil)
	w.wantTold("drop", "resume")
}

// Waiting messages of the older program never run. Its false acknowledgements and its hello have
// no effect on the new program either.
func TestATakeOverDropsMessagesOfTheOlderProgram(t *testing.T) {
	w := newReturns(t, netloop.Config{})
	g, _ := w.arrive("ann", newcomer())
	w.say(g, 1)
	w.push(g, transport.Arrival{Kind: transport.RecordsApplied, Value: 1})
	w.step()
	older := w.client().Join()
	if w.client().Unsent() != 1 {
		t.Fatalf("%d of its receipts are of what was never sent, want 1", w.client().Unsent())
	}
	w.say(g, 2)
	again, _, err := w.ask("ann", newcomer()) // Both wait for the same tick.
	if err != nil {
		t.Fatal(err)
	}
	w.step()
	w.say(again, 3)
	w.step()
	if !slices.Equal(w.ran, []uint64{1, 3}) {
		t.Errorf("messages %d ran, want 1 and 3", w.ran)
	}
	if c := w.client(); c.Unsent() != 0 || c.Join() == older {
		t.Errorf("%d receipts count against the newcomer, and its join is the older one's: %v", c.Unsent(), c.Join() == older)
	}
}

// A pending answer is sent to the program that has called, over another connection too, and never
// to another program: its calls have the same numbers and are different calls.
func TestAnswersGoToTheProgramThatAsked(t *testing.T) {
	for name, answered := range map[string]bool{"it came back": true, "another took over": false} {
		w := newReturns(t, netloop.Config{})
		g, welcome := w.arrive("ann", newcomer())
		w.push(g, transport.Arrival{Kind: transport.MessageArrived, Message: transport.Message{Method: idOf(bareBig), Call: 1}, Decoded: &word{}})
		w.step()
		how := newcomer()
		if answered {
			how = with(welcome, 0)
		}
		again, _ := w.arrive("ann", how)
		if len(w.owed) != 1 {
			t.Fatalf("%d answers are owed", len(w.owed))
		}
		if err := w.inspect(func(tick *netloop.Tick) { w.owed[0].Send(tick, blob{}, nil) }); err != nil {
			t.Fatal(err)
		}
		w.step()
		replies := 0
		for _, a := range heard(t, again) {
			if a.Kind == transport.MessageArrived && a.Message.Reply {
				replies++
			}
		}
		if (replies == 1) != answered {
			t.Errorf("%s: %d answers", name, replies)
		}
	}
}

// A player that closes its connection and joins again before the room has processed either is
// admitted: as a new client, under the id that it was told.
func TestAPlayerLeavesAndComesAgainAtOnce(t *testing.T) {
	w := newReturns(t, netloop.Config{Room: netloop.RoomSpec{MaxClients: 1}})
	g, welcome := w.arrive("ann", newcomer())
	g.End(transport.Closed{Code: transport.CodeLeft, Remote: true})
	again, back := w.arrive("ann", newcomer())
	w.wantTold("join", "leave: left", "join")
	if _, closing := again.Cause(); closing || w.client().ID() != back.GetClientId() || welcome.GetClientId() != back.GetClientId() || w.room.Admission.Seats() != 1 {
		t.Errorf("closing %v, %d seats", closing, w.room.Admission.Seats())
	}
}

// A room may refuse a player's second connection, or admit it as a separate client.
func TestASecondConnectionMayBeRefusedOrAllowed(t *testing.T) {
	w := newReturns(t, netloop.Config{Room: netloop.RoomSpec{Duplicate: netloop.DuplicateRefuse}})
	w.arrive("ann", nil)
	_, _, err := w.ask("ann", nil)
	var refused *transport.Refusal
	if !errors.As(err, &refused) || refused.Code != transport.CodeRefused {
		t.Errorf("a second connection gets %v", err)
	}
	w.arrive("bob", nil)

	w = newReturns(t, netloop.Config{Room: netloop.RoomSpec{Duplicate: netloop.DuplicateAllow}})
	first, _ := w.arrive("ann", nil)
	w.arrive("ann", nil)
	first.End(transport.Closed{Code: transport.CodeLeft})
	w.step()
	w.wantTold("join", "join", "leave: left")
}

// A dropped client that is kicked, or has too many waiting messages, leaves.
func TestADroppedClientMayBeThrownOut(t *testing.T) {
	for code, do := range map[transport.Code]func(*returns){
		transport.CodeKicked: func(w *returns) { w.client().Kick(transport.CodeKicked, "") },
		transport.CodeSlow: func(w *returns) {
			for range 60 {
				w.client().Send(transport.Message{Method: idOf(bareBig), Reliable: true, Payload: make([]byte, 15<<10)})
			}
		},
	} {
		w := newReturns(t, netloop.Config{})
		g, welcome := w.arrive("", newcomer())
		g.End(lostLink)
		w.step()
		do(w)
		w.step()
		w.wantTold("join", "drop", "leave: "+code.String())
		if _, back, _ := w.ask("", with(welcome, 0)); back.GetResumed() {
			t.Error("it is back")
		}
	}
}

// A kicked client leaves with the reason of the kick, even if its connection ended otherwise
// meanwhile.
func TestAKickedClientLeavesForThatReason(t *testing.T) {
	w := newReturns(t, netloop.Config{})
	g, _ := w.arrive("", newcomer())
	w.client().Kick(transport.CodeKicked, "")
	g.End(lostLink)
	w.step()
	w.wantTold("join", "leave: "+transport.CodeKicked.String())
}

// A client that acknowledges messages that were never sent is kicked, when it resumes or later.
func TestImpossibleReceiptsAreAViolation(t *testing.T) {
	w := newReturns(t, netloop.Config{})
	g, welcome := w.arrive("", newcomer())
	again, _, err := w.ask("", with(welcome, 1))
	if err != nil {
		t.Fatal(err)
	}
	w.step()
	w.step()
	if why, ok := again.Cause(); !ok || why.Code != transport.CodeProtocol {
		t.Errorf("who has had a message that was never sent is told %v", why)
	}
	w.wantTold("join")
	_ = g

	w = newReturns(t, netloop.Config{})
	g, _ = w.arrive("", newcomer())
	w.push(g, transport.Arrival{Kind: transport.Received, Value: 1})
	w.step()
	if why, ok := g.Cause(); !ok || why.Code != transport.CodeProtocol {
		t.Errorf("who has had a message that was never sent is told %v", why)
	}
}

// Once the room ends no client can resume: dropped clients leave before the game is told.
func TestNoClientResumesInAnEndingRoom(t *testing.T) {
	w := newReturns(t, netloop.Config{})
	dropped, _ := w.arrive("", newcomer())
	stays, _ := w.arrive("", newcomer())
	dropped.End(lostLink)
	w.step()
	if err := w.room.Shutdown.Drain(time.Second); err != nil {
		t.Fatal(err)
	}
	w.wantTold("join", "join", "drop", "leave: connection lost")
	stays.End(lostLink)
	w.step()
	w.wantTold("leave: connection lost")
}
