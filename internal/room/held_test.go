package room_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/netloop/netloop"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// admits admits a client of an address; its Joined waits for the next step.
func (w *returns) admits(addr string, r *netloopv1.Resume) (*testConn, *netloopv1.Welcome, error) {
	h := hello(bareSchema)
	h.Resume = r
	adm, err := w.server.Handler.Admit(context.Background(), h, addr)
	if err != nil {
		return nil, nil, err
	}
	return newTestConn(adm), adm.Welcome, nil
}

// plays admits a client of an address, which must succeed, and lets it send.
func (w *returns) plays(addr string, r *netloopv1.Resume) (*testConn, *netloopv1.Welcome) {
	w.t.Helper()
	g, welcome, err := w.admits(addr, r)
	if err != nil {
		w.t.Fatal(err)
	}
	w.step()
	w.speak(g)
	w.step()
	return g, welcome
}

// vanish admits a newcomer and breaks its connection.
func (w *returns) vanish(addr string) *netloopv1.Welcome {
	w.t.Helper()
	g, welcome := w.plays(addr, newcomer())
	g.End(lostLink)
	w.step()
	return welcome
}

// An address with connections that repeatedly join and vanish keeps a quarter of a full room:
// newcomers from elsewhere get the other seats, starting with those of its clients that were
// dropped first. A replay does the same.
func TestOneAddressDoesNotKeepARoomFull(t *testing.T) {
	w := &returns{}
	game := bareGame(func(r *netloop.Room) {
		tell := func(what string, c *netloop.Client) { w.told = append(w.told, fmt.Sprint(what, " ", c.ID())) }
		r.OnJoin(func(_ *netloop.Tick, c *netloop.Client) error { tell("join", c); return nil })
		r.OnResume(func(_ *netloop.Tick, c *netloop.Client) { tell("resume", c) })
		r.OnLeave(func(_ *netloop.Tick, c *netloop.Client, why *netloop.Closed) { tell("leave: "+why.Code.String(), c) })
	})
	var file bytes.Buffer
	w.bare = newBareAs(t, netloop.Config{Record: &file, Room: netloop.RoomSpec{MaxClients: 8, KeepDropped: time.Hour}}, game)
	full := func(what, addr string, r *netloopv1.Resume) {
		t.Helper()
		_, _, err := w.admits(addr, r)
		wantRefused(t, what, err, netloop.CodeFull)
	}
	var want []string
	var lost []*netloopv1.Welcome
	for n := range 8 {
		lost = append(lost, w.vanish(fmt.Sprint("10.0.0.1:", n)))
		want = append(want, fmt.Sprint("join ", n+1))
	}
	full("a newcomer from the same address", "10.0.0.1:99", newcomer())
	for n := range 6 {
		if _, _, err := w.admits(fmt.Sprintf("10.0.1.%d:1", n), newcomer()); err != nil {
			t.Fatalf("newcomer %d: %v", n, err)
		}
		full("a client that loses its seat", "10.0.0.1:1", with(lost[n], 0))
		w.step()
		want = append(want, fmt.Sprint("leave: ", netloop.CodeLost, " ", n+1), fmt.Sprint("join ", n+9))
	}
	full("one more", "10.0.2.1:1", newcomer())
	for n := 6; n < 8; n++ {
		w.plays("10.0.0.1:1", with(lost[n], 0))
		want = append(want, fmt.Sprint("resume ", n+1))
	}
	w.wantPlaces(8, 0, 0)
	w.wantTold(want...)
	p, err := netloop.NewReplay(netloop.Config{}, game, bytes.NewReader(file.Bytes()))
	for err == nil {
		_, err = p.Step()
	}
	if !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	w.wantTold(want...)
}

// A seat does not yield to a newcomer while the next connection of its client is being admitted,
// and an address keeps one seat in any case.
func TestSeatsThatDoNotYield(t *testing.T) {
	w := newReturns(t, netloop.Config{Room: netloop.RoomSpec{MaxClients: 4, KeepDropped: time.Hour}})
	var lost []*netloopv1.Welcome
	for _, addr := range []string{"10.0.0.1:1", "10.0.0.1:2", "10.0.1.1:1", "10.0.2.1:1"} {
		lost = append(lost, w.vanish(addr))
	}
	// It has not entered yet.
	if _, _, err := w.admits("10.0.0.1:1", with(lost[0], 0)); err != nil {
		t.Fatal(err)
	}
	_, _, err := w.admits("10.0.9.9:1", newcomer())
	wantRefused(t, "a newcomer", err, netloop.CodeFull)
	w.step()
	w.wantTold("join", "drop", "join", "drop", "join", "drop", "join", "drop", "resume")
}
