package netloop_test

import (
	"errors"
	"testing"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/netlooptest"
)

// TestTheExampleOfTheDocsPlays keeps what the example's comments say true.
func TestTheExampleOfTheDocsPlays(t *testing.T) {
	w := netlooptest.New(t, cardGame{})
	a, b := w.Join("", nil, netlooptest.Link{Loss: 0.1}), w.Join("", nil, netlooptest.Link{})
	var mine netloop.Ref[Card]
	client.Handle(a, dealt, func(tick *netloop.Tick, m Dealt) {
		if _, ok := m.Card.Get(tick); !ok {
			t.Error("the message came before the card")
		}
		mine = m.Card
	})
	heard := 0
	client.Handle(b, says, func(*netloop.Tick, Say) { heard++ })
	w.Until(300, func() bool { return !mine.IsZero() && b.State().Phase == client.Playing })

	for range 6 {
		client.Send(a, says, Say{"hello"})
	}
	client.Send(b, plays, Play{mine}) // It is not b's.
	w.Step(30)
	if heard != 4 {
		t.Errorf("heard %d, want the burst of 4", heard)
	}
	there := func() (ok bool) {
		w.Tick(func(tick *netloop.Tick) { _, ok = mine.Get(tick) })
		return ok
	}
	if !there() {
		t.Error("somebody else has played the card")
	}
	client.Send(a, plays, Play{mine})
	won := map[int]bool{} // Two banks may answer in any order.
	var refused *netloop.Refusal
	for _, coins := range []int{5, 20} {
		client.Ask(a, bids, Bid{coins}, func(_ *netloop.Tick, r Answer, err error) {
			if err != nil {
				t.Error(err)
			}
			won[coins] = r.Won
		})
	}
	client.Ask(a, bids, Bid{}, func(_ *netloop.Tick, _ Answer, err error) { _ = errors.As(err, &refused) })
	w.Step(30) // Long enough for a message that was lost.
	w.Settle()
	w.Step(30)
	if there() || len(won) != 2 || !won[5] || won[20] || refused == nil || refused.Code != netloop.CodeGame {
		t.Errorf("card there: %v, bids %v, refused %v", there(), won, refused)
	}
}
