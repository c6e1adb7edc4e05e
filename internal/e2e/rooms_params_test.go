package e2e_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/netlooptest"
)

// rules are the parameters of a room in tests.
type rules struct {
	Stakes int32
	Packs  []uint8
}

// reading is a game whose rooms note by which rules they were opened.
func reading(t *testing.T, also func(*netloop.Room)) (script, map[string]rules) {
	read := map[string]rules{}
	var mu sync.Mutex // Rooms are opened side by side.
	return func(r *netloop.Room) {
		got := rules{Stakes: -1}
		if err := r.Params(&got); err != nil {
			t.Error(err)
		}
		mu.Lock()
		read[r.Spec().Name] = got
		mu.Unlock()
		if r.Spec().Params != nil {
			t.Errorf("the parameters of %q are shared", r.Spec().Name)
		}
		also(r)
	}, read
}

// The game's Open reads the parameters of its room, wherever it was opened: a copy of what they
// were at that moment. A replay opens the room with the same.
func TestRoomsHaveParameters(t *testing.T) {
	shared := &rules{Stakes: 3, Packs: []uint8{1, 2}}
	g, read := reading(t, func(r *netloop.Room) {
		if r.Spec().Name != "" {
			return
		}
		r.OnStart(func(tick *netloop.Tick) {
			spec := table("tick")
			spec.Params = shared
			tick.OpenRoom(spec, func(_ *netloop.Tick, _ netloop.RoomInfo, err error) {
				if err != nil {
					t.Error(err)
				}
			})
			shared.Stakes, shared.Packs[1] = 99, 99
		})
	})
	tables := map[string]*sheet{}
	var mu sync.Mutex
	w := netlooptest.New(t, g, netlooptest.Room(netloop.RoomSpec{Params: rules{Stakes: 1}}),
		netlooptest.RecordRoom(func(info netloop.RoomInfo) (io.WriteCloser, error) {
			mu.Lock()
			defer mu.Unlock()
			tables[info.Spec.Name] = new(sheet)
			return tables[info.Spec.Name], nil
		}))
	w.Step(2)
	w.Settle()
	w.Step(2)
	spec := table("server")
	spec.Params = rules{Stakes: 2}
	openRoom(t, w, spec)
	openRoom(t, w, table("none"))
	w.Step(10)
	want := map[string]rules{"": {1, nil}, "tick": {3, []uint8{1, 2}}, "server": {2, nil}, "none": {-1, nil}}
	if fmt.Sprint(read) != fmt.Sprint(want) {
		t.Errorf("read %v, want %v", read, want)
	}
	clear(read)
	if _, err := netloop.NewReplay(netloop.Config{}, g, tables["tick"]); err != nil {
		t.Fatal(err)
	}
	if got := read["tick"]; fmt.Sprint(got) != fmt.Sprint(want["tick"]) {
		t.Errorf("replayed with %v", got)
	}
}

// Parameters that cannot be encoded, or are too large, keep a room from opening, whoever opens
// it; those of another type are an error of whoever reads them.
func TestParametersThatCannotBe(t *testing.T) {
	failed := ""
	large := rules{Packs: make([]uint8, netloop.MaxMessage+1)}
	w := netlooptest.New(t, script(func(r *netloop.Room) {
		var other struct{ Name string }
		if err := r.Params(&other); r.Spec().Name == "other" && (err == nil || !strings.Contains(err.Error(), `parameters of room "other"`)) {
			t.Errorf("they are read as another type: %v", err)
		}
		r.OnStart(func(tick *netloop.Tick) {
			if r.Spec().Name != "" {
				return
			}
			spec := table("tick")
			spec.Params = make(chan int)
			tick.OpenRoom(spec, func(_ *netloop.Tick, _ netloop.RoomInfo, err error) { failed = fmt.Sprint(err) })
		})
	}))
	for _, params := range []any{7, func() {}, large} {
		spec := table("bad")
		spec.Params = params
		if _, err := w.OpenRoom(spec); err == nil || !strings.Contains(err.Error(), "Room.Params") {
			t.Errorf("parameters of type %T: %v", params, err)
		}
	}
	spec := table("other")
	spec.Params = rules{}
	openRoom(t, w, spec)
	w.Step(2)
	w.Settle()
	w.Step(2)
	if !strings.Contains(failed, "Room.Params") {
		t.Errorf("from a tick: %q", failed)
	}
}

// A client joins the room of a name, or has it made by what it asks for.
func TestAClientJoinsOrCreatesWithParameters(t *testing.T) {
	type wish struct{ Stakes int32 }
	g, read := reading(t, func(*netloop.Room) {})
	w := netlooptest.New(t, wishing{g, func(j *netloop.Join) (spec netloop.RoomSpec, err error) {
		var asked wish
		if err := j.Params(&asked); err != nil || asked.Stakes > 100 {
			return spec, netloop.Refuse(netloop.CodeInvalid, "such stakes are not played")
		}
		spec = table("")
		spec.Params = rules{Stakes: asked.Stakes}
		return spec, nil
	}})
	for _, stakes := range []int32{5, 7} { // The second finds the room of the first.
		w.JoinAs(client.Config{Room: "a", Join: wish{stakes}}, netlooptest.Link{})
		w.Step(30)
	}
	refused := w.JoinAs(client.Config{Room: "b", Join: wish{101}}, netlooptest.Link{})
	w.Step(30)
	if read["a"].Stakes != 5 || len(read) != 2 {
		t.Errorf("opened %v", read)
	}
	w.Room("a").Tick(func(tick *netloop.Tick) {
		n := 0
		for range tick.Clients() {
			n++
		}
		if n != 2 {
			t.Errorf("%d clients are in the room", n)
		}
	})
	if why := refused.Closed(); why == nil || why.Code != netloop.CodeInvalid {
		t.Errorf("who asks for too much is told %v", why)
	}
}

// wishing is a game that opens rooms as clients wish.
type wishing struct {
	script
	open func(*netloop.Join) (netloop.RoomSpec, error)
}

func (g wishing) OpenFor(_ context.Context, _ string, j *netloop.Join) (netloop.RoomSpec, error) {
	return g.open(j)
}
