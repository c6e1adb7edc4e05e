package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/internal/testing/seeds"
	"github.com/netloop/netloop/netlooptest"
)

// spawner spawns a thing in every tick while it is on, and announces it by a message.
type spawner struct {
	on    bool
	stage netloop.Stage
	o     []netloop.SendOption
	n     uint64
}

func (s *spawner) open(r *netloop.Room) {
	r.On(s.stage, "test.spawn", func(tick *netloop.Tick) {
		if !s.on {
			return
		}
		s.n++
		o := things.Spawn(tick, thing{N: int32(s.n)})
		spawned.Send(tick, netloop.Everyone(), announcement{o.Ref(), s.n}, s.o...)
	})
}

// announcements records a client's messages: how many in order, and how many with their object.
type announcements struct {
	heard []uint64
	found int
}

func (b *announcements) listen(c *client.Client) {
	client.Handle(c, spawned, func(tick *netloop.Tick, m announcement) {
		b.heard = append(b.heard, m.N)
		if o, ok := m.Thing.Get(tick); ok && o.State().N == int32(m.N) {
			b.found++
		}
	})
}

func (b *announcements) inOrder() bool {
	for i, n := range b.heard {
		if n != uint64(i+1) {
			return false
		}
	}
	return true
}

func TestMessageWithStateFindsItsObject(t *testing.T) {
	seeds.OneGoroutine(t)
	for _, stage := range stages {
		t.Run(stage.String(), func(t *testing.T) {
			for _, with := range []bool{true, false} {
				s := &spawner{stage: stage}
				if with {
					s.o = []netloop.SendOption{netloop.WithState()}
				}
				w := open(t, s.open)
				// The jitter of datagrams lets the stream overtake the state.
				c := play(t, w, netlooptest.Link{Delay: 20 * time.Millisecond, Jitter: 30 * time.Millisecond})
				var b announcements
				b.listen(c)
				s.on = true
				w.Step(200)
				s.on = false
				w.Step(60)
				if uint64(len(b.heard)) != s.n || !b.inOrder() {
					t.Errorf("with state %v: got %d of %d, in order %v", with, len(b.heard), s.n, b.inOrder())
				}
				if with != (b.found == len(b.heard)) {
					t.Errorf("with state %v: %d of %d objects were known", with, b.found, len(b.heard))
				}
				if st := c.Stats(); st.Held != 0 || st.Early != 0 {
					t.Errorf("%d are held, %d ran early", st.Held, st.Early)
				}
			}
		})
	}
}

func TestMessagesWithStateUnderLoss(t *testing.T) {
	for seed := range uint64(10) {
		s := &spawner{stage: netloop.Update, o: []netloop.SendOption{netloop.WithState()}}
		w := open(t, s.open, netlooptest.Seed(seed+1))
		l := bad
		l.Loss = 0.1
		c := play(t, w, l)
		var b announcements
		b.listen(c)
		s.on = true
		w.Step(300)
		s.on = false
		w.Until(600, func() bool { return uint64(len(b.heard)) == s.n })
		if !b.inOrder() {
			t.Errorf("seed %d: got %v", seed+1, b.heard)
		}
		// Both copies of a new object are lost in one of a hundred cases. The message does not
		// wait for a third copy.
		if b.found < len(b.heard)*95/100 {
			t.Errorf("seed %d: %d of %d objects were known", seed+1, b.found, len(b.heard))
		}
	}
}

func TestOtherMessagesOvertakeHeldOnes(t *testing.T) {
	var ran []string
	w := open(t, func(*netloop.Room) {})
	c := play(t, w, perfect)
	client.Handle(c, told, func(_ *netloop.Tick, m text) { ran = append(ran, fmt.Sprint(m.S, m.N)) })
	w.Tick(func(tick *netloop.Tick) { // After this tick's snapshot: they wait for the next one.
		for n := range uint64(3) {
			told.Send(tick, netloop.Everyone(), text{S: "held", N: n}, netloop.WithState())
			told.Send(tick, netloop.Everyone(), text{S: "free", N: n})
		}
	})
	w.Step(3)
	got := strings.Join(ran, " ")
	if want := "free0 free1 free2 held0 held1 held2"; got != want && got != "held0 free0 held1 free1 held2 free2" {
		t.Errorf("ran %q", got)
	}
}

