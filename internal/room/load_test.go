package room_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/room"
	"github.com/netloop/netloop/internal/testing/seeds"
	"github.com/netloop/netloop/internal/transport"
)

// If many clients join at once, four enter per tick, in order, with all messages they have sent
// meanwhile; a recording of it replays.
func TestManyJoinsEnterFourPerTick(t *testing.T) {
	var said []uint64
	game := bareGame(func(r *netloop.Room) {
		bareWords.Handle(r, func(_ *netloop.Tick, c *netloop.Client, _ word) error {
			said = append(said, uint64(c.ID()))
			return nil
		})
	})
	var file bytes.Buffer
	b := newBareAs(t, netloop.Config{Record: &file}, game)
	b.step()
	const crowd = 11
	for range crowd {
		s := b.join()
		b.push(s, transport.Arrival{Kind: transport.MessageArrived, Decoded: &word{}, Message: transport.Message{Method: idOf(bareWords)}})
		if s.ID()%3 == 0 {
			s.End(transport.Closed{Code: netloop.CodeLeft})
		}
	}
	var here []int
	for range 4 {
		b.step()
		here = append(here, len(b.room.Clients()))
	}
	if want := []int{3, 6, 8, 8}; !slices.Equal(here, want) {
		t.Errorf("%v are here after each tick, want %v", here, want)
	}
	if want := []uint64{1, 2, 4, 5, 7, 8, 10, 11}; !slices.Equal(said, want) {
		t.Errorf("%v have said something, want %v", said, want)
	}
	p, err := netloop.NewReplay(netloop.Config{}, game, bytes.NewReader(file.Bytes()))
	for err == nil {
		_, err = p.Step()
	}
	if !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}

// loadedRoom is a room of many objects and clients, some of them hostile.
type loadedRoom struct {
	*bare
	honest, hostile []*testConn
	packets         map[*testConn]uint64 // packets sent to each
	took            []time.Duration      // CPU time of each tick, measured by clock if that is set
	clock           func() time.Duration
}

var (
	loadSchema = netloop.NewSchema("crowd", 1, 0)
	loadThings = netloop.NewClass[struct{ N uint32 }](loadSchema, "thing")
)

type loadGame int // number of objects

func (loadGame) Schema() *netloop.Schema { return loadSchema }

func (g loadGame) Open(r *netloop.Room) error {
	r.OnStart(func(tick *netloop.Tick) {
		for range g {
			loadThings.Spawn(tick, struct{ N uint32 }{})
		}
	})
	return nil
}

func newLoadedRoom(t *testing.T, objects, clients, hostile int) *loadedRoom {
	t.Helper()
	c := &loadedRoom{bare: newBareOf(t, netloop.Config{}, loadGame(objects)), packets: map[*testConn]uint64{}}
	for n := range clients {
		if s := c.enter(); n < hostile {
			c.hostile = append(c.hostile, s)
		} else {
			c.honest = append(c.honest, s)
		}
	}
	for range clients/room.MaxEntering + 100 {
		c.play(nil)
	}
	return c
}

func (c *loadedRoom) enter() *testConn {
	adm, err := c.server.Handler.Admit(context.Background(), hello(loadSchema), "here")
	if err != nil {
		c.t.Fatal(err)
	}
	return newTestConn(adm)
}

// play runs a tick after the attack of the hostile clients.
func (c *loadedRoom) play(attack func(*loadedRoom, *testConn)) {
	c.t.Helper()
	for _, s := range slices.Clone(c.hostile) {
		if attack != nil {
			attack(c, s)
		}
	}
	if c.clock == nil {
		c.step()
	} else {
		start := c.clock()
		c.step()
		c.took = append(c.took, c.clock()-start)
	}
	for _, s := range slices.Concat(c.honest, c.hostile) {
		c.acknowledge(s)
	}
}

// acknowledge delivers and acknowledges the packets of a client.
func (c *loadedRoom) acknowledge(s *testConn) {
	_ = s.SendDatagrams(func() time.Duration { return 0 }, func([]byte) error { c.packets[s]++; return nil })
	s.AppendStream(nil, 1<<20)
	if n := c.packets[s]; n > 0 {
		c.room.Inbox().Push(transport.Arrival{Kind: transport.Acks, Session: s.Session, Acks: []transport.Range{{First: 1, Last: n}}})
	}
}

