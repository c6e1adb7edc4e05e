package client

import (
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/transport"
)

// TestAnswerOfAnotherMethodIsDropped: a server cannot make a call see a value of another
// type than it asked for.
func TestAnswerOfAnotherMethodIsDropped(t *testing.T) {
	var cs calls
	var got []any
	id := cs.add(3, 0, time.Second, func(_ *netloop.Tick, answer any, _ error) { got = append(got, answer) })
	cs.answer(nil, &transport.Message{Method: 4, Call: id, Reply: true}, "of another method")
	cs.answer(nil, &transport.Message{Method: 0, Call: id, Reply: true, Code: 7}, nil)
	if cs.late != 2 || len(got) != 0 {
		t.Fatalf("%d dropped, it got %v", cs.late, got)
	}
	cs.answer(nil, &transport.Message{Method: 3, Call: id, Reply: true}, "its own")
	if len(got) != 1 || got[0] != "its own" || len(cs.waiting) != 0 {
		t.Errorf("it got %v", got)
	}
}
