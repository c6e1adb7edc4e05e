package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/testing/golden"
	"github.com/netloop/netloop/netlooptest"
)

// TestTranscriptOfMessages prints whole ticks of a room and the frames of its two clients:
// messages of every stage, ticks with no fixed step or one, a budget that is too small, calls
// with later answers, and a leaver.
func TestTranscriptOfMessages(t *testing.T) {
	var log strings.Builder
	say := func(tick *netloop.Tick, format string, a ...any) {
		fmt.Fprintf(&log, "  %-15v %s\n", tick.Stage(), fmt.Sprintf(format, a...))
	}
	var owed []netloop.Reply[sum]
	w := open(t, func(r *netloop.Room) {
		r.On(netloop.FixedUpdate, "test.step", func(tick *netloop.Tick) { say(tick, "fixed step") })
		r.On(netloop.PreLateUpdate, "test.answer", func(tick *netloop.Tick) {
			for i, reply := range owed {
				say(tick, "answers, waited for: %v", reply.Waiting(tick))
				reply.Send(tick, sum{int64(i)}, nil)
			}
			owed = nil
		})
		r.OnJoin(func(tick *netloop.Tick, c *netloop.Client) error { say(tick, "%d joins", c.ID()); return nil })
		r.OnLeave(func(tick *netloop.Tick, c *netloop.Client, _ *netloop.Closed) { say(tick, "%d leaves", c.ID()) })
		echo.Handle(r, func(tick *netloop.Tick, from *netloop.Client, m text) error {
			say(tick, "%d says %s", from.ID(), m.S)
			told.Send(tick, netloop.Everyone().Except(from.ID()), m, netloop.WithState())
			return nil
		})
		add.HandleLater(r, func(tick *netloop.Tick, from *netloop.Client, q pair, reply netloop.Reply[sum]) {
			say(tick, "%d asks %d", from.ID(), q.A)
			owed = append(owed, reply)
		})
	}, netlooptest.Room(netloop.RoomSpec{Rate: netloop.Hz(60), FixedRate: netloop.Hz(30)}), netlooptest.Limits(netloop.RPCLimits{Budget: 3}))
	ann, bob := w.Join("", nil, perfect), w.Join("", nil, perfect)
	for _, c := range []*client.Client{ann, bob} {
		client.Handle(c, told, func(tick *netloop.Tick, m text) { say(tick, "client %d hears %s", c.ID(), m.S) })
	}
	for n := 1; n <= 9; n++ {
		fmt.Fprintf(&log, "tick %d\n", n)
		w.Step(1)
		switch n {
		case 3:
			for _, s := range stages {
				client.Send(ann, echo, text{S: "ann's " + s.String()}, netloop.RunAt(s))
			}
		case 4:
			for i := range 4 {
				client.Send(ann, echo, text{S: fmt.Sprint("ann's ", i)})
			}
			client.Send(bob, echo, text{S: "bob's one"})
			client.Call(bob, add, pair{A: 7}, func(tick *netloop.Tick, s sum, err error) {
				say(tick, "client %d is answered %d, %v", bob.ID(), s.Sum, err)
			})
		case 6:
			if err := ann.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	golden.Check(t, "testdata/messages.txt", log.String())
}
