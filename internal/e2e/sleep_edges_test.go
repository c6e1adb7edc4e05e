package e2e_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/netlooptest"
)

// Messages that wait because of a stage's budget keep a room awake until the last one has run.
func TestARoomStaysAwakeForWaitingMessages(t *testing.T) {
	heard := 0
	w := open(t, func(r *netloop.Room) {
		echo.Handle(r, func(*netloop.Tick, *netloop.Client, text) error { heard++; return nil })
	}, netlooptest.Room(sleepingSpec), netlooptest.Limits(netloop.RPCLimits{Budget: 1}))
	c := play(t, w, perfect)
	const all = 60 // They take three seconds; a room sleeps after an idle second.
	for range all {
		client.Send(c, echo, text{})
	}
	w.Step(all + 10)
	if heard != all || w.Room("").Asleep() {
		t.Errorf("%d of %d messages have run, asleep: %v", heard, all, w.Room("").Asleep())
	}
	w.Step(40)
	if !w.Room("").Asleep() {
		t.Error("it does not sleep when all have run")
	}
}

// A sleeping room of a server in real time wakes for its timers without other events.
func TestARoomOfAServerWakesForATimer(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	spec := table("a")
	spec.Sleep, spec.Rate = true, netloop.Hz(100)
	ticks := make(chan uint64, 10)
	_, done := supervised(ctx, t, netloop.Config{Room: spec}, script(func(r *netloop.Room) {
		r.OnStart(func(tick *netloop.Tick) {
			tick.AfterFunc(300*time.Millisecond, func(tick *netloop.Tick) {
				ticks <- tick.Number()
				tick.AfterFunc(200*time.Millisecond, func(tick *netloop.Tick) { ticks <- tick.Number() })
			})
		})
	}))
	for _, least := range []uint64{31, 51} {
		select {
		case tick := <-ticks:
			if tick < least {
				t.Errorf("called in tick %d, want %d or later", tick, least)
			}
		case <-time.After(30 * time.Second):
			t.Fatal("the timer was not called")
		}
	}
	cancel()
	if err := ended(t, done); err != nil {
		t.Errorf("Run: %v", err)
	}
}

// Inputs of a spectator do not run.
func TestInputsOfSpectatorsAreDropped(t *testing.T) {
	ran := map[netloop.ClientID]int{}
	w := netlooptest.New(t, game{schema: steering, script: func(r *netloop.Room) {
		controls.Handle(r, func(_ *netloop.Tick, from *netloop.Client, _ control) { ran[from.ID()]++ })
	}}, netlooptest.Room(netloop.RoomSpec{MaxSpectators: 1}))
	var both []*client.Client
	for _, watches := range []bool{false, true} {
		c := w.JoinAs(client.Config{Spectate: watches}, perfect)
		client.Inputs(c, controls, func(*netloop.Tick) control { return control{Fire: true} })
		both = append(both, c)
	}
	w.Step(60)
	for i, watches := range []bool{false, true} {
		if c := both[i]; c.State().Phase != client.Playing || (ran[c.ID()] > 0) == watches {
			t.Errorf("%d inputs of a client ran, spectator: %v", ran[c.ID()], watches)
		}
	}
}

// A room that is about to end refuses reservations, with the reason.
func TestAnEndingRoomReservesNoSeats(t *testing.T) {
	w := open(t, func(*netloop.Room) {})
	openRoom(t, w, table("a"))
	joinRoom(w, "a") // An empty room ends at once.
	w.Step(30)
	w.Room("a").Drain(5*time.Second, netloop.CodeGame, "over")
	w.Step(5)
	var why *netloop.Refusal
	if tickets, err := reserve(t, w, "a", netloop.Reservation{}); len(tickets) > 0 || !errors.As(err, &why) || why.Code != netloop.CodeGame || why.Text != "over" {
		t.Errorf("%d tickets, %v", len(tickets), err)
	}
}
