package room_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/bridge"
	"github.com/netloop/netloop/internal/room"
	"github.com/netloop/netloop/internal/transport"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// otherServer answers a room in place of the servers of its cluster.
type otherServer struct {
	refuses error
	local   bool
	number  uint64
	asked   []room.Binding
	arrived []room.Origin
	steps   []room.TravelStep
}

func (o *otherServer) Bind(_ context.Context, b room.Binding) (room.Bound, error) {
	o.asked = append(o.asked, b)
	o.number++
	to := transport.Destination{{Carrier: "quic", Addr: "other:1"}}
	return room.Bound{Local: o.local, Ticket: "bound@oak", Number: o.number, To: to}, o.refuses
}

func (o *otherServer) Arrived(_ *room.Room, _ uint64, from room.Origin) {
	o.arrived = append(o.arrived, from)
}

func (o *otherServer) Step(_ uint64, step room.TravelStep) { o.steps = append(o.steps, step) }

// wantSteps compares the steps of moves that the room has told.
func (w *journey) wantSteps(want ...room.TravelStep) {
	w.t.Helper()
	if !slices.Equal(w.other.steps, want) {
		w.t.Errorf("the steps of the move are %v, want %v", w.other.steps, want)
	}
}

// journey is a room whose clients move to another server.
type journey struct {
	*returns
	other *otherServer
}

func newJourney(t *testing.T, cfg netloop.Config) *journey {
	w := &journey{returns: newReturns(t, cfg), other: &otherServer{}}
	w.room.SetTravel(w.other)
	return w
}

// come admits a client that can move to another server.
func (w *journey) come(player string, resume *netloopv1.Resume) (*testConn, *netloopv1.Welcome) {
	w.t.Helper()
	h := hello(bareSchema)
	h.Token, h.Resume, h.Moves, h.Travels = player, resume, true, true
	adm, err := w.server.Handler.Admit(context.Background(), h, "here")
	if err != nil {
		w.t.Fatal(err)
	}
	g := newTestConn(adm)
	w.step()
	w.speak(g)
	return g, adm.Welcome
}

// move moves the only client by a ticket, at its own request.
func (w *journey) move(g *testConn) {
	w.t.Helper()
	w.push(g, transport.Arrival{Kind: transport.MoveAsked, Message: transport.Message{Text: "ticket@oak"}})
	w.step()
	w.room.WaitForWork()
	w.step()
}

// sent moves the only client, and returns the frames moved that it is sent.
func (w *journey) sent(g *testConn) (told []transport.Arrival) {
	w.t.Helper()
	w.move(g)
	for _, a := range heard(w.t, g) {
		if a.Kind == transport.MoveTold {
			told = append(told, a)
		}
	}
	return told
}

// leaves closes a client's connection, as a client does that goes to the other server.
func (w *journey) leaves(g *testConn) {
	w.t.Helper()
	g.End(transport.Closed{Code: transport.CodeMoved, Remote: true})
	w.step()
}

// arrives reports the arrival of a client, and returns the room's answer. It runs in a bubble.
func (w *journey) arrives(client, number uint64) error {
	w.t.Helper()
	answer := make(chan error, 1)
	go func() { answer <- w.room.Commands.Arrived(w.t.Context(), client, number) }()
	synctest.Wait()
	w.step()
	return <-answer
}

// A client that moves to another server plays on until it leaves; its seat is kept until its
// arrival, and then its secret is void.
func TestAClientMovesToAnotherServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newJourney(t, netloop.Config{})
		g, welcome := w.come("ann", newcomer())
		told := w.sent(g)
		if len(told) != 1 || told[0].Message.Text != "bound@oak" || told[0].Decoded.(transport.Destination)[0].Addr != "other:1" {
			t.Fatalf("the client was told %+v", told)
		}
		id := w.client().ID()
		if b := w.other.asked; len(b) != 1 || b[0].Ticket != "ticket@oak" || b[0].Client != id || b[0].Join.Subject != "ann" {
			t.Errorf("the other server was asked %+v", b)
		}
		w.say(g, 7)
		w.step()
		w.wantTold("join")
		if len(w.ran) != 1 || !w.client().Connected() {
			t.Errorf("the client does not play on: it ran %v", w.ran)
		}
		w.leaves(g)
		w.wantTold("drop")
		if err := w.arrives(id, 99); !errors.Is(err, room.ErrNotHere) {
			t.Errorf("another number: %v", err)
		}
		if err := w.arrives(id, 1); err != nil {
			t.Errorf("the arrival: %v", err)
		}
		w.wantTold("leave: moved to another room")
		if err := w.arrives(id, 1); !errors.Is(err, room.ErrNotHere) {
			t.Errorf("a repeated report: %v", err)
		}
		if _, back := w.come("", with(welcome, 0)); back.GetResumed() || w.room.Admission.Seats() != 1 {
			t.Errorf("the secret is valid after the arrival: %v", back)
		}
		w.wantSteps(room.Left)
	})
}

