package replica

import (
	"reflect"
	"slices"
	"testing"

	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/netvar/state"
)

// The classes of a server, and those of another build of its client: in another order, and with one
// that the server lacks.
type rock struct{ X, Y int32 }

type ship struct {
	X, Y float32
	Name string `net:"max=12"`
}

type otherShip struct {
	Shield int32
	Y      float32
}

type server struct {
	table      *state.Table
	ship, rock *state.Class
}

type client struct {
	table       *state.Table
	ship, stone *state.Class
}

func classOf[T any](t *testing.T, name string) *state.Class {
	t.Helper()
	c, err := state.NewClass(name, reflect.TypeFor[T]())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func newServer(t *testing.T) server {
	s := server{ship: classOf[ship](t, "ship"), rock: classOf[rock](t, "rock")}
	s.table = state.NewTable(s.ship, s.rock)
	return s
}

func newClient(t *testing.T) client {
	c := client{stone: classOf[rock](t, "stone"), ship: classOf[otherShip](t, "ship")}
	c.table = state.NewTable(c.stone, c.ship)
	return c
}

// bindTable makes the client's binding of a server's table.
func bindTable(t *testing.T, own, server *state.Table) *state.Table {
	t.Helper()
	var classes []*state.Class
	for _, c := range server.Classes() {
		var mine *state.Class
		for _, o := range own.Classes() {
			if o.Name() == c.Name() {
				mine = o
			}
		}
		bound, err := state.BindClass(c.Name(), mine, c.Layout(), new(codec.Budget))
		if err != nil {
			t.Fatal(err)
		}
		classes = append(classes, bound)
	}
	return state.NewTable(classes...)
}

// The first class of a client's table is served like all others.
func TestTheFirstClassIsServed(t *testing.T) {
	s, first := newServer(t), classOf[rock](t, "rock")
	r := New(state.NewTable(first))
	r.Adapt(bindTable(t, r.table, s.table))
	if c := r.served(first); c == nil || c.Declared() != first || c.Index() != s.rock.Index() {
		t.Errorf("it is served by %v", c)
	}
	if c := New(s.table).served(s.rock); c != s.rock {
		t.Errorf("with the same table it is served by %v", c)
	}
}

// Settings made before Adapt are kept.
func TestAdaptKeepsSettings(t *testing.T) {
	s, o := newServer(t), newClient(t)
	for _, tell := range []bool{false, true} {
		r := New(o.table)
		r.TellChanges(o.ship, tell)
		r.TellChanges(o.stone, tell)
		r.Adapt(bindTable(t, o.table, s.table))
		for _, c := range r.table.Classes() {
			if want := c.Declared() != o.ship || !tell; r.quiet[c.Index()] != want {
				t.Errorf("tell %v: %s is quiet: %v", tell, c.Name(), r.quiet[c.Index()])
			}
		}
		r.TellChanges(o.stone, tell) // no effect: the server lacks the class
		r.TellChanges(o.ship, !tell)
		if r.quiet[r.served(o.ship).Index()] != tell {
			t.Error("a later wish is lost")
		}
		r.TellChanges(newClient(t).ship, tell) // no effect: a class of another schema
		r.Adapt(nil)                           // a server of this side's build
		if r.quiet[o.ship.Index()] != tell || r.quiet[o.stone.Index()] == tell || r.table != o.table {
			t.Errorf("tell %v: of a second server the ship is quiet: %v, the stone %v", tell, r.quiet[o.ship.Index()], r.quiet[o.stone.Index()])
		}
		r.TellChanges(o.stone, !tell)
		r.Adapt(bindTable(t, o.table, s.table))
		r.Adapt(nil)
		if r.quiet[o.ship.Index()] != tell || r.quiet[o.stone.Index()] != tell {
			t.Errorf("tell %v: of a third server the ship is quiet: %v, the stone %v", tell, r.quiet[o.ship.Index()], r.quiet[o.stone.Index()])
		}
	}
}

// Only the classes that the game has asked for are kept for drawing, also after other servers.
func TestAdaptKeepsClassesForDrawing(t *testing.T) {
	s, o := newServer(t), newClient(t)
	r := New(o.table)
	r.KeepForDrawing(o.ship)
	r.KeepForDrawing(o.stone)           // the server lacks the class
	r.KeepForDrawing(newClient(t).ship) // no effect: a class of no table
	table := bindTable(t, o.table, s.table)
	for _, server := range []*state.Table{table, nil, table} {
		r.Adapt(server)
	}
	if keeps := r.drawing.keeps; !slices.Equal(keeps, []bool{true, false}) || !keeps[r.served(o.ship).Index()] {
		t.Errorf("kept are %v", keeps)
	}
}
