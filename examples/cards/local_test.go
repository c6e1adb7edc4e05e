package cards_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/examples/cards"
	"github.com/netloop/netloop/examples/cards/bot"
)

// Four players in the process of the server, without a port and without a network, move from the
// lobby to a table, play a whole match, see its scores, and are back in the lobby.
func TestAWholeMatchIsPlayedWithoutANetwork(t *testing.T) {
	g := cards.New(nil)
	cfg := g.Config().(*cards.Config)
	cfg.Players, cfg.Goal, cfg.Rate, cfg.Pause = 4, 40, 1000, 20*time.Millisecond
	s, err := netloop.New(netloop.Config{Offline: true, Room: netloop.RoomSpec{Rate: netloop.Hz(200)}}, g)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	var all []*bot.Bot
	var clients []*client.Client
	for _, name := range []string{"ann", "bob", "cid", "dee"} {
		c, err := client.Dial(ctx, "", client.Config{Schema: cards.Schema, Local: s, Token: name})
		if err != nil {
			t.Fatal(err)
		}
		all, clients = append(all, bot.New(c)), append(clients, c)
	}
	frame := time.NewTicker(time.Millisecond)
	defer frame.Stop()
	step := func(what string, done func(*bot.Bot) bool) {
		t.Helper()
		for begun := time.Now(); slices.ContainsFunc(all, func(b *bot.Bot) bool { return !done(b) }); {
			if time.Since(begun) > time.Minute {
				t.Fatalf("timed out: %s", what)
			}
			for _, c := range clients {
				c.Step(time.Millisecond)
			}
			<-frame.C
		}
	}
	inLobby := func(b *bot.Bot) bool { return !b.Busy() && !b.View.AtTable }
	step("the lobby", inLobby)
	for _, b := range all {
		b.Sit(cards.SitDown{}, func(err error) {
			if err != nil {
				t.Error(err)
			}
		})
	}
	var scores [4][]cards.Seat
	step("the end of the match", func(b *bot.Bot) bool {
		i := slices.Index(all, b)
		if b.View.AtTable && b.View.Table.Phase == cards.Over && scores[i] == nil && !b.Busy() {
			scores[i] = b.View.Clone().Seats
			b.Leave(func(err error) {
				if err != nil {
					t.Error(err)
				}
			})
		}
		return scores[i] != nil
	})
	step("the lobby again", inLobby)
	won := 0
	for i := range all {
		for p, seat := range scores[i] {
			if seat.Score != scores[0][p].Score || seat.Player != scores[0][p].Player {
				t.Errorf("player %d has the scores %+v, and the first %+v", i, scores[i], scores[0])
			}
			if i == 0 && seat.Score >= 40 {
				won++
			}
		}
	}
	if won != 1 || len(scores[0]) != 4 {
		t.Errorf("%d have won: %+v", won, scores[0])
	}
	for _, c := range clients {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
