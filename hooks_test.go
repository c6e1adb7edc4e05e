package netloop

import (
	"testing"

	"github.com/netloop/netloop/internal/netvar/state"
	"github.com/netloop/netloop/internal/transport"
)

type (
	hiddenState struct{ N int32 }
	secretState struct {
		N int32 `net:"read=rule"`
	}
)

var (
	judged     = NewSchema("judged", 1, 0)
	hiddenOnes = NewClass[hiddenState](judged, "hidden")
	secretOnes = NewClass[secretState](judged, "secret")
)

type judgedGame struct{ stays *Client }

func (*judgedGame) Schema() *Schema { return judged }

func (g *judgedGame) Open(r *Room) error {
	r.OnJoin(func(_ *Tick, c *Client) error { g.stays = c; return nil })
	secretOnes.Reads(r, "rule", func(*Object[secretState]) Target { return Everyone() })
	return nil
}

// Judging an object for a client allocates nothing below the guard, nor do hooks without functions.
func TestAGuardedHookAllocatesNothing(t *testing.T) {
	g := new(judgedGame)
	s, err := New(Config{}, g)
	if err != nil {
		t.Fatal(err)
	}
	adm, err := admitter{s}.Admit(t.Context(), judged.s.Hello(), "here")
	if err != nil {
		t.Fatal(err)
	}
	session, _ := transport.NewSession(adm.Session)
	adm.Joined(session)
	if err := s.room.e.Step(s.room.e.Timeline().Input(1)); err != nil {
		t.Fatal(err)
	}
	hears := &audience{s.room, hiddenOnes.c.nv, Where(func(c *Client) bool { return c == g.stays })}
	reads := &readers{room: s.room, rules: make([]func(*state.Object) Target, 2)}
	var o *state.Object
	if err := s.room.e.Inspect(func() { o = secretOnes.Spawn(&s.room.tick, secretState{}, OwnedBy(g.stays.ID())).o }); err != nil {
		t.Fatal(err)
	}
	viewer := &g.stays.e.Peer().Viewer
	n := testing.AllocsPerRun(100, func() {
		if !hears.Includes(viewer) || reads.Withheld(o, viewer) != 0 {
			t.Error("it was not judged")
		}
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
	h, why := &s.room.hooks, new(transport.Closed)
	n = testing.AllocsPerRun(100, func() {
		h.Drop(g.stays.e)
		h.Resume(g.stays.e)
		h.Role(g.stays.e)
		h.Leave(g.stays.e, why)
		h.Drain(0)
	})
	if n != 0 {
		t.Errorf("hooks without functions allocate %v times", n)
	}
}
