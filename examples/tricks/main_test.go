package main

import (
	"os"
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
// server restarts: each time the hand is the same. The table plays for one who is away. In the end
// all tricks are taken, and the next match begins.
func TestAMatch(t *testing.T) {
	g := new(Game)
	g.cfg.Folder = t.TempDir()
	w := netlooptest.New(t, g)
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
	ann, bob := all[0], all[1]
	room := ann.c.Room()
	until(t, w, "cards", func() bool { return ann.table.Playing && len(all[2].hand(t)) == handSize })
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
	all[1] = join(w, "bob", room)
	until(t, w, "bob returns", away(seats.Here))
	stranger := join(w, "dee", room)
	until(t, w, "the refusal", func() bool { return stranger.c.Closed() != nil })

	w.Drain(time.Second)
	next := new(Game)
	next.cfg.Folder = g.cfg.Folder
	w = netlooptest.New(t, next)
	for i, name := range []string{"ann", "bob", "cid"} {
		all[i] = join(w, name, room)
	}
	ann, bob = all[0], all[1]
	until(t, w, "the same hand", func() bool { return len(ann.seats) == players && slices.Equal(bob.hand(t), hand) })
	_ = all[2].c.Close()
	ann.plays, bob.plays = true, true // The table plays for cid.
	until(t, w, "the last trick", func() bool {
		return len(ann.seats) == players && ann.seats[0].Won+ann.seats[1].Won+ann.seats[2].Won == handSize
	})
	join(w, "cid", room)
	until(t, w, "the next match", func() bool { return len(ann.hand(t)) == handSize })
}

// A card that the rules forbid is refused, and changes nothing.
func TestRules(t *testing.T) {
	for name, c := range map[string]struct {
		m      Match
		player int
		card   Card
		want   string // the error, or the winner and the turn
	}{
		"another's turn":  {Match{Hands: [][]Card{{1}, {2}, {3}}}, 1, 2, "it is not your turn"},
		"another's card":  {Match{Hands: [][]Card{{1}, {2}, {3}}}, 0, 2, "you do not have that card"},
		"another suit":    {Match{Hands: [][]Card{{}, {2, 20}, {3}}, Trick: []Card{1}}, 1, 20, "you have a card of the suit"},
		"no such suit":    {Match{Hands: [][]Card{{}, {20}, {3}}, Trick: []Card{1}}, 1, 20, ""},
		"the highest one": {Match{Hands: [][]Card{{}, {}, {3}}, Trick: []Card{1, 2}}, 2, 3, ""},
	} {
		c.m.Players, c.m.Won = make([]string, 3), make([]int, 3)
		err := c.m.play(c.player, c.card)
		if text := ""; err != nil || c.want != "" {
			if err != nil {
				text = err.Error()
			}
			if !strings.HasSuffix(text, c.want) || c.want == "" {
				t.Errorf("%s: %v, want %q", name, err, c.want)
			}
		}
		if name == "the highest one" && (c.m.Lead != 2 || c.m.Won[2] != 1 || c.m.turn() != 2) {
			t.Errorf("the trick of %v is won by %d", c.m.Trick, c.m.Lead)
		}
	}
	m := Match{Players: make([]string, 3), Trick: []Card{1, 30, 5}, Lead: 1}
	if m.best() != 2 {
		t.Errorf("the highest of %v is %d", m.Trick, m.best())
	}
}

// The guide shows this game, and says how many lines it has.
func TestGuideShowsThisGame(t *testing.T) {
	guide, err := os.ReadFile("../../docs/GUIDE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(guide), "\n## 6. Around a match\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var game string
	for _, file := range []string{"main.go", "table.go", "rules.go"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		game += string(text)
	}
	listings := strings.Split(section, "```go\n")[1:]
	for _, l := range listings {
		l, _, _ = strings.Cut(l, "```")
		if !strings.Contains(game, l) {
			t.Errorf("docs/GUIDE.md shows other code than examples/tricks: copy it there:\n%s", l)
		}
	}
	if lines := strings.Count(game, "\n"); lines > 400 || len(listings) < 5 {
		t.Errorf("the game has %d lines, and the guide says less than 400; it shows %d parts", lines, len(listings))
	}
}
