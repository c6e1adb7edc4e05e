package room_test

import (
	"testing"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/bridge"
	"github.com/netloop/netloop/internal/room"
	"github.com/netloop/netloop/internal/transport"
)

// follow asks for the traffic of a client, as a tab of the inspector does.
func (c *court) follow(s *testConn) (t room.Traffic, ok bool) {
	c.t.Helper()
	if err := c.inspect(func(*netloop.Tick) {
		client, in := c.room.Client(s.ID())
		if !in {
			c.t.Fatal("the client is not in the room")
		}
		t, ok = c.room.Follow(client)
	}); err != nil {
		c.t.Fatal(err)
	}
	return t, ok
}

// The traffic of a followed client is its own: half of the records if two clients get the same, its
// messages and answers by method, and its inputs.
func TestTrafficIsThatOfOneClient(t *testing.T) {
	c := newCourt(t, netloop.Config{}, nil)
	other := c.enter(nil)
	c.step()
	if first, ok := c.follow(c.session); !ok || first.Records[0] != 0 || len(first.Methods) != 0 {
		t.Errorf("before the first tick: %+v", first)
	}
	carry(c.session, nil) // The first snapshots leave, which frees the slots.
	carry(other, nil)
	c.spawn(0)
	before := c.room.World().SpentOn(bridge.Netloop.Schema(policies).AllClasses()[0])
	_ = c.ask(c.session, idOf(valid), order{N: 5})
	_ = c.ask(c.session, idOf(valid), order{N: -1}) // It is refused.
	_ = c.ask(other, idOf(valid), order{N: 7})
	c.push(c.session, transport.Arrival{Kind: transport.MessageArrived, Message: transport.Message{Method: 1 << 30}, Size: 9})
	c.step()
	all := c.room.World().SpentOn(bridge.Netloop.Schema(policies).AllClasses()[0]) - before
	got, _ := c.follow(c.session)
	if mine := got.Records[0]; mine == 0 || 2*mine < all-2 || 2*mine > all+2 {
		t.Errorf("of %d bytes of ships the client was sent %d", all, mine)
	}
	if len(got.Methods) != 2 || got.Methods[0].Method != nil || got.Methods[0].Received != (room.Data{Count: 1, Bytes: 9}) {
		t.Fatalf("%+v", got.Methods)
	}
	if m := got.Methods[1]; m.Method != bridge.Netloop.Method(valid) || m.Received.Count != 2 || m.Sent.Count != 2 || m.Sent.Bytes == 0 {
		t.Errorf("%+v", m)
	}
}

// Counting ends ten seconds after the last question, and few clients are counted at once.
func TestFollowingEnds(t *testing.T) {
	c := newCourt(t, netloop.Config{}, nil)
	sessions := []*testConn{c.session}
	for range room.MaxFollowed {
		sessions = append(sessions, c.enter(nil))
		c.step()
	}
	for i, s := range sessions {
		if _, ok := c.follow(s); ok != (i < room.MaxFollowed) {
			t.Errorf("client %d of %d: %v", i+1, room.MaxFollowed, ok)
		}
	}
	_ = c.ask(c.session, idOf(valid), order{N: 5})
	for range 60*10 + 2 { // No question arrives for ten seconds.
		c.step()
	}
	if again, ok := c.follow(sessions[room.MaxFollowed]); !ok || again.Began != c.tick {
		t.Errorf("after ten seconds: %v, %+v", ok, again)
	}
	if again, ok := c.follow(c.session); !ok || len(again.Methods) != 0 {
		t.Errorf("after ten seconds: %v, %+v", ok, again)
	}
}
