package netem

import (
	"strings"
	"time"
)

// Direction is one of the two ways through a network.
type Direction int

const (
	Up   Direction = iota // from a client to the server
	Down                  // from the server to a client

	directions = 2
)

// String returns the word for a direction in the text of a Spec and in metrics.
func (d Direction) String() string { return [...]string{"up", "down"}[d] }

// Spec describes the effects of a network on datagrams. The zero value has none.
type Spec struct {
	Ways   [directions]Way // by Direction
	Rebind time.Duration   // a client's address changes at this interval; 0: never
}

// Way is one direction of a Spec.
type Way struct {
	Link
	Corrupt float64 // the share of datagrams, from 0 to 1, in which one bit arrives wrong
	Hole    Hole
}

// Hole is a time during which all datagrams are lost, counted from a flow's first datagram.
type Hole struct{ At, For time.Duration }

// has reports whether a time is within the hole.
func (h Hole) has(t time.Duration) bool { return t >= h.At && t-h.At < h.For }

// String returns the Spec in the form that Parse reads: Parse(s.String()) is s for every s that
// Parse has returned. It is empty for the zero value.
func (s Spec) String() string {
	var items []string
	add := func(name, text string) {
		if text != "" {
			items = append(items, name+"="+text)
		}
	}
	up, down := &s.Ways[Up], &s.Ways[Down]
	roundTrip := up.Delay+down.Delay > 0 && up.Delay == (up.Delay+down.Delay)/2
	if roundTrip {
		add("rtt", shortDuration(up.Delay+down.Delay))
	}
	for i := range keys {
		k := &keys[i]
		switch u, d := k.text(up), k.text(down); {
		case k.name == "delay" && roundTrip:
		case u == d:
			add(k.name, u)
		default:
			add("up."+k.name, u)
			add("down."+k.name, d)
		}
	}
	add("rebind", shortDuration(s.Rebind))
	return strings.Join(items, ",")
}

// MarshalText implements encoding.TextMarshaler.
func (s Spec) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Spec) UnmarshalText(text []byte) error {
	parsed, err := Parse(string(text))
	if err == nil {
		*s = parsed
	}
	return err
}