// hold sends messages with state in a tick long before the next snapshot.
func hold(t *testing.T, n int, size int) (w *netlooptest.World, c *client.Client, ran *[]uint64) {
	t.Helper()
	ran = new([]uint64)
	ready := false
	w = open(t, func(r *netloop.Room) {
		r.On(netloop.Update, "test.tell", func(tick *netloop.Tick) {
			if !ready {
				return
			}
			for i := range n {
				bulk.Send(tick, netloop.Everyone(), parcel{N: uint64(i), B: make([]byte, size)}, netloop.WithState())
			}
			ready = false
		})
	}, netlooptest.Room(netloop.RoomSpec{SendEvery: 60}))
	c = play(t, w, perfect)
	client.Handle(c, bulk, func(_ *netloop.Tick, m parcel) { *ran = append(*ran, m.N) })
	ready = true
	return w, c, ran
}

func TestHeldMessagesAreBoundedInNumber(t *testing.T) {
	w, c, ran := hold(t, 300, 0)
	w.Until(60, func() bool { return c.Stats().Held > 0 })
	if s := c.Stats(); s.Held != 256 || s.Early != 44 || len(*ran) != 44 {
		t.Errorf("%d are held, %d early, %d ran", s.Held, s.Early, len(*ran))
	}
	w.Step(60)
	if len(*ran) != 300 || !slices.IsSorted(*ran) {
		t.Errorf("ran %v", *ran)
	}
}

func TestHeldMessagesAreBoundedInBytes(t *testing.T) {
	w, c, ran := hold(t, 20, 6000)
	w.Until(60, func() bool { return c.Stats().Held > 0 })
	if s := c.Stats(); s.Held != 10 || s.Early != 10 || len(*ran) != 10 {
		t.Errorf("%d are held, %d early, %d ran", s.Held, s.Early, len(*ran))
	}
}

func TestOnlyTheServerSendsWithState(t *testing.T) {
	w := open(t, func(*netloop.Room) {})
	c := play(t, w, perfect)
	defer func() {
		if v := fmt.Sprint(recover()); !strings.Contains(v, "WithState is for the server") {
			t.Errorf("recovered %q", v)
		}
	}()
	client.Send(c, echo, text{}, netloop.WithState())
}

// The client refuses to send messages that the server would refuse.
func TestAClientCannotSendServerOnlyMessages(t *testing.T) {
	sc := netloop.NewSchema("server only", 1, 0)
	inner := netloop.NewRPC[text](sc, "inner", netloop.ServerOnly())
	w := netlooptest.New(t, game{schema: sc})
	c := w.Join("", nil, perfect)
	defer func() {
		if v := fmt.Sprint(recover()); !strings.Contains(v, "it is declared as ServerOnly") {
			t.Errorf("recovered %q", v)
		}
	}()
	client.Send(c, inner, text{})
}

// No snapshot follows the server's last messages, so they do not wait for one.
func TestHeldMessagesRunWhenTheConnectionEnds(t *testing.T) {
	w := open(t, func(*netloop.Room) {})
	c := play(t, w, netlooptest.Link{Delay: 20 * time.Millisecond})
	var ran []string
	client.Handle(c, told, func(_ *netloop.Tick, m text) { ran = append(ran, m.S) })
	w.Tick(func(tick *netloop.Tick) {
		told.Send(tick, netloop.Everyone(), text{S: "you lost"}, netloop.WithState())
		for player := range tick.Clients() {
			player.Kick(tick, netloop.CodeGame, "the match is over")
		}
	})
	w.Until(60, func() bool { return c.Closed() != nil })
	if s := c.Stats(); len(ran) != 1 || s.Held != 0 || s.Early != 1 {
		t.Errorf("ran %v, %d are held, %d ran early", ran, s.Held, s.Early)
	}
}

// A joiner gets a large world over many ticks. A message of OnJoin waits for the object that it
// names, even if most other objects have not arrived.
func TestAMessageWithStateWaitsForADeferredObject(t *testing.T) {
	w := open(t, func(r *netloop.Room) {
		r.OnStart(func(tick *netloop.Tick) {
			for i := range 5000 {
				things.Spawn(tick, thing{N: int32(i)})
			}
		})
		r.OnJoin(func(tick *netloop.Tick, c *netloop.Client) error {
			o := things.Spawn(tick, thing{N: 1}, netloop.OwnedBy(c.ID()))
			spawned.Send(tick, netloop.To(c.ID()), announcement{o.Ref(), 1}, netloop.WithState())
			return nil
		})
	})
	w.Step(1)
	c := w.JoinAs(client.Config{Schema: schema}, perfect)
	var b announcements
	b.listen(c)
	waited := 0
	w.Until(100, func() bool {
		waited = max(waited, c.Stats().Held)
		return len(b.heard) == 1
	})
	if s := c.Stats(); b.found != 1 || waited != 1 || s.Early != 0 {
		t.Errorf("found %d, %d were held, %d ran early", b.found, waited, s.Early)
	}
}