// A client that the other server does not accept is back by its secret, and plays. If it arrives
// there nevertheless, it leaves.
func TestAClientIsBackFromTheOtherServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newJourney(t, netloop.Config{})
		g, welcome := w.come("ann", newcomer())
		w.sent(g)
		w.leaves(g)
		again, back := w.come("ann", with(welcome, 0))
		w.wantTold("join", "drop", "resume")
		if !back.GetResumed() || !w.client().Connected() {
			t.Fatalf("not resumed: %v", back)
		}
		w.say(again, 1)
		w.step()
		if len(w.ran) != 1 {
			t.Error("it does not play")
		}
		for _, a := range heard(t, again) {
			if a.Kind == transport.MoveTold {
				t.Error("it is sent away again")
			}
		}
		if err := w.arrives(w.client().ID(), 1); err != nil {
			t.Error(err)
		}
		w.wantTold("leave: moved to another room")
		if why, closed := again.Cause(); !closed || why.Code != transport.CodeMoved {
			t.Errorf("its connection is closed with %v", why)
		}
		w.wantSteps(room.Left, room.Returned)
	})
}

// A client without an arrival leaves after its time, which is 10 s at least, also in a room that
// keeps no seats.
func TestASeatOfATravellingClientExpires(t *testing.T) {
	for keep, want := range map[time.Duration]time.Duration{-1: room.TravelKeep, time.Second: room.TravelKeep, time.Minute: time.Minute} {
		w := newJourney(t, netloop.Config{})
		w.room.SetKeepDropped(keep)
		g, welcome := w.come("ann", newcomer())
		if len(welcome.GetResumeToken()) == 0 || time.Duration(welcome.GetKeepNs()) != max(keep, 0) {
			t.Errorf("kept for %v: the welcome has a secret of %d bytes, for %v", keep, len(welcome.GetResumeToken()), time.Duration(welcome.GetKeepNs()))
		}
		w.sent(g)
		w.leaves(g)
		w.wantTold("join", "drop")
		ticks := int(want * time.Duration(w.room.Spec().Rate.Num) / time.Second)
		for range ticks - 1 {
			w.step()
		}
		w.wantTold()
		w.step()
		w.step()
		w.wantTold("leave: connection lost")
		w.wantSteps(room.Left, room.Expired)
	}
}

// A room that keeps no seats drops none for another reason than a move.
func TestARoomWithoutSeatsForDroppedClients(t *testing.T) {
	w := newJourney(t, netloop.Config{})
	w.room.SetKeepDropped(-1)
	g, _ := w.come("ann", newcomer())
	g.End(lostLink)
	w.step()
	w.wantTold("join", "leave: connection lost")
	w.wantSteps()
}

// If the ticket cannot be bound, the client stays and plays.
func TestAClientStaysWithoutABinding(t *testing.T) {
	for reason, err := range map[string]error{
		"ticket": transport.Refuse(transport.CodeTicket, "unknown"), "busy": transport.Refuse(transport.CodeBusy, "busy"),
		"room_gone": transport.Refuse(transport.CodeRoomUnknown, "gone"), "refused": transport.Refuse(transport.CodeFull, "full"), "failed": io.EOF,
	} {
		w := newJourney(t, netloop.Config{})
		w.other.refuses = err
		g, _ := w.come("ann", newcomer())
		if told := w.sent(g); len(told) != 0 {
			t.Errorf("%v: the client was told %+v", err, told)
		}
		w.say(g, 7)
		w.step()
		w.wantTold("join")
		if len(w.ran) != 1 || !w.client().Connected() {
			t.Errorf("%v: the client does not play on", err)
		}
		if line := `netloop_queue_drops_total{queue="move",reason="` + reason + `"} 1`; !w.scraped(line) {
			t.Errorf("%v: not counted as %s", err, reason)
		}
	}
}

// A ticket for a room of the same server moves the client as without a cluster.
func TestAMoveWithinTheServer(t *testing.T) {
	w := newJourney(t, netloop.Config{})
	w.other.local = true
	g, _ := w.come("ann", newcomer())
	w.move(g)
	w.wantTold("join", "leave: moved to another room")
	// The connection of the test cannot carry another session.
	if why, closed := g.Cause(); !closed || why != (transport.Closed{Code: transport.CodeMoved, Text: "ticket@oak"}) {
		t.Errorf("it is closed with %v", why)
	}
}

