package room_test

import (
	"reflect"
	"testing"

	"github.com/netloop/netloop/internal/room"
	"github.com/netloop/netloop/internal/rpcqueue"
	"github.com/netloop/netloop/internal/transport"
)

// TestNothingThatEntersOrLeavesIsForgotten fails if a type at the border of a room gets a field
// that record.go, replayer.go and outgoing.go do not handle.
func TestNothingThatEntersOrLeavesIsForgotten(t *testing.T) {
	for _, c := range []struct {
		v      any
		fields string
		where  string
	}{
		{transport.Message{}, "Method Stage Call Reply Code Text Reliable Payload Tick ", "outgoing.message"},
		// T, Epoch, Overload, TimeScale and Status reach clients only. Size and Number affect only
		// the messages that a client is told to forget, and Held is subtracted later.
		{transport.Arrival{}, "Kind Session At Message Size Number Method Decoded Acks State T Epoch Overload TimeScale Closed Value Status Held ", "recorder.arrived and replayer.arrival"},
		// Posts have no sender, and are no calls; the queue itself fills in its own sender. At is
		// for the inspector's waits alone.
		{rpcqueue.Item{}, "Method From Stage NoRoom Held Holds Call At Msg sender ", "recorder.posts and replayer.posts"},
		{room.Result{}, "work value err then of ", "recorder.result"},
	} {
		have := ""
		for i := range reflect.TypeOf(c.v).NumField() {
			have += reflect.TypeOf(c.v).Field(i).Name + " "
		}
		if have != c.fields {
			t.Errorf("%T has the fields %s: teach %s the new ones, and then this test", c.v, have, c.where)
		}
	}
}
