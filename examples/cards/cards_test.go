package cards_test

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/examples/cards"
	"github.com/netloop/netloop/examples/cards/bot"
	"github.com/netloop/netloop/netlooptest"
	"github.com/netloop/netloop/seats"
)

// game makes the game for so many players at a table.
func game(file string, players int, turn time.Duration) *cards.Game {
	g := cards.New(nil)
	cfg := g.Config().(*cards.Config)
	cfg.Database, cfg.Players, cfg.Turn = file, players, turn
	return g
}

// world is a server with a game for tests.
func world(t *testing.T, g *cards.Game) *netlooptest.World {
	return netlooptest.New(t, g, netlooptest.Room(g.RoomDefaults()))
}

// until steps until a condition holds. Work is done meanwhile.
func until(t *testing.T, w *netlooptest.World, what string, done func() bool) {
	t.Helper()
	for range 20_000 {
		if done() {
			return
		}
		w.Step(2)
		w.Settle()
	}
	t.Fatalf("timed out: %s", what)
}

// joinPlayer joins a player to the lobby.
func joinPlayer(t *testing.T, w *netlooptest.World, name string, l netlooptest.Link) (*client.Client, *bot.Bot) {
	t.Helper()
	c := w.JoinAs(client.Config{Token: name}, l)
	b := bot.New(c)
	until(t, w, "the lobby", func() bool { return b.View.State.Phase == client.Playing })
	return c, b
}

// sit moves a player from the lobby to a table, over the existing connection.
func sit(t *testing.T, w *netlooptest.World, b *bot.Bot, q cards.SitDown) {
	t.Helper()
	if err := try(t, w, func(then func(error)) { b.Sit(q, then) }); err != nil {
		t.Fatal(err)
	}
	until(t, w, "the table", func() bool { return !b.Busy() && b.View.AtTable })
}

// try performs an action and waits for its answer.
func try(t *testing.T, w *netlooptest.World, do func(then func(error))) (failed error) {
	t.Helper()
	answered := false
	do(func(err error) { failed, answered = err, true })
	until(t, w, "an answer", func() bool { return answered })
	return failed
}

// seat moves a player through the lobby to a table.
func seat(t *testing.T, w *netlooptest.World, name, table string, plays bool, l netlooptest.Link) (*client.Client, *bot.Bot) {
	t.Helper()
	c, b := joinPlayer(t, w, name, l)
	b.Plays = plays
	sit(t, w, b, cards.SitDown{Table: table})
	return c, b
}

// refused requires that an error is a refusal with this text.
func refused(t *testing.T, err error, text string) {
	t.Helper()
	if r := (*netloop.Refusal)(nil); !errors.As(err, &r) || r.Text != text {
		t.Errorf("the answer is %v, want %q", err, text)
	}
}

// Three players move through the lobby to one table and play a match over bad links, each over
// one connection. Each reads only its own hand, and none the pile. One loses the connection, is
// away, and returns to its cards. In the end one has won, and the lobby has the record.
func TestAMatchIsPlayed(t *testing.T) {
	w := world(t, game("", 3, 5*time.Second))
	link := netlooptest.Link{Delay: 20 * time.Millisecond, Loss: 0.02}
	var clients []*client.Client
	var players []*bot.Bot
	names := []string{"ann", "bob", "cid"}
	for _, name := range names {
		c, b := seat(t, w, name, "", true, link)
		clients, players = append(clients, c), append(players, b)
	}
	until(t, w, "cards", func() bool {
		return !slices.ContainsFunc(players, func(b *bot.Bot) bool { return len(b.View.Hand()) == 0 })
	})
	for i, b := range players {
		if len(b.View.Seats) != 3 {
			t.Fatalf("%s sees %d seats", names[i], len(b.View.Seats))
		}
		for _, s := range b.View.Seats {
			if (len(s.Hand) > 0) != (s.Player == names[i]) || s.Cards == 0 {
				t.Errorf("%s reads %v of the %d cards of %s", names[i], s.Hand, s.Cards, s.Player)
			}
		}
	}
	w.Break(clients[1])
	w.Freeze(clients[1])
	until(t, w, "somebody is away", func() bool { return players[0].View.Seats[1].Presence.Status == seats.Away })
	w.Thaw(clients[1])
	until(t, w, "it is back", func() bool {
		return players[0].View.Seats[1].Presence.Status == seats.Here && len(players[1].View.Hand()) > 0
	})
	for _, b := range players {
		b.Plays = false
	}
	until(t, w, "the time of a turn is over", func() bool { return players[0].View.Table.Drew && !players[0].Busy() })
	turn := players[0].View.Table.Turns
	until(t, w, "that of the next one, too", func() bool { return players[0].View.Table.Turns > turn })
	for _, b := range players {
		b.Plays = true
	}
	until(t, w, "the end", func() bool { return players[0].View.Table.Phase == cards.Over })
	winner := players[0].View.Table.Winner
	if s := players[0].View.Seats; s[winner].Score < 100 {
		t.Errorf("player %d has won with %+v", winner, s)
	}
	for i, b := range players {
		if err := try(t, w, b.Leave); err != nil {
			t.Fatal(err)
		}
		until(t, w, "the lobby", func() bool { return !b.Busy() && !b.View.AtTable })
		var won cards.Won
		_ = try(t, w, func(then func(error)) {
			client.Call(clients[i], cards.Record, cards.RecordQuery{}, func(_ *netloop.Tick, r cards.Won, err error) { won = r; then(err) })
		})
		if won.Played != 1 || won.Won == 1 != (i == int(winner)) {
			t.Errorf("%s has won %d of %d", names[i], won.Won, won.Played)
		}
		if s := clients[i].Stats(); s.Drops != 0 && i != 1 || s.FullStates != 0 {
			t.Errorf("%s had to connect again: %+v", names[i], s)
		}
	}
}

