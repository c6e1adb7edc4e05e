package netloop

import (
	"fmt"
	"reflect"
)

// Proposer is a [Game] that proposes the spec of its default room, such as suitable rates.
type Proposer interface {
	// Spec returns the proposal. Fields that [Config] Room or the flags of package app set take
	// precedence, field by field; zero fields have the defaults of [RoomSpec]. It is called once or
	// twice, before the server opens any resource, and must return the same each time.
	Spec() RoomSpec
}

// proposed fills the zero fields of a spec with the game's proposal.
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
