package room_test

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/netloop/netloop/internal/room"
	"github.com/netloop/netloop/internal/transport"
)

// Each difference in the sent data changes the digest: each field of messages, input feedback and
// the time scale, and the client and contents of packets, records and closes.
func TestEachDifferenceInSentDataChangesTheDigest(t *testing.T) {
	sums := map[uint64]string{}
	add := func(what string, leave func(*room.Outgoing)) {
		t.Helper()
		o := new(room.Outgoing)
		leave(o)
		sum := o.Take()
		if other, taken := sums[sum]; taken {
			t.Errorf("%s sums up to what %s does", what, other)
		}
		sums[sum] = what
		if o.Take() != 0 {
			t.Errorf("%s: the next sum does not begin anew", what)
		}
		o.Stop()
		if leave(o); o.Take() != 0 {
			t.Errorf("%s is summed up although nobody takes the sum any more", what)
		}
	}
	add("nothing", func(*room.Outgoing) {})
	for id := range uint64(2) {
		add(fmt.Sprint("a message to ", id), func(o *room.Outgoing) { o.Message(id, transport.Message{}) })
		add(fmt.Sprint("a packet to ", id), func(o *room.Outgoing) { o.Packets(id, [][]byte{nil}) })
		add(fmt.Sprint("a record to ", id), func(o *room.Outgoing) { o.Record(id, nil) })
		add(fmt.Sprint("what is told of inputs of ", id), func(o *room.Outgoing) { o.InputStatus(id, transport.InputStatus{}) })
		add(fmt.Sprint("an end of ", id), func(o *room.Outgoing) { o.Closed(id, &transport.Closed{}) })
	}
	add("two packets", func(o *room.Outgoing) { o.Packets(1, [][]byte{nil, nil}) })
	add("another packet", func(o *room.Outgoing) { o.Packets(1, [][]byte{{1}}) })
	add("another record", func(o *room.Outgoing) { o.Record(1, []byte{1}) })
	add("another code", func(o *room.Outgoing) { o.Closed(1, &transport.Closed{Code: 1}) })
	add("another text", func(o *room.Outgoing) { o.Closed(1, &transport.Closed{Text: "x"}) })
	add("a time scale", func(o *room.Outgoing) { o.TimeScale(transport.TimeScale{}) })
	for i := range reflect.TypeFor[transport.Message]().NumField() {
		add(reflect.TypeFor[transport.Message]().Field(i).Name, func(o *room.Outgoing) { o.Message(1, changed[transport.Message](i)) })
	}
	for i := range reflect.TypeFor[transport.InputStatus]().NumField() {
		add(reflect.TypeFor[transport.InputStatus]().Field(i).Name, func(o *room.Outgoing) { o.InputStatus(1, changed[transport.InputStatus](i)) })
	}
	for i := range reflect.TypeFor[transport.TimeScale]().NumField() {
		add(reflect.TypeFor[transport.TimeScale]().Field(i).Name, func(o *room.Outgoing) { o.TimeScale(changed[transport.TimeScale](i)) })
	}
}

// changed returns a zero struct except for its i-th field.
func changed[S any](i int) (s S) {
	f := reflect.ValueOf(&s).Elem().Field(i)
	switch f.Kind() {
	case reflect.Bool:
		f.SetBool(true)
	case reflect.String:
		f.SetString("x")
	case reflect.Slice:
		f.SetBytes([]byte("x"))
	case reflect.Int64:
		f.SetInt(1)
	default:
		f.SetUint(1)
	}
	return s
}
