package game

import (
	"math/rand/v2"
	"slices"

	"github.com/netloop/netloop"
)

// Card is a card of a deck of 52: 13 × suit + rank, with the ace as the highest.
type Card uint8

// handSize is the number of cards that each player gets, and the number of tricks.
const handSize = 5

// Match is a match: the players play a card each to a trick, and follow the suit of its first card
// if they can. The highest card of that suit takes the trick. It is plain data, so that it can be
// stored.
type Match struct {
	Players []string
	Hands   [][]Card
	Trick   []Card // open cards; a full trick remains until the next card
	Lead    int    // plays the first card of a trick: the winner of the last one
	Won     []int  // tricks
}

// deal begins a match.
func deal(players []string, rng *rand.Rand) *Match {
	m := &Match{Players: players, Won: make([]int, len(players))}
	deck := rng.Perm(52)
	for i := range players {
		var hand []Card
		for _, c := range deck[i*handSize : (i+1)*handSize] {
			hand = append(hand, Card(c))
		}
		slices.Sort(hand)
		m.Hands = append(m.Hands, hand)
	}
	return m
}

// turn returns the place of the next player.
func (m *Match) turn() int { return (m.Lead + len(m.Trick)) % len(m.Players) }

// over reports whether all cards are played.
func (m *Match) over() bool { return len(slices.Concat(m.Hands...)) == 0 }

// Fits reports whether a card of a hand may be played to a trick.
func (c Card) Fits(hand, trick []Card) bool {
	follows := func(held Card) bool { return len(trick) == 0 || held/13 == trick[0]/13 }
	return follows(c) || !slices.ContainsFunc(hand, follows)
}

// play plays a card. The text of an error is for the player.
func (m *Match) play(player int, c Card) error {
	trick := m.Trick
	if len(trick) == len(m.Players) {
		trick = nil
	}
	hand := m.Hands[player]
	at := slices.Index(hand, c)
	switch {
	case m.turn() != player:
		return netloop.Refuse(netloop.CodeGame, "it is not your turn")
	case at < 0:
		return netloop.Refuse(netloop.CodeGame, "you do not have that card")
	case !c.Fits(hand, trick):
		return netloop.Refuse(netloop.CodeGame, "you have a card of the suit")
	}
	m.Hands[player] = slices.Delete(hand, at, at+1)
	m.Trick = append(slices.Clone(trick), c)
	if len(m.Trick) == len(m.Players) {
		m.Lead = (m.Lead + m.best()) % len(m.Players)
		m.Won[m.Lead]++
	}
	return nil
}

// best returns the place of the highest card of a full trick.
func (m *Match) best() (best int) {
	for i, c := range m.Trick {
		if high := m.Trick[best]; c/13 == high/13 && c > high {
			best = i
		}
	}
	return best
}