// A player that loses the connection during the move to a table still arrives, and takes one
// seat.
func TestAMoveToATableSurvivesABreak(t *testing.T) {
	w := world(t, game("", 2, time.Hour))
	c, b := joinPlayer(t, w, "ann", netlooptest.Link{Delay: 50 * time.Millisecond})
	leaves := false
	c.OnState(func(s client.State) { leaves = leaves || s.Phase == client.Moving })
	b.Sit(cards.SitDown{Table: "oak"}, func(error) {})
	until(t, w, "the way", func() bool { return leaves })
	if b.View.AtTable {
		t.Fatal("it has arrived already")
	}
	w.Break(c)
	until(t, w, "the table", func() bool { return b.View.AtTable && !b.Busy() && b.View.Place == 0 })
	if c.Room() != "table/oak" || len(b.View.Seats) != 1 {
		t.Errorf("it is in %q at %+v", c.Room(), b.View.Seats)
	}
}

// A table without players sleeps, and an interrupted match continues in another server with the
// same database: with the same hands and turn, and only for its players.
func TestATableContinuesAfterARestart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cards.db")
	var before [2][]cards.Card
	var table cards.Table
	for run := range 2 {
		w := world(t, game(file, 2, time.Hour))
		var players []*bot.Bot
		for _, name := range []string{"ann", "bob"} {
			_, b := seat(t, w, name, "oak", run == 0, netlooptest.Link{})
			players = append(players, b)
		}
		until(t, w, "cards", func() bool { return len(players[0].View.Hand())*len(players[1].View.Hand()) > 0 })
		if run == 0 {
			until(t, w, "a few turns", func() bool { return players[0].View.Table.Turns > 4 })
			players[0].Plays, players[1].Plays = false, false
			until(t, w, "the table sleeps", w.Room("table/oak").Asleep)
			w.Step(30)
			before = [2][]cards.Card{slices.Clone(players[0].View.Hand()), slices.Clone(players[1].View.Hand())}
			table = players[0].View.Table
			w.Drain(0)
			continue
		}
		for i, b := range players {
			if hand := b.View.Hand(); !slices.Equal(hand, before[i]) || b.View.Place != i {
				t.Errorf("player %d had %v, and has %v at place %d", i, before[i], hand, b.View.Place)
			}
		}
		if now := players[0].View.Table; now.Top != table.Top || now.Turn != table.Turn || now.Pile != table.Pile || now.Suit != table.Suit {
			t.Errorf("the table was %+v and is %+v", table, now)
		}
		_, other := joinPlayer(t, w, "cid", netlooptest.Link{})
		until(t, w, "the list", func() bool { return len(other.View.Listings) == 1 })
		refused(t, try(t, w, func(then func(error)) { other.Sit(cards.SitDown{Table: "oak"}, then) }), "others play at this table: you may watch")
	}
}

// A player who leaves in the middle of a match is shown as away, keeps the hand, and gets it back
// over another connection, with another device too. A player who comes while the result is shown
// gets the seat of one who has left.
func TestSeatsOutliveClients(t *testing.T) {
	g := game("", 2, time.Hour)
	g.Config().(*cards.Config).Goal = 1
	w := world(t, g)
	_, ann := seat(t, w, "ann", "oak", false, netlooptest.Link{})
	bobClient, bob := seat(t, w, "bob", "oak", false, netlooptest.Link{})
	until(t, w, "cards", func() bool { return len(bob.View.Hand()) > 0 })
	hand := slices.Clone(bob.View.Hand())
	_ = bobClient.Close()
	until(t, w, "he is away", func() bool { return ann.View.Seats[1].Presence.Status == seats.Away })
	w.Advance(10 * time.Minute)
	_, bob = seat(t, w, "bob", "oak", false, netlooptest.Link{})
	until(t, w, "his hand", func() bool { return slices.Equal(bob.View.Hand(), hand) })
	bobClient = w.JoinAs(client.Config{Token: "bob", Room: "table/oak"}, netlooptest.Link{})
	bob = bot.New(bobClient)
	until(t, w, "his hand on another device", func() bool { return bob.View.AtTable && slices.Equal(bob.View.Hand(), hand) })
	if len(ann.View.Seats) != 2 || ann.View.Seats[1].Presence.Status != seats.Here {
		t.Errorf("ann sees %+v", ann.View.Seats)
	}
	ann.Plays = true
	until(t, w, "the end", func() bool { return ann.View.Table.Phase == cards.Over })
	_ = bobClient.Close()
	until(t, w, "he is away", func() bool { return ann.View.Seats[1].Presence.Status == seats.Away })
	_, cid := seat(t, w, "cid", "oak", false, netlooptest.Link{})
	if cid.View.Place >= 0 {
		t.Errorf("cid has a seat of the match that has ended: %+v", cid.View.Seats)
	}
	until(t, w, "the next match", func() bool { return len(cid.View.Hand()) > 0 && cid.View.Place == 1 })
}
