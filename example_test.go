package netloop_test

import (
	"context"
	"errors"
	"time"

	"github.com/netloop/netloop"
)

type (
	Card   struct{ Value, Age int8 } // replicated
	Say    struct{ Text string }     // both ways
	Dealt  struct{ Card netloop.Ref[Card] }
	Play   struct{ Card netloop.Ref[Card] }
	Bid    struct{ Coins int }
	Answer struct{ Won bool }
	player struct{ Said int }
)

var (
	cardSchema = netloop.NewSchema("cards", 1, 0)
	cards      = netloop.NewClass[Card](cardSchema, "card")
	dealt      = netloop.NewRPC[Dealt](cardSchema, "dealt")
	says       = netloop.NewRPC[Say](cardSchema, "say",
		netloop.Limit(2, 4), // two a second, four at once
		netloop.Validate(func(m Say) error {
			if m.Text == "" {
				return errors.New("empty")
			}
			return nil
		}))
	plays = netloop.NewRPC[Play](cardSchema, "play",
		netloop.OwnerOnly(func(m Play) netloop.Ref[Card] { return m.Card }))
	bids = netloop.NewCall[Bid, Answer](cardSchema, "bid", netloop.Timeout(time.Second))
)

// bank is a stub for a slow service.
func bank(_ context.Context, coins int) (bool, error) { return coins <= 10, nil }

type cardGame struct{}

func (cardGame) Schema() *netloop.Schema { return cardSchema }

func (cardGame) Open(r *netloop.Room) error {
	players := netloop.NewPerClient[player](r)
	r.OnJoin(func(t *netloop.Tick, c *netloop.Client) error {
		card := cards.Spawn(t, Card{Value: int8(1 + t.Rand().IntN(13))}, netloop.OwnedBy(c.ID()))
		// With state: when the client's handler runs, the card has arrived.
		dealt.Send(t, netloop.OwnerOf(card), Dealt{card.Ref()}, netloop.WithState())
		return nil
	})
	says.Handle(r, func(t *netloop.Tick, from *netloop.Client, m Say) error {
		players.Of(from).Said++
		says.Send(t, netloop.Everyone().Except(from.ID()), m)
		return nil
	})
	plays.Handle(r, func(t *netloop.Tick, _ *netloop.Client, m Play) error {
		if card, ok := m.Card.Get(t); ok {
			card.Despawn(t)
		}
		return nil
	})
	bids.HandleLater(r, func(t *netloop.Tick, _ *netloop.Client, b Bid, reply netloop.Reply[Answer]) {
		if b.Coins < 1 {
			reply.Send(t, Answer{}, netloop.Refuse(netloop.CodeGame, "bid a coin at least"))
			return
		}
		netloop.Go(t, func(ctx context.Context) (bool, error) { return bank(ctx, b.Coins) },
			func(t *netloop.Tick, won bool, err error) { reply.Send(t, Answer{won}, err) })
	})
	r.On(netloop.Update, "cards.age", func(t *netloop.Tick) {
		for card := range cards.All(t) {
			card.Edit(t).Age++
		}
	}, netloop.Every(time.Second, netloop.CatchUp(3)))
	return nil
}

// A card game: rules of messages, a message that waits for its object, a delayed answer, and a
// system with a period. Package netlooptest plays it.
func Example() {
	if _, err := netloop.New(netloop.Config{}, cardGame{}); err != nil {
		panic(err)
	}
}
