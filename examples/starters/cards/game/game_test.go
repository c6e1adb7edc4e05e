package game

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/netlooptest"
	"github.com/netloop/netloop/seats"
)

// player is a client with its view of a table.
type player struct {
	c     *client.Client
	table Table
	seats []Seat
	place int
	plays bool // its turns, by itself
	asked time.Duration
}

func join(w *netlooptest.World, name, room string) *player {
	p := &player{c: w.JoinAs(client.Config{Token: name, Room: room}, netlooptest.Link{Delay: 20 * time.Millisecond, Loss: 0.02})}
	p.c.On(netloop.Update, "look", func(t *netloop.Tick) {
		p.seats, p.place = make([]Seat, Seats.Len(t)), -1
		for o := range Tables.All(t) {
			p.table = o.State()
		}
		for o := range Seats.All(t) {
			s := o.State()
			if int(s.Place) < len(p.seats) {
				p.seats[s.Place] = s
			}
			if o.Owner() == p.c.ID() {
				p.place = int(s.Place)
			}
		}
		if p.plays && p.table.Playing && p.place == int(p.table.Turn) && t.GameTime() > p.asked+time.Second/5 {
			p.asked = t.GameTime()
			// The table refuses cards that do not follow the suit.
			for _, c := range p.seats[p.place].Hand {
				client.Call(p.c, Play, PlayCard{c}, func(*netloop.Tick, Done, error) {})
			}
		}
	})
	return p
}

// hand returns the hand that a player reads, and requires that all others are hidden.
func (p *player) hand(t *testing.T) []Card {
	t.Helper()
	for i, s := range p.seats {
		if i != p.place && len(s.Hand) > 0 {
			t.Errorf("%s reads the hand of %s", p.seats[p.place].Player, s.Player)
		}
	}
	if p.place < 0 {
		return nil
	}
	return p.seats[p.place].Hand
}

func until(t *testing.T, w *netlooptest.World, what string, done func() bool) {
	t.Helper()
	for range 4000 {
		if done() {
			return
		}
		w.Step(2)
		w.Settle()
	}
	t.Fatal("timed out: ", what)
}

// Three players find a table, and play. One drops and resumes, one leaves and returns, and the
// server crashes: each time the hand is the same. The table plays for an absent player. In the end
// all tricks are taken, and the next match begins.
func TestPlayersMeetAndReturn(t *testing.T) {
	settings := Config{Players: 3, Saves: t.TempDir()}
	w := netlooptest.New(t, &Game{Settings: settings})
	var all []*player
	for _, name := range []string{"ann", "bob", "cid"} {
		p := join(w, name, "")
		until(t, w, "the lobby", func() bool { return p.c.State().Phase == client.Playing })
		client.Call(p.c, Sit, SitDown{}, func(_ *netloop.Tick, _ Done, err error) {
			if err != nil {
				t.Error(err)
			}
		})
		until(t, w, "the table", func() bool { return strings.HasPrefix(p.c.Room(), "table/") })
		all = append(all, p)
	}
	ann, bob, cid := all[0], all[1], all[2]
	room := ann.c.Room()
	until(t, w, "cards", func() bool { return ann.table.Playing && len(cid.hand(t)) == handSize })
	hand := slices.Clone(bob.hand(t))
	away := func(s seats.Status) func() bool {
		return func() bool { return ann.seats[1].Presence.Status == s }
	}

	w.Break(bob.c)
	w.Freeze(bob.c)
	until(t, w, "bob drops", away(seats.Away))
	w.Thaw(bob.c)
	until(t, w, "bob resumes", away(seats.Here))
	if !slices.Equal(bob.hand(t), hand) {
		t.Errorf("he had %v, and has %v", hand, bob.hand(t))
	}
	client.Call(bob.c, Leave, Done{}, func(*netloop.Tick, Done, error) {})
	until(t, w, "bob leaves", away(seats.Away))
	bob = join(w, "bob", room)
	until(t, w, "bob returns", away(seats.Here))
	stranger := join(w, "dee", room)
	until(t, w, "the refusal", func() bool { return stranger.c.Closed() != nil })

	w.Settle() // The match is saved.
	w.Restart(&Game{Settings: settings})
	until(t, w, "the match again", func() bool {
		return ann.c.State().Phase == client.Playing && bob.c.State().Phase == client.Playing && len(ann.seats) == 3
	})
	if !slices.Equal(bob.hand(t), hand) {
		t.Errorf("before the crash bob had %v, and after it %v", hand, bob.hand(t))
	}
	_ = cid.c.Close()
	ann.plays, bob.plays = true, true // The table plays for cid.
	until(t, w, "the last trick", func() bool { return ann.table.Over })
	join(w, "cid", room)
	until(t, w, "the next match", func() bool { return len(ann.hand(t)) == handSize })
}

// Forbidden cards are refused, and change nothing.
func TestRules(t *testing.T) {
	for name, c := range map[string]struct {
		m      Match
		player int
		card   Card
		want   string // the error
	}{
		"another's turn": {Match{Hands: [][]Card{{1}, {2}, {3}}}, 1, 2, "it is not your turn"},
		"another's card": {Match{Hands: [][]Card{{1}, {2}, {3}}}, 0, 2, "you do not have that card"},
		"another suit":   {Match{Hands: [][]Card{{}, {2, 20}, {3}}, Trick: []Card{1}}, 1, 20, "you have a card of the suit"},
		"no such suit":   {Match{Hands: [][]Card{{}, {20}, {3}}, Trick: []Card{1}}, 1, 20, ""},
	} {
		c.m.Players, c.m.Won = make([]string, 3), make([]int, 3)
		held := len(c.m.Hands[c.player])
		text, err := "", c.m.play(c.player, c.card)
		if err != nil {
			text = err.Error()
		}
		if !strings.HasSuffix(text, c.want) || (text == "") != (c.want == "") || (err == nil) != (len(c.m.Hands[c.player]) < held) {
			t.Errorf("%s: %v, want %q, and then %v", name, err, c.want, c.m.Hands)
		}
	}
	m := Match{Players: make([]string, 3), Won: make([]int, 3), Hands: [][]Card{{5}, {1}, {3}}, Trick: []Card{1, 30}, Lead: 1}
	if err := m.play(0, 5); err != nil || m.Lead != 0 || m.Won[0] != 1 || m.turn() != 0 {
		t.Errorf("%v: the trick of %v is won by %d", err, m.Trick, m.Lead)
	}
}
