package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	serve(os.Getenv(asServer))
	os.Exit(m.Run())
}

// The fleet of make fleet, with fewer bots: its ledger holds.
func TestFleet(t *testing.T) {
	var out bytes.Buffer
	err := run(t.Context(), options{bots: 40, phase: 2 * time.Second}, &out)
	if err != nil || !strings.Contains(out.String(), "the ledger holds") {
		t.Errorf("%v\n%s", err, out.String())
	}
}

// The faults of make fleet ARGS=-faults, with shorter times.
func TestFleetFaults(t *testing.T) {
	if os.Getenv("NETLOOP_VERIFY") == "" {
		t.Skip("make verify runs it: freezes and partitions take four minutes")
	}
	var out bytes.Buffer
	err := run(t.Context(), options{bots: 60, phase: 2 * time.Second, faults: true, freeze: 15 * time.Second, outage: 20 * time.Second}, &out)
	t.Log("\n" + out.String())
	if err != nil || !strings.Contains(out.String(), "the ledger holds") {
		t.Error(err)
	}
}

// The ledger finds a room that admits after a newer one was opened, two rooms with one incarnation,
// and a room that takes a player for another one. It counts joins, moves and losses.
func TestLedger(t *testing.T) {
	l := newLedger(func() time.Duration { return time.Second })
	at := func(room, server string, incarnation uint64, player string, opened, admitted uint64) answer {
		return answer{Place: place{room, server, incarnation, player}, Opened: opened, Admitted: admitted}
	}
	for _, step := range []struct {
		player string
		at     answer
		fault  string
	}{
		{"ann", at("oak", "a", 5, "ann", 10, 20), ""},
		{"bob", at("oak", "a", 5, "bob", 10, 21), ""},
		{"ann", at("elm", "a", 6, "ann", 11, 22), ""},
		{"bob", at("ash", "b", 7, "bob", 12, 23), ""},
		{"ann", at("oak", "b", 9, "ann", 30, 31), ""},
		{"bob", at("oak", "a", 5, "bob", 10, 29), ""}, // The answer is late.
		{"bob", at("oak", "a", 5, "bob", 10, 32), "2 ms after server b had opened a newer one"},
		{"bob", at("oak", "c", 9, "bob", 30, 33), "is at the servers"},
		{"eve", at("elm", "a", 6, "ann", 11, 34), "takes eve for ann"},
	} {
		l.entered(step.player, step.at)
		_, faults := l.result()
		if found := len(faults) > 0 && strings.Contains(faults[0], step.fault); found != (step.fault != "") {
			t.Errorf("%s at %+v: %q, want %q", step.player, step.at, faults, step.fault)
		}
		l.faults = nil
	}
	l.entered("zoe", at("fir", "b", 12, "zoe", 50, 51))
	l.entered("bob", at("fir", "a", 11, "bob", 40, 60)) // After the newer room's answer.
	if _, faults := l.result(); len(faults) != 1 || !strings.Contains(faults[0], "10 ms after server b") {
		t.Errorf("an older room that admits: %q", faults)
	}
	l.faults = nil
	l.entered("bob", answer{Place: place{"fir", "a", 11, "bob"}, Opened: 40, Admitted: 70, Ticket: true})
	if _, faults := l.result(); len(faults) != 0 {
		t.Errorf("a ticket from before: %q", faults)
	}
	l.gap(time.Second, true)
	l.gap(2*time.Second, false)
	if c, _ := l.result(); c.carried != 1 || c.pause != time.Second || len(c.gaps) != 2 {
		t.Errorf("gaps %+v", c)
	}
	l.left("ann", true)
	l.refusal(nil)
	c, _ := l.result()
	if c.joins != 4 || c.moves != 6 || c.crossed != 5 || c.lost != 1 || c.refused != 1 || l.players("") != 3 || l.players("c") != 0 {
		t.Errorf("%+v, %d and %d players", c, l.players(""), l.players("c"))
	}
}

// A room that moves counts on. A room that is opened again after a crash continues from a save, and
// an older room does not answer afterwards.
func TestLedgerOfAnswers(t *testing.T) {
	var now time.Duration
	l := newLedger(func() time.Duration { return now })
	tell := func(incarnation uint64, server string, number uint32) (fault string) {
		l.answered("ann", answer{Place: place{"oak", server, incarnation, "ann"}, Number: number})
		_, faults := l.result()
		l.faults = nil
		return strings.Join(faults, ", ")
	}
	for n := range uint32(10) {
		now += time.Second
		if fault := tell(5, "a", n+1); fault != "" {
			t.Fatal(fault)
		}
	}
	if fault := tell(6, "b", 10); !strings.Contains(fault, "counts 10 answers to ann, which has got 10") {
		t.Errorf("a room that has moved counts an answer twice: %q", fault)
	}
	for n := range uint32(10) {
		now += time.Second
		if fault := tell(6, "b", n+11); fault != "" {
			t.Fatal(fault)
		}
	}
	l.fails("b")
	if fault := tell(7, "c", 19); fault != "" {
		t.Errorf("an answer that was not saved: %q", fault)
	}
	if fault := tell(6, "b", 21); !strings.Contains(fault, "has got answers of a newer one") {
		t.Errorf("an answer of an older room: %q", fault)
	}
	l.fails("c")
	l.entered("zoe", answer{Place: place{"oak", "c", 7, "zoe"}})
	l.recovered("c")
	if fault := tell(8, "a", 19); !strings.Contains(fault, "counts 19 answers") {
		t.Errorf("a server that works again: %q", fault)
	}
	for n := range uint32(10) {
		now += time.Second
		if fault := tell(8, "a", n+22); fault != "" {
			t.Fatal(fault)
		}
	}
	l.fails("a")
	if fault := tell(9, "b", 22); !strings.Contains(fault, "were saved") {
		t.Errorf("a save that was lost: %q", fault)
	}
}
