package cards

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
)

// Card is a card of a deck of 52: 13 × suit + rank, rank 0 being the ace.
type Card uint8

// Suit is a suit of cards.
type Suit uint8

// The suits.
const (
	Clubs Suit = iota
	Diamonds
	Hearts
	Spades
	numSuits
)

const (
	deckSize = 52
	ranks    = 13
	eight    = 7 // the rank of eights
	handSize = 5 // cards that each player begins with
	// MaxPlayers is the most players of a table.
	MaxPlayers = 4
)

// Suit returns the suit of the card.
func (c Card) Suit() Suit { return Suit(c / ranks) }

// Rank returns the rank of the card, from 0 for the ace to 12 for the king.
func (c Card) Rank() uint8 { return uint8(c % ranks) }

// Eight reports whether it is an eight, which fits on every card.
func (c Card) Eight() bool { return c.Rank() == eight }

// points returns the points of the card for the winner, if another player still holds it at the end
// of a round.
func (c Card) points() int {
	switch r := c.Rank(); {
	case r == eight:
		return 50
	case r >= 10:
		return 10
	default:
		return int(r) + 1
	}
}

// String names the card as people do: 8♠.
func (c Card) String() string {
	if c >= deckSize {
		return "?"
	}
	return []string{"A", "2", "3", "4", "5", "6", "7", "8", "9", "10", "J", "Q", "K"}[c.Rank()] + []string{"♣", "♦", "♥", "♠"}[c.Suit()]
}

// Match is a match of Crazy Eights: rounds until a player has enough points, usually a hundred. It
// is plain data, so that a table can be stored as JSON.
type Match struct {
	Players  []string
	Goal     int // points with which it is won
	Scores   []int
	Hands    [][]Card
	Pile     []Card // the last is on top
	Discards []Card // likewise
	Suit     Suit   // the suit to follow
	Turn     int
	Round    int
	Phase    Phase
	Winner   int
	Turns    int // made in this round
	Mover    int // the player of the last turn
	Drew     bool
}

// The errors of a move.
var (
	errNotYours = errors.New("it is not your turn")
	errNotHeld  = errors.New("you do not have that card")
	errNoFit    = errors.New("it has neither the suit nor the rank")
	errNoSuit   = errors.New("an eight names one of four suits")
)

// newMatch deals the first round.
func newMatch(players []string, goal int, rng *rand.Rand) *Match {
	m := &Match{Players: slices.Clone(players), Goal: goal, Scores: make([]int, len(players))}
	m.deal(rng)
	return m
}

// deal begins a round. The first card is no eight.
func (m *Match) deal(rng *rand.Rand) {
	deck := make([]Card, deckSize)
	for i := range deck {
		deck[i] = Card(i)
	}
	rng.Shuffle(deckSize, func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
	m.Hands = make([][]Card, len(m.Players))
	for p := range m.Hands {
		m.Hands[p], deck = slices.Clone(deck[:handSize]), deck[handSize:]
		slices.Sort(m.Hands[p])
	}
	// Such a card exists: of at least 32 cards only four are eights.
	first := slices.IndexFunc(deck, func(c Card) bool { return c.Rank() != eight })
	m.Discards = []Card{deck[first]}
	m.Pile = slices.Delete(deck, first, first+1)
	m.Suit = m.top().Suit()
	m.Turn = m.Round % len(m.Players)
	m.Round++
	m.Turns = 0
	m.Phase = Playing
}

// top returns the open card.
func (m *Match) top() Card { return m.Discards[len(m.Discards)-1] }

// Fits reports whether a card may be played on top of another, with a suit to follow.
func (c Card) Fits(top Card, suit Suit) bool {
	return c.Eight() || c.Suit() == suit || c.Rank() == top.Rank()
}

// play plays a card of a player's hand. An eight changes the suit.
func (m *Match) play(player int, c Card, suit Suit) error {
	at := -1
	if m.Phase == Playing && player == m.Turn {
		at = slices.Index(m.Hands[player], c)
	}
	switch {
	case m.Phase != Playing || player != m.Turn:
		return errNotYours
	case at < 0:
		return errNotHeld
	case !c.Fits(m.top(), m.Suit):
		return errNoFit
	case c.Rank() == eight && suit >= numSuits:
		return errNoSuit
	}
	m.Turns, m.Mover, m.Drew = m.Turns+1, player, false
	m.Hands[player] = slices.Delete(m.Hands[player], at, at+1)
	m.Discards = append(m.Discards, c)
	if m.Suit = c.Suit(); c.Rank() == eight {
		m.Suit = suit
	}
	if len(m.Hands[player]) == 0 {
		m.won(player)
		return nil
	}
	m.pass()
	return nil
}

// draw gives a player a card, if there is one, and passes the turn.
func (m *Match) draw(player int, rng *rand.Rand) error {
	if m.Phase != Playing || player != m.Turn {
		return errNotYours
	}
	m.Turns, m.Mover, m.Drew = m.Turns+1, player, true
	if len(m.Pile) == 0 { // All discards but the one on top are shuffled.
		last := len(m.Discards) - 1
		m.Pile, m.Discards = m.Discards[:last], []Card{m.Discards[last]}
		rng.Shuffle(len(m.Pile), func(i, j int) { m.Pile[i], m.Pile[j] = m.Pile[j], m.Pile[i] })
	}
	if n := len(m.Pile); n > 0 {
		m.Hands[player] = append(m.Hands[player], m.Pile[n-1])
		slices.Sort(m.Hands[player])
		m.Pile = m.Pile[:n-1]
	}
	m.pass()
	return nil
}

func (m *Match) pass() { m.Turn = (m.Turn + 1) % len(m.Players) }

// won ends a round: the winner scores the cards in the other hands.
func (m *Match) won(player int) {
	for _, hand := range m.Hands {
		for _, c := range hand {
			m.Scores[player] += c.points()
		}
	}
	m.Winner, m.Phase = player, Pausing
	if m.Scores[player] >= m.Goal {
		m.Phase = Over
	}
}

// check reports an invalid match: stored by another program, or damaged.
func (m *Match) check() error {
	n := len(m.Players)
	if n < 2 || n > MaxPlayers || m.Goal < 1 || len(m.Hands) != n || len(m.Scores) != n || m.Turn < 0 || m.Turn >= n ||
		m.Winner < 0 || m.Winner >= n || m.Suit >= numSuits || len(m.Discards) == 0 || m.Phase > Over {
		return fmt.Errorf("a match of %d players with %d hands", n, len(m.Hands))
	}
	all := slices.Concat(append(slices.Clone(m.Hands), m.Pile, m.Discards)...)
	slices.Sort(all)
	for i, c := range all {
		if int(c) != i {
			return fmt.Errorf("card %d is there twice, or not at all", i)
		}
	}
	if len(all) != deckSize {
		return fmt.Errorf("a deck of %d", len(all))
	}
	return nil
}
