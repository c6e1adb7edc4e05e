package room_test

import (
	"strings"
	"testing"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/bridge"
	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/room"
	"github.com/netloop/netloop/internal/rpcqueue"
	"github.com/netloop/netloop/internal/schema"
	"github.com/netloop/netloop/internal/transport"
)

// watch asks for the last payloads of a method, as a tab of the inspector does.
func (c *court) watch(k *netloop.Call[order, nothing]) (list []room.Payload) {
	c.t.Helper()
	if err := c.inspect(func(*netloop.Tick) {
		var ok bool
		if list, ok = c.room.Messages.WatchPayloads(bridge.Netloop.Method(k)); !ok {
			c.t.Fatal("too many methods are watched")
		}
	}); err != nil {
		c.t.Fatal(err)
	}
	return list
}

// The last payloads of a watched method have their values and outcomes, the newest first; a method
// without a watch, or after one, keeps none.
func TestPayloadsAreKeptWhileTheyAreWatched(t *testing.T) {
	c := newCourt(t, netloop.Config{}, nil)
	_ = c.ask(c.session, idOf(valid), order{N: 1})
	if list := c.watch(valid); len(list) != 0 {
		t.Errorf("before the first question: %+v", list)
	}
	for _, n := range []int32{5, -1, 66} {
		_ = c.ask(c.session, idOf(valid), order{N: n})
	}
	_ = c.ask(c.session, idOf(admins), order{})
	c.send(c.session, idOf(valid), loop.Initialization, order{N: 9})
	c.step()
	var got []string
	for _, p := range c.watch(valid) {
		got = append(got, p.Outcome+" "+p.Stage+" "+string(p.Value))
		if p.Client != c.session.ID() || p.Tick == 0 {
			t.Errorf("%+v", p)
		}
	}
	want := `stage_not_allowed Initialization {"Ship":null,"N":9}|panicked  {"Ship":null,"N":66}|invalid  {"Ship":null,"N":-1}|ran  {"Ship":null,"N":5}`
	if strings.Join(got, "|") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, "|"), want)
	}
	for range 60*5 + 2 { // No question arrives for five seconds.
		c.step()
	}
	if c.room.WatchedMethods() != 0 {
		t.Error("a watch without questions has not ended")
	}
}

// A tick keeps a few payloads of a method, and a watch the last ones. A message that waits for its
// stage is shown; if its client leaves before, the outcome says so.
func TestKeptPayloadsAreBounded(t *testing.T) {
	c := newCourt(t, netloop.Config{}, func(r *netloop.Room) {
		anything.Handle(r, func(*netloop.Tick, *netloop.Client, order) (nothing, error) { return nothing{}, nil })
	})
	c.watch(whatever)
	for n := range int32(10) {
		for range 3 * room.TickPayloads {
			c.send(c.session, idOf(valid), 0, order{N: n})
		}
		c.watch(valid)
		c.step()
	}
	list := c.watch(valid)
	if len(list) != room.KeptPayloads || !strings.Contains(string(list[0].Value), `"N":9`) || !strings.Contains(string(list[room.TickPayloads].Value), `"N":8`) {
		t.Errorf("%d payloads: %s, %s", len(list), list[0].Value, list[room.TickPayloads].Value)
	}
	for _, p := range list {
		if p.Outcome != "ran" {
			t.Errorf("%+v", p)
		}
	}

	leaver := c.enter(nil)
	c.step()
	c.send(leaver, idOf(anything), netloop.Initialization, order{N: 3})
	c.watch(anything)
	c.step() // Its stage has run already.
	if list := c.watch(anything); len(list) != 1 || list[0].Outcome != "late" {
		t.Errorf("%+v", list)
	}
	c.send(leaver, idOf(anything), 0, order{N: 4})
	leaver.End(transport.Closed{Code: transport.CodeLeft})
	c.step()
	if list := c.watch(anything); len(list) != 2 || list[0].Outcome != "client_gone" || list[1].Outcome != "ran" {
		t.Errorf("%+v", list)
	}
}

// A message that the server sends is kept too, and long JSON is cut.
func TestSentAndLongPayloads(t *testing.T) {
	b := newBare(t, func(r *netloop.Room) {
		bareBig.Handle(r, func(*netloop.Tick, *netloop.Client, struct{ N uint64 }) (blob, error) { return blob{}, nil })
	})
	method := bridge.Netloop.Method(bareText)
	var list []room.Payload
	look := func(*netloop.Tick) { list, _ = b.room.Messages.WatchPayloads(method) }
	for _, fn := range []func(*netloop.Tick){
		look,
		func(tick *netloop.Tick) { bareText.Send(tick, netloop.Everyone(), blob{make([]byte, 3000)}) },
		look,
	} {
		if err := b.inspect(fn); err != nil {
			t.Fatal(err)
		}
	}
	if len(list) != 1 || list[0].Outcome != "sent" || list[0].Client != 0 || list[0].Cut != len(`{"B":""}`)+4000-room.MaxPayload || list[0].Value[0] != '"' || len(list[0].Value) > room.MaxPayload+20 {
		t.Errorf("%+v", list)
	}
}

// The number of watched methods is bounded; a watched one can be asked about again.
func TestWatchedMethodsAreBounded(t *testing.T) {
	b := newBare(t, func(*netloop.Room) {})
	watch := func(id uint32) bool {
		_, ok := b.room.Messages.WatchPayloads(&schema.Method{Queue: rpcqueue.Method{ID: id}})
		return ok
	}
	for id := range uint32(room.MaxWatched) {
		if !watch(id) {
			t.Fatalf("method %d is one too many", id)
		}
	}
	if watch(room.MaxWatched) || !watch(0) {
		t.Error("one too many is watched, or a watched one is not")
	}
}
