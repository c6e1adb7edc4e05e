package room_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/room"
	"github.com/netloop/netloop/internal/transport"
)

// wasTold fails unless the client of a session has received a code and a text.
func wasTold(t *testing.T, who string, g *testConn, code transport.Code, text string) {
	t.Helper()
	if why, ok := g.Cause(); !ok || why.Code != code || why.Text != text {
		t.Errorf("%s was told %v, %v", who, ok, why)
	}
}

// A client that is being admitted when a room ends is told the reason, at each stage of the
// admission: no tick will take it.
func TestTheEndOfARoomReachesJoiningClients(t *testing.T) {
	b := newBare(t, func(*netloop.Room) {})
	admit := func() (*transport.Admitted, error) {
		return b.server.Handler.Admit(context.Background(), hello(bareSchema), "here")
	}
	in := b.join()
	b.step()
	waits := b.join() // Its Joined is in the inbox.
	admitted, err := admit()
	if err != nil {
		t.Fatal(err)
	}
	b.room.Admission.End(transport.CodeGame, "over")
	var refusal *transport.Refusal
	if _, err := b.room.Admission.Admit(context.Background(), hello(bareSchema), "here"); !errors.As(err, &refusal) || refusal.Code != transport.CodeGame || refusal.Text != "over" {
		t.Errorf("who asks after the end of admission is told %v", err)
	}
	if err := b.room.Shutdown.Finish(transport.CodeGame, "over"); err != nil {
		t.Fatal(err)
	}
	late := newTestConn(admitted)
	for who, g := range map[string]*testConn{"who was in": in, "who waited": waits, "who was let in": late} {
		wasTold(t, who, g, transport.CodeGame, "over")
	}
}

// A room that was not told to refuse refuses joins once it has ended.
func TestAnEndedRoomRefusesJoins(t *testing.T) {
	b := newBare(t, func(*netloop.Room) {})
	if err := b.room.Shutdown.Finish(transport.CodeGame, "over"); err != nil {
		t.Fatal(err)
	}
	var refusal *transport.Refusal
	if _, err := b.room.Admission.Admit(context.Background(), hello(bareSchema), "here"); !errors.As(err, &refusal) || refusal.Text != "over" {
		t.Errorf("told %v", err)
	}
}

// A room keeps no reference to ended sessions.
func TestSessionsThatHaveGoneAreForgotten(t *testing.T) {
	b := newBare(t, func(*netloop.Room) {})
	for range 3 {
		g := b.join()
		b.step()
		g.End(transport.Closed{Code: transport.CodeLeft})
		b.step()
	}
	b.join()
	b.step()
	if n := b.room.Sessions(); n != 1 {
		t.Errorf("%d sessions are remembered, and one is left", n)
	}
}

// A room that hangs is given up: its clients are told without its goroutine, no further client is
// admitted, and the end is reported once, also if its goroutine continues later.
func TestARoomThatIsGivenUpTellsItsClients(t *testing.T) {
	hang := make(chan struct{})
	b := newBare(t, func(r *netloop.Room) {
		r.On(netloop.Update, "hang", func(*netloop.Tick) { <-hang })
	})
	in := b.join()
	ends := make(chan error, 2)
	b.room.Supervisor.Start(t.Context(), func(err error) { ends <- err })
	for b.room.Watchdog().Hangs() == 0 { // The clock of the machine continues.
		b.room.Watchdog().Check(time.Hour)
	}
	b.room.Supervisor.GiveUp(b.room.Watchdog().Err())
	wasTold(t, "the client", in, transport.CodeInternal, "the server hangs")
	if err := <-ends; err == nil {
		t.Error("the room has ended as if nothing had been")
	}
	if _, err := b.room.Admission.Admit(context.Background(), hello(bareSchema), "here"); err == nil {
		t.Error("somebody got in")
	}
	b.room.Supervisor.End(room.End{}) // Too late for any effect.
	close(hang)
	if len(ends) != 0 {
		t.Error("the end was told twice")
	}
}
