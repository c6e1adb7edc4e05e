package cards_test

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/examples/cards"
	"github.com/netloop/netloop/examples/cards/bot"
	"github.com/netloop/netloop/netlooptest"
)

// game makes the game for so many players at a table.
func game(t *testing.T, file string, players int, turn time.Duration) *cards.Game {
	t.Helper()
	g := cards.New()
	cfg := g.Config().(*cards.Config)
	cfg.Database, cfg.Players, cfg.Turn = file, players, turn
	return g
}

// until steps until something has come to pass. Work is done meanwhile.
func until(t *testing.T, w *netlooptest.World, what string, done func() bool) {
	t.Helper()
	for range 20_000 {
		if done() {
			return
		}
		w.Step(6)
		w.Settle()
	}
	t.Fatalf("it never came to pass: %s", what)
}

// ask asks the lobby and waits for the answer.
func ask[Q, R any](t *testing.T, w *netlooptest.World, c *client.Client, k *netloop.Call[Q, R], q Q) (answer R, failed error) {
	t.Helper()
	answered := false
	client.Ask(c, k, q, func(_ *netloop.Tick, r R, err error) { answer, failed, answered = r, err, true })
	until(t, w, "an answer", func() bool { return answered })
	return answer, failed
}

// seat leads a player through the lobby to a table.
func seat(t *testing.T, w *netlooptest.World, name, table string, plays bool, l netlooptest.Link) (*client.Client, *bot.Player, string) {
	t.Helper()
	lobby := w.JoinAs(client.Config{Token: name}, l)
	until(t, w, "the lobby", func() bool { return lobby.State().Phase == client.Playing })
	at, err := ask(t, w, lobby, cards.Sit, cards.SitDown{Table: table})
	if err != nil {
		t.Fatal(err)
	}
	if err := lobby.Close(); err != nil {
		t.Error(err)
	}
	c := w.JoinAs(client.Config{Token: name, Room: at.Room, Ticket: at.Ticket}, l)
	p := bot.New(c)
	p.Plays = plays
	until(t, w, "the table", func() bool { return c.State().Phase == client.Playing })
	return c, p, at.Room
}

// Three players go through the lobby to one table and play a match over bad links. Each reads its
// own hand alone, and nobody the pile; one loses the connection, is away, and comes back to its
// cards. In the end one has won, and the lobby knows.
func TestAMatchIsPlayed(t *testing.T) {
	w := netlooptest.New(t, game(t, "", 3, 5*time.Second))
	link := netlooptest.Link{Delay: 20 * time.Millisecond, Loss: 0.02}
	var clients []*client.Client
	var players []*bot.Player
	rooms := map[string]bool{}
	names := []string{"ann", "bob", "cid"}
	for _, name := range names {
		c, p, room := seat(t, w, name, "", true, link)
		clients, players, rooms[room] = append(clients, c), append(players, p), true
	}
	if len(rooms) != 1 {
		t.Fatalf("they sit at the tables %v", rooms)
	}
	until(t, w, "cards", func() bool {
		return !slices.ContainsFunc(players, func(p *bot.Player) bool { h, _ := p.Hand(); return len(h) == 0 })
	})
	for i, p := range players {
		for _, s := range p.Seats {
			if (len(s.Hand) > 0) != (s.Player == names[i]) || s.Cards == 0 {
				t.Errorf("%s sees %v of the %d cards of %s", names[i], s.Hand, s.Cards, s.Player)
			}
		}
	}
	w.Break(clients[1])
	w.Freeze(clients[1])
	until(t, w, "somebody is away", func() bool { return players[0].Seats[1].Away })
	w.Thaw(clients[1])
	until(t, w, "it is back", func() bool { h, _ := players[1].Hand(); return !players[0].Seats[1].Away && len(h) > 0 })
	until(t, w, "an end", func() bool {
		return players[0].Table.Phase == cards.Over || players[0].Seats[0].Score+players[0].Seats[1].Score+players[0].Seats[2].Score >= 60
	})
	for _, p := range players {
		p.Plays = false
	}
	turn := players[0].Table.Turn
	until(t, w, "the time of a turn is over", func() bool { return players[0].Table.Turn != turn || players[0].Table.Phase != cards.Playing })
	for _, p := range players {
		p.Plays = true
	}
	var won cards.Won
	lobby := w.JoinAs(client.Config{Token: "ann"}, link)
	until(t, w, "the lobby", func() bool { return lobby.State().Phase == client.Playing })
	until(t, w, "the end of the match", func() bool {
		won, _ = ask(t, w, lobby, cards.Record, cards.RecordQuery{})
		return won.Played > 0
	})
	if won.Won > won.Played {
		t.Errorf("ann has won %d of %d", won.Won, won.Played)
	}
}

// A table that nobody plays at sleeps, and one that was left in the middle of a match goes on in
// another server with the same database: the same hands, the same turn, and for its players alone.
func TestATableGoesOnAfterARestart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cards.db")
	type hands [2][]cards.Card
	var before hands
	var table cards.Table
	for run := range 2 {
		w := netlooptest.New(t, game(t, file, 2, time.Hour))
		var players []*bot.Player
		for _, name := range []string{"ann", "bob"} {
			_, p, _ := seat(t, w, name, "oak", run == 0, netlooptest.Link{})
			players = append(players, p)
		}
		until(t, w, "cards", func() bool { a, _ := players[0].Hand(); b, _ := players[1].Hand(); return len(a)*len(b) > 0 })
		if run == 0 {
			until(t, w, "a few turns", func() bool { return players[0].Table.Pile < 40 || players[0].Table.Round > 1 })
			players[0].Plays, players[1].Plays = false, false
			until(t, w, "the table sleeps", w.Room("table/oak").Asleep)
			w.Step(30)
			before[0], _ = players[0].Hand()
			before[1], _ = players[1].Hand()
			table = players[0].Table
			w.Drain(0)
			continue
		}
		for i, p := range players {
			if hand, place := p.Hand(); !slices.Equal(hand, before[i]) || place != i {
				t.Errorf("player %d had %v, and has %v at place %d", i, before[i], hand, place)
			}
		}
		if now := players[0].Table; now.Top != table.Top || now.Turn != table.Turn || now.Pile != table.Pile || now.Suit != table.Suit {
			t.Errorf("the table was %+v and is %+v", table, now)
		}
	}
}
