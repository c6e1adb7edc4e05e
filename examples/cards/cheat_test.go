package cards_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/examples/cards"
	"github.com/netloop/netloop/netlooptest"
)

// A request that the rules forbid is refused with a reason, and has no effect: a card that the
// player does not have, every card out of turn, and a card and a suit that do not exist.
func TestCheatsAreRefused(t *testing.T) {
	w := world(t, game("", 2, time.Hour))
	_, ann := seat(t, w, "ann", "oak", false, netlooptest.Link{})
	_, bob := seat(t, w, "bob", "oak", false, netlooptest.Link{})
	until(t, w, "cards", func() bool { return len(ann.View.Hand())*len(bob.View.Hand()) > 0 && !ann.Busy() })
	before := ann.View.Clone()
	count := map[string]int{}
	attempt := func(do func(then func(error))) {
		r := (*netloop.Refusal)(nil)
		if err := try(t, w, do); !errors.As(err, &r) || r.Code != netloop.CodeRefused {
			t.Fatalf("the answer is %v", err)
		}
		count[r.Text]++
	}
	for c := range cards.Card(60) { // It is ann's turn. 52 of these cards exist.
		attempt(func(then func(error)) { bob.Play(c, cards.Clubs, then) })
		if held := slices.Contains(ann.View.Hand(), c); !held || !ann.View.Fits(c) {
			attempt(func(then func(error)) { ann.Play(c, cards.Clubs, then) })
		} else if c.Eight() {
			attempt(func(then func(error)) { ann.Play(c, 4, then) })
		}
	}
	attempt(func(then func(error)) { bob.Draw(then) })
	w.Step(20)
	if now := &ann.View; now.Table.Turns != 0 || now.Table.Top != before.Table.Top || !slices.Equal(now.Hand(), before.Hand()) || now.Table.Pile != before.Table.Pile {
		t.Errorf("the table was %+v and is %+v", before, now)
	}
	if count["it is not your turn"] != 61 || count["you do not have that card"] != 55 || len(count) < 3 {
		t.Errorf("the refusals were %v", count)
	}
}

// Of a flood of moves the table handles few. The rest is refused and counted, and the other
// players continue.
func TestAFloodOfMovesIsRefused(t *testing.T) {
	w := world(t, game("", 2, time.Second))
	_, ann := seat(t, w, "ann", "oak", true, netlooptest.Link{})
	c, bob := seat(t, w, "bob", "oak", false, netlooptest.Link{})
	until(t, w, "cards", func() bool { return len(bob.View.Hand()) > 0 })
	floods, looked := 0, 0
	flood := true
	c.On(netloop.Update, "test.flood", func(*netloop.Tick) {
		for flood && c.Stats().Calls < 900 {
			client.Call(c, cards.Play, cards.Move{Card: 99}, func(_ *netloop.Tick, _ cards.Done, err error) {
				switch r := (*netloop.Refusal)(nil); {
				case errors.As(err, &r) && r.Code == netloop.CodeFlood:
					floods++
				case errors.As(err, &r):
					looked++
				}
			})
		}
	})
	from := w.Now()
	turns := ann.View.Table.Turns
	until(t, w, "the table goes on", func() bool { return ann.View.Table.Turns > turns+4 })
	flood = false
	until(t, w, "the answers", func() bool { return c.Stats().Calls == 0 })
	if most := 200 + 100*int((w.Now()-from)/time.Second+1); looked > most || floods < looked {
		t.Errorf("%d moves were handled, and %d were refused as a flood", looked, floods)
	}
	if c.Closed() != nil && c.Closed().Code != netloop.CodeFlood {
		t.Errorf("it was closed with %v", c.Closed())
	}
}

// A client cannot fill the server with tables, and names with control characters are refused.
func TestTheLobbyHasLimits(t *testing.T) {
	w := world(t, game("", 2, time.Hour))
	c, eve := joinPlayer(t, w, "eve", netlooptest.Link{})
	var full int
	for i := range 10 {
		err := try(t, w, func(then func(error)) {
			client.Call(c, cards.Sit, cards.SitDown{Table: fmt.Sprint("table ", i)}, func(_ *netloop.Tick, _ cards.Place, err error) { then(err) })
		})
		if r := (*netloop.Refusal)(nil); errors.As(err, &r) && r.Code == netloop.CodeBusy {
			full++
		}
	}
	if full != 6 {
		t.Errorf("%d of 10 tables were refused, want 6", full)
	}
	for _, name := range []string{"\x1b[2J", " ", "a\nb", "\xff"} {
		if err := try(t, w, func(then func(error)) { eve.Sit(cards.SitDown{Table: name}, then) }); err == nil {
			t.Errorf("a table is named %q", name)
		}
	}
	for _, name := range []string{"", "a\x1b[2J", strings.Repeat("x", 33)} {
		c := w.JoinAs(client.Config{Token: name}, netlooptest.Link{})
		until(t, w, "the refusal", func() bool { return c.Closed() != nil })
		if why := c.Closed(); why.Code != netloop.CodeRefused {
			t.Errorf("%q got %v", name, why)
		}
	}
}