// attacksOnTheTick are the attacks of a hostile client on the time of a tick, at full rate.
var attacksOnTheTick = map[string]func(*loadedRoom, *testConn){
	"nothing": nil,
	"acknowledgements": func(c *loadedRoom, s *testConn) {
		for n := range 600 {
			last := uint64(max(int(c.packets[s])-2*n, 1))
			c.room.Inbox().Push(transport.Arrival{Kind: transport.Acks, Session: s.Session, Acks: []transport.Range{{First: last, Last: last}, {First: 1, Last: 1}}})
		}
		for range 60 {
			c.room.Inbox().Push(transport.Arrival{Kind: transport.RecordsApplied, Session: s.Session})
		}
	},
	"digests": func(c *loadedRoom, s *testConn) {
		for range 60 {
			c.room.Inbox().Push(transport.Arrival{Kind: transport.DigestRequest, Session: s.Session, Value: 1 << 20})
		}
	},
	"full states": func(c *loadedRoom, s *testConn) {
		for range 60 {
			c.room.Inbox().Push(transport.Arrival{Kind: transport.FullStateRequest, Session: s.Session})
		}
	},
	"joins": func(c *loadedRoom, s *testConn) {
		if _, ok := c.room.Client(s.ID()); !ok {
			return // Its join waits.
		}
		s.End(transport.Closed{Code: netloop.CodeLeft})
		c.hostile[slices.Index(c.hostile, s)] = c.enter()
	},
}

// The work that hostile clients cause in a tick is bounded, for each kind and rate of attack.
func TestHostileWorkPerTickIsBounded(t *testing.T) {
	seeds.OneGoroutine(t)
	for name, attack := range attacksOnTheTick {
		c := newLoadedRoom(t, 500, 30, 10)
		const ticks = 120
		before := c.room.World().Stats()
		for range ticks {
			was, full := len(c.room.Clients()), c.room.World().Stats().FullRequests
			c.play(attack)
			if n := c.room.World().Stats().FullRequests - full; n > room.MaxFulls {
				t.Errorf("%s: %d full states began in a tick", name, n)
			}
			if n := c.room.Arrived(); name == "acknowledgements" && n > 30+10 {
				t.Errorf("%s: %d arrivals in a tick", name, n)
			}
			if n := len(c.room.Clients()); n > was+room.MaxEntering {
				t.Errorf("%s: %d came in in a tick", name, n-was)
			}
		}
		after := c.room.World().Stats()
		if n := after.Digests - before.Digests; n > 10*(ticks/60+1)*room.MaxDigests {
			t.Errorf("%s: %d digests in %d ticks", name, n, ticks)
		}
		for _, s := range c.honest {
			if cl, ok := c.room.Client(s.ID()); !ok || cl.Kicked() != nil {
				t.Errorf("%s: an honest client is gone", name)
			}
		}
	}
}

// A player that repeatedly leaves and joins is sent the world slowly, except for the first times,
// and so is a client that asks for the full state. A client that joins meanwhile for the first
// time has it soon.
func TestAFrequentJoinerCatchesUpSlowly(t *testing.T) {
	const objects = 3000
	c := newLoadedRoom(t, objects, 2, 1)
	stats := func() uint64 { return c.room.World().Stats().FullFirst }
	for visit := range 2*room.FreeVisits + 1 { // It has been here before the first.
		before, ticks := stats(), 0
		attacksOnTheTick["joins"](c, c.hostile[0])
		for stats()-before < objects && ticks < 100 {
			c.play(nil)
			ticks++
		}
		if slow := ticks > 4; slow != (visit >= room.FreeVisits) {
			t.Errorf("visit %d takes %d ticks", visit, ticks)
		}
	}
	attacksOnTheTick["joins"](c, c.hostile[0])
	c.play(nil)
	before := stats()
	adm, err := c.server.Handler.Admit(context.Background(), hello(loadSchema), "elsewhere")
	if err != nil {
		t.Fatal(err)
	}
	c.honest = append(c.honest, newTestConn(adm))
	for range 4 {
		c.play(nil)
	}
	if n := stats() - before; n < objects {
		t.Errorf("who comes for the first time has %d of %d objects after 4 ticks", n, objects)
	}
}
