package game

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/netlooptest"
)

// A match ends with a winner, and no card is lost.
func TestAMatchFollowsItsRules(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 100 {
		m := deal([]string{"ada", "bob", "cid"}, rng)
		for turn := 0; !m.Over; turn++ {
			hand := m.Hands[m.Turn]
			do := Move{Draw: true}
			if at := slices.IndexFunc(hand, func(c Card) bool { return c.Fits(m.top(), m.Suit) }); at >= 0 {
				do = Move{Card: hand[at], Suit: Suit(rng.IntN(4))}
			}
			if err := m.move((m.Turn+1)%3, do, rng); err == nil {
				t.Fatal("another player had a turn")
			}
			if err := m.move(m.Turn, do, rng); err != nil {
				t.Fatal(err)
			}
			all := slices.Concat(append(slices.Clone(m.Hands), m.Pile, m.Discards)...)
			slices.Sort(all)
			if len(all) != 52 || len(slices.Compact(all)) != 52 || turn > 1000 {
				t.Fatalf("after %d turns there are %d cards", turn, len(all))
			}
		}
	}
}

// newGame is the game with its saves in a folder.
func newGame(saves string) *Game {
	g := New()
	g.Settings.Saves = saves
	return g
}

// step runs the world until done, and lets the store work in between.
func step(t *testing.T, w *netlooptest.World, what string, done func() bool) {
	t.Helper()
	for range 2000 {
		if done() {
			return
		}
		w.Step(1)
		w.Settle()
	}
	t.Fatalf("timed out: %s", what)
}

// sit moves a new player through the lobby to a table.
func sit(t *testing.T, w *netlooptest.World, name string) *client.Client {
	t.Helper()
	c := w.JoinAs(client.Config{Token: name}, netlooptest.Link{Delay: 20 * time.Millisecond, Loss: 0.05})
	playing := func() bool { return c.State().Phase == client.Playing }
	step(t, w, "the lobby", playing)
	client.Call(c, Sit, SitDown{}, func(_ *netloop.Tick, at Place, err error) {
		if err == nil {
			err = c.Move(netloop.Ticket(at.Ticket))
		}
		if err != nil {
			t.Error(err)
		}
	})
	step(t, w, "a seat", func() bool { own, _ := seats(w, c); return playing() && own.Player == name })
	return c
}

// seats returns the seats that a client sees: its own, and that of the other.
func seats(w *netlooptest.World, c *client.Client) (own, other Seat) {
	w.Look(c, func(t *netloop.Tick) {
		for o := range Seats.All(t) {
			if s := o.State(); o.Owner() == c.ID() {
				own = s
			} else {
				other = s
			}
		}
	})
	return own, other
}

// Two players meet at a table. Nobody gets the other hand. After a crash of the server they play on
// with the same cards.
func TestPlayersMeetAndReturn(t *testing.T) {
	saves := t.TempDir()
	w := netlooptest.New(t, newGame(saves))
	ada, bob := sit(t, w, "ada"), sit(t, w, "bob")
	dealt := func() bool { own, other := seats(w, ada); return own.Cards > 0 && other.Cards > 0 }
	step(t, w, "cards", dealt)
	for _, c := range []*client.Client{ada, bob} {
		if own, other := seats(w, c); len(own.Hand) != int(own.Cards) || len(other.Hand) != 0 {
			t.Errorf("%s reads %v and the other hand %v", own.Player, own.Hand, other.Hand)
		}
	}
	answered := false
	client.Call(ada, Turn, Move{Draw: true}, func(_ *netloop.Tick, _ Done, err error) { answered = err == nil })
	step(t, w, "ada's turn", func() bool { own, _ := seats(w, ada); return answered && own.Cards == 6 })
	hand, _ := seats(w, ada)
	w.Restart(newGame(saves))
	step(t, w, "the match again", func() bool {
		own, _ := seats(w, ada)
		return ada.State().Phase == client.Playing && own.Cards > 0 && dealt()
	})
	if is, _ := seats(w, ada); !slices.Equal(is.Hand, hand.Hand) {
		t.Errorf("after the crash ada has %v, before she had %v", is.Hand, hand.Hand)
	}
}
