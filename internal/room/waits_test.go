package room_test

import (
	"testing"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/rpcqueue"
	"github.com/netloop/netloop/internal/transport"
)

// watchWaits asks for the waits of messages, as a tab of the inspector does.
func (c *court) watchWaits() (list []rpcqueue.Wait, ticks uint64) {
	c.t.Helper()
	if err := c.inspect(func(*netloop.Tick) { list, ticks = c.room.Messages.WatchWaits() }); err != nil {
		c.t.Fatal(err)
	}
	return list, ticks
}

// Waits are counted from the first question on, until ten seconds after the last.
func TestWaitsAreCountedWhileTheyAreWatched(t *testing.T) {
	c := newCourt(t, netloop.Config{}, nil)
	send := func() {
		o := order{N: 5}
		c.push(c.session, transport.Arrival{Kind: transport.MessageArrived, Decoded: &o, At: 1, Message: transport.Message{Method: idOf(valid), Stage: uint8(loop.Update)}})
		c.step()
	}
	send()
	if list, ticks := c.watchWaits(); len(list) != 0 || ticks != 0 {
		t.Errorf("before the first question: %+v in %d ticks", list, ticks)
	}
	send()
	send()
	if list, ticks := c.watchWaits(); len(list) != 1 || list[0].Method.Name != nameOf(valid) || list[0].Count != 2 || list[0].Sum < list[0].Max || list[0].Max == 0 || ticks != 2 {
		t.Errorf("%+v in %d ticks", list, ticks)
	}
	for range 60*10 + 2 { // No question arrives for ten seconds.
		c.step()
	}
	if list, _ := c.watchWaits(); len(list) != 0 {
		t.Errorf("after ten seconds: %+v", list)
	}
}
