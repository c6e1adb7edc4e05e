package e2e_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/netlooptest"
)

// A client's Send of an RPC without a handler returns an error, in each room and after each move.
// A call gets an error as its answer.
func TestSendReportsAnUnhandledRPC(t *testing.T) {
	type note struct{ N uint8 }
	quiet := netloop.NewSchema("quiet", 1, 0)
	var notes []*netloop.RPC[note]
	for i := range 10 {
		notes = append(notes, netloop.NewRPC[note](quiet, fmt.Sprint("note ", i)))
	}
	question := netloop.NewCall[note, note](quiet, "question")
	handles := map[string][]int{"": {1, 9}, "a": {0}, "b": nil}
	ran := map[int]int{}
	w := netlooptest.New(t, game{quiet, func(r *netloop.Room) {
		r.AllowMoves()
		for _, i := range handles[r.Spec().Name] {
			notes[i].Handle(r, func(*netloop.Tick, *netloop.Client, note) error { ran[i]++; return nil })
		}
	}})
	openRoom(t, w, table("a"))
	openRoom(t, w, table("b"))
	c := w.Join("", nil, netlooptest.Link{})
	w.Step(60)
	for _, room := range []string{"", "a", "b", ""} {
		if c.Room() != room {
			if err := c.Move(seats(t, w, room, netloop.Reservation{})[0]); err != nil {
				t.Fatal(err)
			}
			w.Step(120)
		}
		clear(ran)
		before := c.Stats().Unsent
		for i, n := range notes {
			err := client.Send(c, n, note{})
			var refused *netloop.Refusal
			if told := errors.As(err, &refused) && refused.Code == netloop.CodeUnknownMethod; told == slices.Contains(handles[room], i) || (err != nil) != told {
				t.Errorf("in room %q, sending %d: %v", room, i, err)
			}
		}
		var answer error
		client.Call(c, question, note{}, func(_ *netloop.Tick, _ note, err error) { answer = err })
		w.Step(60)
		if n := c.Stats().Unsent - before; len(ran) != len(handles[room]) || int(n) != len(notes)-len(handles[room]) {
			t.Errorf("in room %q %v ran, and %d were counted as unsent", room, ran, n)
		}
		var refused *netloop.Refusal
		if !errors.As(answer, &refused) || refused.Code != netloop.CodeUnknownMethod {
			t.Errorf("in room %q the question was answered with %v", room, answer)
		}
	}
}
