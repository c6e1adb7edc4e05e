package room

import (
	"slices"
	"testing"

	"github.com/netloop/netloop/internal/transport"
)

// Repeated data of clients lets a room sleep; each other arrival keeps it awake.
func TestRepeatedArrivalsLetARoomSleep(t *testing.T) {
	repeated := []transport.ArrivalKind{transport.Acks, transport.RecordsApplied, transport.Received, transport.Mispredicted, transport.Inputs}
	for kind := range transport.Mispredicted + 1 {
		var s Sleep
		s.markArrival(kind)
		if s.moved == slices.Contains(repeated, kind) {
			t.Errorf("after an arrival of kind %d the room is kept awake: %v", kind, s.moved)
		}
	}
}
