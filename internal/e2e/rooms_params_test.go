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

// rules are the room parameters of these tests.
type rules struct {
	Stakes int32
	Packs  []uint8
}

// reading is a game of rooms that record the parameters of their opening.
func reading(t *testing.T, also func(*netloop.Room)) (script, map[string]rules) {
	read := map[string]rules{}
	var mu sync.Mutex // Rooms are opened concurrently.
	return func(r *netloop.Room) {
		got := rules{Stakes: -1}
		if err := r.Params(&got); err != nil {
			t.Error(err)
		}
		mu.Lock()
		read[r.Spec().Name] = got
		mu.Unlock()
		if r.Spec().Params != nil {
			t.Errorf("the caller's later changes reach the parameters of %q", r.Spec().Name)
		}
		also(r)
	}, read
}

// The game's Open reads the parameters of its room for each way to open one. They are a copy made
// at the call, and a replay has the same.
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
	tables := map[string]*memoryFile{}
	var mu sync.Mutex
	w := netlooptest.New(t, g, netlooptest.Room(netloop.RoomSpec{Params: rules{Stakes: 1}}),
		netlooptest.RecordRoom(func(info netloop.RoomInfo) (io.WriteCloser, error) {
			mu.Lock()
			defer mu.Unlock()
			tables[info.Spec.Name] = new(memoryFile)
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

// Parameters that cannot be encoded or are too large fail the opening, for each way to open a
// room. Reading them as another type is an error.
func TestInvalidParametersAreRefused(t *testing.T) {
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

// A client joins an open room, or the game opens one by the parameters of the request.
func TestAClientJoinsOrCreatesWithParameters(t *testing.T) {
	type wish struct{ Stakes int32 }
	g, read := reading(t, func(*netloop.Room) {})
	w := netlooptest.New(t, paramsOpener{g, func(j *netloop.Join) (spec netloop.RoomSpec, err error) {
		var asked wish
		if err := j.Params(&asked); err != nil || asked.Stakes > 100 {
			return spec, netloop.Refuse(netloop.CodeInvalid, "such stakes are not played")
		}
		spec = table("")
		spec.Params = rules{Stakes: asked.Stakes}
		return spec, nil
	}})
	for _, stakes := range []int32{5, 7} { // The second client finds the first one's room.
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
		t.Errorf("an excessive request is refused with %v", why)
	}
}

// paramsOpener is a game that opens rooms by the parameters of client requests.
type paramsOpener struct {
	script
	open func(*netloop.Join) (netloop.RoomSpec, error)
}

func (g paramsOpener) OpenFor(_ context.Context, _ string, j *netloop.Join) (netloop.RoomSpec, error) {
	return g.open(j)
}
