package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	if os.Getenv(asServer) != "" {
		serve()
	}
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

// The ledger finds a room of an older incarnation that admits, two rooms with one incarnation, and
// a room that takes a player for another one. It counts joins, moves and losses.
func TestLedger(t *testing.T) {
	l := newLedger(func() time.Duration { return time.Second })
	at := func(room, server string, incarnation uint64, player string) place {
		return place{room, server, incarnation, player}
	}
	for _, step := range []struct {
		player string
		at     place
		fault  string
	}{
		{"ann", at("oak", "a", 5, "ann"), ""},
		{"bob", at("oak", "a", 5, "bob"), ""},
		{"ann", at("elm", "a", 6, "ann"), ""},
		{"bob", at("ash", "b", 7, "bob"), ""},
		{"ann", at("oak", "b", 9, "ann"), ""},
		{"bob", at("oak", "a", 5, "bob"), "has a newer one"},
		{"bob", at("oak", "c", 9, "bob"), "is at the servers"},
		{"eve", at("elm", "a", 6, "ann"), "takes eve for ann"},
	} {
		l.entered(step.player, step.at)
		_, faults := l.result()
		if found := len(faults) > 0 && strings.Contains(faults[0], step.fault); found != (step.fault != "") {
			t.Errorf("%s at %+v: %q, want %q", step.player, step.at, faults, step.fault)
		}
		l.faults = nil
	}
	l.answered("ann", answer{at("oak", "b", 9, "ann"), 3})
	l.answered("ann", answer{at("oak", "c", 10, "ann"), 3})
	if _, faults := l.result(); len(faults) != 1 || !strings.Contains(faults[0], "counts 3 answers to ann, which has got 3") {
		t.Errorf("an answer that was counted twice: %q", faults)
	}
	l.faults = nil
	l.gap(time.Second, true)
	l.gap(2*time.Second, false)
	if c, _ := l.result(); c.carried != 1 || c.pause != time.Second || len(c.gaps) != 2 {
		t.Errorf("gaps %+v", c)
	}
	l.left("ann", true)
	l.refusal(nil)
	c, _ := l.result()
	if c.joins != 3 || c.moves != 5 || c.crossed != 4 || c.lost != 1 || c.refused != 1 || l.players("") != 2 || l.players("c") != 1 {
		t.Errorf("%+v, %d and %d players", c, l.players(""), l.players("c"))
	}
}
