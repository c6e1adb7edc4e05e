package cards

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

// For any moves of players, the deck is complete, a refused move has no effect, an accepted move
// follows the rules, and in the end one player has a hundred points. A stored match continues
// unchanged.
func TestAMatchFollowsTheRules(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		m := newMatch([]string{"ann", "bob", "cid", "dee"}[:2+rng.IntN(3)], 100, rng)
		for moves := 0; m.Phase != Over; moves++ {
			if err := m.check(); err != nil || moves > 20_000 {
				t.Fatalf("seed %d: after %d moves: %v", seed, moves, err)
			}
			if m.Phase == Pausing {
				m.deal(rng)
				continue
			}
			before := copied(t, m)
			player, c, suit := rng.IntN(len(m.Players)), Card(rng.IntN(deckSize)), Suit(rng.IntN(5))
			if rng.IntN(2) == 0 && len(m.Hands[m.Turn]) > 0 {
				player, c = m.Turn, m.Hands[m.Turn][rng.IntN(len(m.Hands[m.Turn]))]
				if i := slices.IndexFunc(m.Hands[m.Turn], func(c Card) bool { return c.Fits(m.top(), m.Suit) }); i >= 0 {
					c = m.Hands[m.Turn][i]
				}
			}
			legal := player == before.Turn && slices.Contains(before.Hands[player], c) &&
				(c.Rank() == eight && suit < numSuits || c.Rank() != eight && (c.Suit() == before.Suit || c.Rank() == before.top().Rank()))
			switch err := m.play(player, c, suit); {
			case (err == nil) != legal:
				t.Fatalf("%v on %v: %v", c, before.top(), err)
			case err != nil && !reflect.DeepEqual(m, before):
				t.Fatalf("a refused %v changes the match", c)
			case err != nil && rng.IntN(8) == 0:
				if (m.draw(player, rng) == nil) != (player == before.Turn) {
					t.Fatal("another player draws")
				}
			}
		}
		if m.Scores[m.Winner] < 100 {
			t.Errorf("seed %d: the winner has %d points", seed, m.Scores[m.Winner])
		}
	}
}

func copied(t *testing.T, m *Match) *Match {
	t.Helper()
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	c := new(Match)
	if err := json.Unmarshal(b, c); err != nil {
		t.Fatal(err)
	}
	return c
}

// An invalid stored match is refused.
func TestADamagedMatchIsRefused(t *testing.T) {
	whole := newMatch([]string{"ann", "bob"}, 100, rand.New(rand.NewPCG(1, 1)))
	if err := whole.check(); err != nil {
		t.Fatal(err)
	}
	for name, damage := range map[string]func(*Match){
		"a card twice":       func(m *Match) { m.Hands[0][0] = m.Hands[1][0] },
		"a card too few":     func(m *Match) { m.Pile = m.Pile[1:] },
		"a player too many":  func(m *Match) { m.Players = append(m.Players, "cid") },
		"a turn of nobody":   func(m *Match) { m.Turn = 2 },
		"no discards":        func(m *Match) { m.Pile, m.Discards = append(m.Pile, m.Discards...), nil },
		"a suit that is not": func(m *Match) { m.Suit = numSuits },
		"a winner of nobody": func(m *Match) { m.Winner = -1 },
		"a phase that isn't": func(m *Match) { m.Phase = Over + 1 },
	} {
		m := copied(t, whole)
		if damage(m); m.check() == nil {
			t.Errorf("%s: it was accepted", name)
		}
	}
}