// A client that cannot move to another server is closed with the ticket as the text.
func TestAClientThatCannotMoveElsewhere(t *testing.T) {
	w := newJourney(t, netloop.Config{})
	g, _ := w.arrive("ann", newcomer())
	w.move(g)
	w.wantTold("join", "leave: moved to another room")
	if why, closed := g.Cause(); !closed || why != (transport.Closed{Code: transport.CodeMoved, Text: "bound@oak"}) {
		t.Errorf("it is closed with %v", why)
	}
}

// A program that takes over the seat of a travelling client has it: the arrival of the other
// program is refused.
func TestASeatIsTakenOverDuringAMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newJourney(t, netloop.Config{})
		g, _ := w.come("ann", newcomer())
		w.sent(g)
		w.leaves(g)
		second, _ := w.come("ann", newcomer())
		w.wantTold("join", "drop", "resume")
		id := w.client().ID()
		if err := w.arrives(id, 1); !errors.Is(err, room.ErrTakenOver) {
			t.Errorf("the arrival of the first program: %v", err)
		}
		w.wantTold()
		for range int(w.room.Spec().Rate.Num) { // It may request one move a second.
			w.step()
		}
		if told := w.sent(second); len(told) != 1 {
			t.Fatalf("the second program was told %+v", told)
		}
		if err := w.arrives(id, 1); !errors.Is(err, room.ErrTakenOver) {
			t.Errorf("the first program after the second has moved too: %v", err)
		}
		if err := w.arrives(id, 2); err != nil {
			t.Errorf("the second program: %v", err)
		}
		w.wantTold("leave: moved to another room")
	})
}

// A kick ends a travelling client's seat with the kick's reason.
func TestATravellingClientIsKicked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newJourney(t, netloop.Config{})
		g, _ := w.come("ann", newcomer())
		w.sent(g)
		w.leaves(g)
		c := w.client()
		c.Kick(transport.CodeKicked, "cheat")
		w.step()
		w.wantTold("join", "drop", "leave: kicked")
		if err := w.arrives(c.ID(), 1); !errors.Is(err, room.ErrNotHere) {
			t.Error(err)
		}
	})
}

// At the end of the room a travelling client leaves.
func TestARoomEndsDuringAMove(t *testing.T) {
	w := newJourney(t, netloop.Config{})
	g, _ := w.come("ann", newcomer())
	w.sent(g)
	w.leaves(g)
	if err := w.room.Shutdown.Drain(time.Second); err != nil {
		t.Fatal(err)
	}
	w.wantTold("join", "drop", "leave: moved to another room")
}

// A client that left while the room ends does not keep its seat.
func TestAClientLeavesForAnotherServerWhileTheRoomEnds(t *testing.T) {
	w := newJourney(t, netloop.Config{})
	g, _ := w.come("ann", newcomer())
	w.sent(g)
	if err := w.room.Shutdown.Drain(time.Second); err != nil {
		t.Fatal(err)
	}
	w.leaves(g)
	w.wantTold("join", "leave: moved to another room")
}

// A client may request one move a second.
func TestAClientsRequestsToMoveAreLimited(t *testing.T) {
	w := newJourney(t, netloop.Config{})
	w.room.Admission.AllowMoves()
	w.other.refuses = transport.Refuse(transport.CodeTicket, "unknown")
	g, _ := w.come("ann", newcomer())
	ask := func(want int) {
		t.Helper()
		w.push(g, transport.Arrival{Kind: transport.MoveAsked, Message: transport.Message{Text: "x@oak"}})
		w.step()
		w.room.WaitForWork()
		w.step()
		if n := len(w.other.asked); n != want {
			t.Errorf("%d requests reached the other server, want %d", n, want)
		}
	}
	ask(1)
	ask(1)
	for range int(w.room.Spec().Rate.Num) {
		w.step()
	}
	ask(2)
}

// A newer move replaces one that is being prepared.
func TestALaterMoveReplacesAnEarlierOne(t *testing.T) {
	w := newJourney(t, netloop.Config{})
	g, _ := w.come("ann", newcomer())
	w.client().Move("first@oak")
	w.step()
	w.client().Move("second@oak")
	w.room.WaitForWork()
	w.step()
	w.room.WaitForWork()
	w.step()
	told := 0
	for _, a := range heard(t, g) {
		if a.Kind == transport.MoveTold {
			told++
		}
	}
	if n := len(w.other.asked); n != 2 || w.other.asked[1].Ticket != "second@oak" || told != 1 {
		t.Errorf("%d bindings, %d moves", n, told)
	}
}

