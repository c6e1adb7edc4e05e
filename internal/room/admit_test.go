package room_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/room"
	"github.com/netloop/netloop/internal/transport"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// During its admission a client holds no seat, however long it takes; the client that the game
// approves first gets the seat, and the others find the room full.
func TestSeatIsTakenAfterApproval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		approve, asked := make(chan struct{}), 0
		f := newFlooded(t, func(r *netloop.Room) {
			r.OnAdmit(func(_ context.Context, j *netloop.Join) error {
				if asked++; j.Token == "slow" {
					<-approve
				}
				return nil
			})
		})
		f.room.SetMaxClients(1)
		slow := make(chan error, 1)
		go func() {
			hello := hello(bareSchema)
			hello.Token = "slow"
			_, err := f.server.Handler.Admit(context.Background(), hello, "10.1.2.3:1")
			slow <- err
		}()
		synctest.Wait()
		if seats, code := f.room.Admission.Seats(), refusing(f); seats != 0 || code != 0 {
			t.Errorf("whoever waits for approval has %d seats, and newcomers are told %v", seats, code)
		}
		s := f.mustEnter("", "10.1.2.4:1")
		close(approve)
		wantFull(t, <-slow)
		_, err := f.enter("", "10.1.2.5:1")
		wantFull(t, err)
		if seats, code := f.room.Admission.Seats(), refusing(f); seats != 1 || code != netloop.CodeFull || asked != 2 {
			t.Errorf("%d seats are taken, newcomers are told %v, and the game was asked %d times", seats, code, asked)
		}
		f.gone(s)
		if code := refusing(f); code != 0 {
			t.Errorf("when the only client has left, newcomers are told %v", code)
		}
	})
}

// A full room reads the hello of newcomers while it awaits a client that has lost its connection,
// or while a player's client may be taken over: before the hello they cannot be told from
// strangers.
func TestAFullRoomReadsHellosOfReturningClients(t *testing.T) {
	f := newFlooded(t, subjects)
	f.room.SetMaxClients(1)
	hello := hello(bareSchema)
	hello.Resume = &netloopv1.Resume{}
	adm, err := f.server.Handler.Admit(t.Context(), hello, "10.1.2.3:1")
	if err != nil {
		t.Fatal(err)
	}
	s := newTestConn(adm)
	f.step()
	// It asks for the full state.
	if err := s.ReceiveStream(1, []byte{4, 0x32, 2, 0x10, 1}); err != nil {
		t.Fatal(err)
	}
	f.step()
	if code := refusing(f); code != netloop.CodeFull {
		t.Error("beside a client that is there, newcomers are told", code)
	}
	s.End(transport.Closed{Code: netloop.CodeLost})
	f.step()
	if code, hear := f.room.Admission.Refusing(); code != 0 || !hear {
		t.Error("while a client is awaited, newcomers are told", code)
	}
	_, err = f.enter("", "10.1.2.4:1")
	wantFull(t, err)
	hello.Resume.Token = adm.Welcome.ResumeToken
	back, err := f.server.Handler.Admit(t.Context(), hello, "10.9.9.9:1")
	if err != nil {
		t.Fatal(err)
	}
	newTestConn(back)
	f.step()
	if code := refusing(f); code != netloop.CodeFull {
		t.Error("when the client is back, newcomers are told", code)
	}
	if addr := f.room.Clients()[0].Join().Addr; addr != "10.9.9.9:1" {
		t.Error("the game sees the client that is back at", addr)
	}

	f.room.SetSameSubject(room.TakeOver)
	if code := refusing(f); code != netloop.CodeFull {
		t.Error("with a client that has no name, newcomers are told", code)
	}
	f.room.SetMaxClients(2)
	f.mustEnter("ann", "10.1.2.5:1")
	if code := refusing(f); code != 0 {
		t.Error("with a client that may be taken over, newcomers are told", code)
	}
	f.mustEnter("ann", "10.1.2.6:1")
}

func refusing(f *flooded) transport.Code {
	code, _ := f.room.Admission.Refusing()
	return code
}

func wantFull(t *testing.T, err error) {
	t.Helper()
	var refused *transport.Refusal
	if !errors.As(err, &refused) || refused.Code != netloop.CodeFull {
		t.Errorf("the answer of a full room is %v", err)
	}
}
