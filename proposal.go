package netloop

import (
	"fmt"
	"reflect"
)

// Proposer is a [Game] that proposes what its default room is like: rates that suit it, above all.
type Proposer interface {
	// Spec returns the proposal. What [Config] Room says counts before it, field by field, and so
	// do the flags of package app; the rest is as [RoomSpec] says. It is asked once or twice,
	// before anything is opened, and answers the same.
	Spec() RoomSpec
}

// proposed fills in what a specification leaves open as the game proposes it.
func (s RoomSpec) proposed(g Game) (RoomSpec, error) {
	p, ok := g.(Proposer)
	if !ok {
		return s, nil
	}
	proposal := p.Spec()
	if _, err := proposal.validate(); err != nil {
		return s, fmt.Errorf("the game's Spec: %w", err)
	}
	to, from := reflect.ValueOf(&s).Elem(), reflect.ValueOf(proposal)
	for i := range to.NumField() {
		if to.Field(i).CanSet() && to.Field(i).IsZero() {
			to.Field(i).Set(from.Field(i))
		}
	}
	return s, nil
}
