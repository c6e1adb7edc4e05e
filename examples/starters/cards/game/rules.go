package game

import (
	"errors"
	"math/rand/v2"
	"slices"
)

// Card is a card: 13 for each suit, from the ace to the king.
type Card uint8

// Suit is 0 to 3.
type Suit uint8

// Suit returns the card's suit.
func (c Card) Suit() Suit { return Suit(c / 13) }

// Eight reports whether the card fits on every other.
func (c Card) Eight() bool { return c%13 == 7 }

// Fits reports whether the card may be played on another, with a suit to follow.
func (c Card) Fits(top Card, suit Suit) bool {
	return c.Eight() || c.Suit() == suit || c%13 == top%13
}

// Match is a match. It is plain data, so that it can be saved.
type Match struct {
	Players  []string
	Hands    [][]Card
	Pile     []Card // the last one is on top
	Discards []Card // likewise
	Suit     Suit   // to follow
	Turn     int
	Over     bool // the player whose turn it is has won
}

// deal begins a match.
func deal(players []string, rng *rand.Rand) *Match {
	m := &Match{Players: slices.Clone(players), Hands: make([][]Card, len(players))}
	for _, c := range rng.Perm(52) {
		m.Pile = append(m.Pile, Card(c))
	}
	for p := range m.Hands {
		for range 5 {
			m.take(p)
		}
	}
	first := slices.IndexFunc(m.Pile, func(c Card) bool { return !c.Eight() })
	m.Discards = []Card{m.Pile[first]}
	m.Pile = slices.Delete(m.Pile, first, first+1)
	m.Suit = m.top().Suit()
	return m
}

func (m *Match) top() Card { return m.Discards[len(m.Discards)-1] }

// take puts the top card of the pile into a hand.
func (m *Match) take(p int) {
	n := len(m.Pile) - 1
	m.Hands[p] = append(m.Hands[p], m.Pile[n])
	slices.Sort(m.Hands[p])
	m.Pile = m.Pile[:n]
}

// move is a player's turn. Its errors are for the player.
func (m *Match) move(p int, do Move, rng *rand.Rand) error {
	if p != m.Turn || m.Over {
		return errors.New("it is not your turn")
	}
	if do.Draw {
		if len(m.Pile) == 0 { // All discards but the top one are the new pile.
			n := len(m.Discards) - 1
			m.Pile, m.Discards = m.Discards[:n:n], m.Discards[n:]
			rng.Shuffle(n, func(i, j int) { m.Pile[i], m.Pile[j] = m.Pile[j], m.Pile[i] })
		}
		if len(m.Pile) > 0 {
			m.take(p)
		}
		m.Turn = (p + 1) % len(m.Players)
		return nil
	}
	at := slices.Index(m.Hands[p], do.Card)
	switch {
	case at < 0:
		return errors.New("you do not have that card")
	case !do.Card.Fits(m.top(), m.Suit):
		return errors.New("it has neither the suit nor the rank")
	case do.Suit > 3:
		return errors.New("there are four suits")
	}
	m.Hands[p] = slices.Delete(m.Hands[p], at, at+1)
	m.Discards = append(m.Discards, do.Card)
	if m.Suit = do.Card.Suit(); do.Card.Eight() {
		m.Suit = do.Suit
	}
	if m.Over = len(m.Hands[p]) == 0; !m.Over {
		m.Turn = (p + 1) % len(m.Players)
	}
	return nil
}
