package netloop

import (
	"fmt"
	"reflect"
)

// RoomDefaulter is a [Game] with defaults of its own for its default room, such as suitable rates.
type RoomDefaulter interface {
	// RoomDefaults returns them. Fields that [Config] Room or the flags of package app set take
	// precedence, field by field; zero fields have the defaults of [RoomSpec]. It is called once or
	// twice, before the server opens any resource, and must return the same each time.
	RoomDefaults() RoomSpec
}

// withDefaults fills the zero fields of a spec with the game's RoomDefaults.
func (s RoomSpec) withDefaults(g Game) (RoomSpec, error) {
	d, ok := g.(RoomDefaulter)
	if !ok {
		return s, nil
	}
	defaults := d.RoomDefaults()
	if _, err := defaults.validate(); err != nil {
		return s, fmt.Errorf("the game's RoomDefaults: %w", err)
	}
	to, from := reflect.ValueOf(&s).Elem(), reflect.ValueOf(defaults)
	for i := range to.NumField() {
		if to.Field(i).CanSet() && to.Field(i).IsZero() {
			to.Field(i).Set(from.Field(i))
		}
	}
	return s, nil
}