// A room that sleeps wakes for the result of a binding and for an arrival.
func TestASleepingRoomTakesPartInMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		other := &otherServer{}
		var left []netloop.Code
		spec := netloop.RoomSpec{Sleep: true, Rate: netloop.Hz(100), KeepDropped: time.Hour}
		b := newBareAs(t, netloop.Config{Room: spec}, func(r *netloop.Room) {
			r.OnLeave(func(_ *netloop.Tick, _ *netloop.Client, why *netloop.Closed) { left = append(left, why.Code) })
		})
		b.room.SetTravel(other)
		ends := b.started(t.Context())
		h := hello(bareSchema)
		h.Resume, h.Moves, h.Travels = newcomer(), true, true
		adm, err := b.server.Handler.Admit(t.Context(), h, "here")
		if err != nil {
			t.Fatal(err)
		}
		g := newTestConn(adm)
		time.Sleep(100 * time.Millisecond)
		if err := g.ReceiveStream(1, []byte{0}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
		b.push(g, transport.Arrival{Kind: transport.Gone, Closed: &transport.Closed{Code: transport.CodeLost}})
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if !b.room.Sleep.Asleep() || len(b.room.Clients()) != 1 {
			t.Fatalf("asleep %v, with %d clients", b.room.Sleep.Asleep(), len(b.room.Clients()))
		}
		if err := b.room.Commands.Arrived(t.Context(), adm.Session.ID, 5); !errors.Is(err, room.ErrNotHere) {
			t.Error(err)
		}
		b.end(ends)
	})
}

// A recording has the results of bindings and the arrivals, so a replay of the room leaves nobody
// behind.
func TestAMoveToAnotherServerIsReplayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var file bytes.Buffer
		w := newJourney(t, netloop.Config{Record: &file})
		g, _ := w.come("ann", newcomer())
		w.sent(g)
		w.leaves(g)
		if err := w.arrives(w.client().ID(), 1); err != nil {
			t.Fatal(err)
		}
		w.step()
		want := w.told
		w.told = nil
		p, err := netloop.NewReplay(netloop.Config{}, w.game, bytes.NewReader(file.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		bridge.Netloop.Replay(p).Room().SetTravel(nil)
		for err == nil {
			_, err = p.Step()
		}
		if !errors.Is(err, io.EOF) {
			t.Error(err)
		}
		w.wantTold(want...)
	})
}

// The client of a bound ticket is the player of the binding, without a token; its arrival is
// reported once, when the game has accepted it and data of it has arrived.
func TestAClientComesFromAnotherServer(t *testing.T) {
	var joined []*netloop.Join
	refuses := true
	b := newBare(t, func(r *netloop.Room) {
		r.OnJoin(func(_ *netloop.Tick, c *netloop.Client) error {
			joined = append(joined, c.Join())
			if refuses {
				return &netloop.Refusal{Code: netloop.CodeRefused, Text: "later"}
			}
			return nil
		})
	})
	other := &otherServer{}
	b.room.SetTravel(other)
	b.step()
	from := room.Origin{Server: "x", Room: "elm", Client: 3, Number: 9}
	for range 2 {
		texts, err := b.room.Admission.Reserve(room.Reservation{Seats: 1, TTL: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		bound, err := b.room.Admission.Bind(texts[0], &room.Identity{Subject: "ann", Claims: map[string]any{"level": 3.0}, From: from})
		if err != nil {
			t.Fatal(err)
		}
		h := hello(bareSchema)
		h.Ticket, h.Resume = bound, newcomer()
		adm, err := b.server.Handler.Admit(t.Context(), h, "here")
		if err != nil {
			t.Fatal(err)
		}
		g := newTestConn(adm)
		b.step()
		if len(other.arrived) != 0 {
			t.Error("an arrival without data is reported")
		}
		if err := g.ReceiveStream(1, []byte{0}); err != nil && !refuses {
			t.Fatal(err)
		}
		b.step()
		b.step()
		if refuses && len(other.arrived) != 0 {
			t.Error("the arrival of a refused client is reported")
		}
		refuses = false
		g.End(lostLink)
		b.step()
	}
	if len(other.arrived) != 1 || other.arrived[0] != from {
		t.Errorf("reported %+v", other.arrived)
	}
	if len(joined) != 2 || joined[1].Subject != "ann" || joined[1].Claims["level"] != 3.0 {
		t.Errorf("joined as %+v", joined)
	}
}
