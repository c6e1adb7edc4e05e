package simulation

import (
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/netlooptest"
)

// After a suspension the clock of a computer is behind. The measurements from before must not
// remove the whole lead: inputs without a lead arrive too late, are not measured, and so would
// never restore it.
func TestAComputerThatWasSuspendedControlsItsPlayerAgain(t *testing.T) {
	for _, delay := range []time.Duration{0, 60 * time.Millisecond, 150 * time.Millisecond} {
		s := &Story{Seed: 383, Length: 8 * time.Second, Server: server{Room: netloop.RoomSpec{Rate: netloop.Hz(10), MaxClients: 2}, Incarnation: 1}, Events: []Event{
			{At: 445 * time.Millisecond, Do: "join", Bot: 1, Join: &joining{}, Link: &netlooptest.Link{Delay: delay}},
			{At: 3793 * time.Millisecond, Do: "suspend", Bot: 1, For: 3 * time.Second},
		}}
		if f := run(t, s, false).finding; f != nil {
			t.Errorf("delay %v: %s: %s", delay, f.Check, f.Text)
		}
	}
}

// A kicked client leaves some ticks later. Until then a program of the same player that would take
// it over is closed with the reason of the kick.
func TestAProgramThatTakesOverAKickedClientIsKicked(t *testing.T) {
	s := &Story{Seed: 4372, Length: 3 * time.Second, Server: server{Room: netloop.RoomSpec{Rate: netloop.Hz(60), MaxClients: 2}, Incarnation: 1}, Events: []Event{
		{Do: "join", Bot: 1, Join: &joining{Subject: "p"}, Link: &netlooptest.Link{Delay: 100 * time.Millisecond}},
		{At: time.Second, Do: "join", Bot: 2, Join: &joining{Subject: "p"}, Link: &netlooptest.Link{Delay: 20 * time.Millisecond}},
		{At: 1020 * time.Millisecond, Do: "command", Command: "kick"},
	}}
	if f := run(t, s, false).finding; f != nil {
		t.Errorf("%s: %s", f.Check, f.Text)
	}
}

// A player who is reported absent after its turn has ended does not end the turn again.
func TestAPhaseEndsOnceAlthoughItsPlayerLeavesLater(t *testing.T) {
	s := &Story{Seed: 40943, Length: 5 * time.Second, Server: server{Room: netloop.RoomSpec{Rate: netloop.Hz(10), MaxClients: 1}, Incarnation: 1}, Events: []Event{
		{At: 542 * time.Millisecond, Do: "command", Command: "phase", N: 4539371277265988873},
		{At: 3944 * time.Millisecond, Do: "command", Command: "away", N: 2486333067775709650},
	}}
	if f := run(t, s, false).finding; f != nil {
		t.Errorf("%s: %s", f.Check, f.Text)
	}
}

// A room that ends while it waits to claim its name again, after a hand-over without an answer of
// the cluster, does not keep the name.
func TestTheNameOfARoomThatEndsAfterAFailedHandOverIsFree(t *testing.T) {
	s := &clusterStory{Seed: 26, Servers: 3, Travels: true, Length: 12 * time.Second, Events: []clusterEvent{
		{At: 3854 * time.Millisecond, Do: "open", Server: 1, Room: "ash", For: 2 * time.Second},
		{At: 5223 * time.Millisecond, Do: "no store", For: 2 * time.Second},
		{At: 5415 * time.Millisecond, Do: "hand over", Server: 1, Room: "ash"},
	}}
	if found := playCluster(t, s); found != "" {
		t.Error(found)
	}
}

// The seat of an expired ticket is listed as free, although the room sleeps and another reader of
// the seats has removed the ticket before the room's tick.
func TestTheSeatOfAnExpiredTicketIsListed(t *testing.T) {
	s := &Story{Seed: 60005, Length: time.Second, Server: server{Room: netloop.RoomSpec{Rate: netloop.Hz(20), MaxClients: 2, KeepDropped: -1, Sleep: true}, Incarnation: 1}}
	if f := run(t, s, false).finding; f != nil {
		t.Errorf("%s: %s", f.Check, f.Text)
	}
}
