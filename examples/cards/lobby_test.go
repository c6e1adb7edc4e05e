package cards_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/examples/cards"
	"github.com/netloop/netloop/examples/cards/bot"
	"github.com/netloop/netloop/netlooptest"
)

// The lobby's list follows the tables: one is opened, fills, plays, and closes.
func TestTheLobbyListsTables(t *testing.T) {
	w := world(t, game("", 2, time.Hour))
	_, looker := joinPlayer(t, w, "eve", netlooptest.Link{})
	listed := func(want cards.Listing) func() bool {
		return func() bool {
			l := looker.View.Listings
			return len(l) == 1 && l[0].Phase == want.Phase && l[0].Taken == want.Taken && slices.Equal(l[0].Players, want.Players) && l[0].Table == "oak" && l[0].Seats == 2
		}
	}
	ann, _ := seat(t, w, "ann", "oak", false, netlooptest.Link{})
	until(t, w, "one waits", listed(cards.Listing{Phase: cards.Waiting, Taken: 1, Players: []string{"ann"}}))
	bob, _ := seat(t, w, "bob", "", false, netlooptest.Link{}) // At any waiting table.
	until(t, w, "two play", listed(cards.Listing{Phase: cards.Playing, Taken: 2, Players: []string{"ann", "bob"}}))
	_ = ann.Close()
	until(t, w, "her seat is kept", listed(cards.Listing{Phase: cards.Playing, Taken: 1, Players: []string{"ann", "bob"}}))
	_ = bob.Close()
	until(t, w, "the table goes", func() bool { return len(looker.View.Listings) == 0 })
}

// Each request for any table gets a seat, at as few tables as possible, however many are sent at
// once.
func TestPlayersOfAnyTableShareTables(t *testing.T) {
	w := world(t, game("", 4, time.Hour))
	var all []*bot.Bot
	for i := range 22 {
		_, b := joinPlayer(t, w, fmt.Sprint("player ", i), netlooptest.Link{})
		all = append(all, b)
	}
	for _, b := range all {
		b.Plays = false
		b.Sit(cards.SitDown{}, func(err error) {
			if err != nil {
				t.Error(err)
			}
		})
	}
	until(t, w, "all sit", func() bool {
		return !slices.ContainsFunc(all, func(b *bot.Bot) bool { return b.Busy() || b.View.Place < 0 })
	})
	at := map[string]int{}
	for _, b := range all {
		at[b.View.Table.Name]++
	}
	if len(at) != 6 {
		t.Errorf("22 players are at the tables %v", at)
	}
}

// A private table is not listed, and opens to players with its code; a wrong code ends the client.
func TestAPrivateTableOpensByItsCode(t *testing.T) {
	w := world(t, game("", 2, time.Hour))
	_, ann := joinPlayer(t, w, "ann", netlooptest.Link{})
	_, bob := joinPlayer(t, w, "bob", netlooptest.Link{})
	eve, wrong := joinPlayer(t, w, "eve", netlooptest.Link{})
	ann.Plays, bob.Plays = false, false
	sit(t, w, ann, cards.SitDown{Private: true})
	until(t, w, "the table", func() bool { return ann.View.Place == 0 })
	code := ann.View.Table.Code
	w.Step(20)
	if len(code) != 6 || len(bob.View.Listings) != 0 {
		t.Errorf("its code is %q, and the lobby lists %v", code, bob.View.Listings)
	}
	if err := bob.Enter(code); err != nil {
		t.Fatal(err)
	}
	until(t, w, "cards", func() bool { return len(bob.View.Hand()) > 0 })
	if err := wrong.Enter("NOCODE"); err != nil {
		t.Fatal(err)
	}
	until(t, w, "the refusal", func() bool { return eve.Closed() != nil })
	if why := eve.Closed(); why.Code.String() != "ticket" && why.Text == "" {
		t.Errorf("it was closed with %v", why)
	}
}

// A spectator sees the table, but no hand; takes no player's seat, cannot play, and can return to
// the lobby.
func TestSpectatorsReadNoHands(t *testing.T) {
	w := world(t, game("", 2, time.Hour))
	_, ann := seat(t, w, "ann", "oak", false, netlooptest.Link{})
	c, eve := joinPlayer(t, w, "eve", netlooptest.Link{})
	until(t, w, "the list", func() bool { return len(eve.View.Listings) == 1 })
	sit(t, w, eve, cards.SitDown{Table: "oak", Watch: true})
	_, bob := seat(t, w, "bob", "oak", false, netlooptest.Link{})
	until(t, w, "cards", func() bool { return len(ann.View.Hand())*len(bob.View.Hand()) > 0 && len(eve.View.Seats) == 2 })
	ann.Plays, bob.Plays = true, true
	until(t, w, "some turns", func() bool { return eve.View.Table.Turns > 6 })
	if eve.View.Place >= 0 || slices.ContainsFunc(eve.View.Seats, func(s cards.Seat) bool { return len(s.Hand) > 0 || s.Cards == 0 }) {
		t.Errorf("a spectator has %+v", eve.View.Seats)
	}
	if err := try(t, w, func(then func(error)) { eve.Draw(then) }); err == nil {
		t.Error("a spectator has drawn a card")
	}
	if err := try(t, w, eve.Leave); err != nil {
		t.Error(err)
	}
	until(t, w, "the lobby", func() bool { return !eve.Busy() && !eve.View.AtTable && c.State().Phase == client.Playing })
	refused(t, try(t, w, func(then func(error)) { eve.Sit(cards.SitDown{Table: "elm", Watch: true}, then) }), "there is no such table")
}

// With a delay, spectators get each turn that much later, and none earlier.
func TestSpectatorsAreDelayed(t *testing.T) {
	g := game("", 2, time.Hour)
	const delay = 5 * time.Second
	g.Config().(*cards.Config).Delay = delay
	w := world(t, g)
	_, ann := seat(t, w, "ann", "oak", true, netlooptest.Link{})
	_, eve := joinPlayer(t, w, "eve", netlooptest.Link{})
	until(t, w, "the list", func() bool { return len(eve.View.Listings) == 1 })
	_, bob := seat(t, w, "bob", "oak", true, netlooptest.Link{})
	sit(t, w, eve, cards.SitDown{Table: "oak", Watch: true})
	if eve.View.Table.Turns > 0 {
		t.Errorf("there are already %d turns", eve.View.Table.Turns)
	}
	made := map[string]time.Duration{} // When ann saw a turn, by its round and number.
	turn := func(b *bot.Bot) string { return fmt.Sprint(b.View.Table.Round, " ", b.View.Table.Turns) }
	until(t, w, "turns", func() bool {
		if _, ok := made[turn(ann)]; !ok {
			made[turn(ann)] = w.Now()
		}
		return len(made) > 12
	})
	ann.Plays, bob.Plays = false, false
	last := turn(ann)
	seen := 0
	until(t, w, "the last of them", func() bool {
		at, ok := made[turn(eve)]
		// Ann gets it at most a snapshot and two frames after the move.
		if seen++; ok && w.Now()-at < delay-200*time.Millisecond {
			t.Fatalf("turn %s arrives after %v", turn(eve), w.Now()-at)
		}
		return turn(eve) == last
	})
	if seen < 10 {
		t.Errorf("all turns arrived after %d steps", seen)
	}
}
