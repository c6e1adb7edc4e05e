package simulation

import (
	"context"
	"errors"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/match"
)

// turns checks package phase. The documents: the comments of phase.Timer and phase.Phase.
//
//   - The end of a phase runs once, in the first tick at or after its deadline, also in a room that
//     sleeps, and not after the next phase has begun.
type turns struct{ p *play }

func (x *turns) ended(key roomKey, n uint64, f phases, now, period time.Duration) {
	late := now - f.due
	if !f.runs || n != f.n || late < 0 || late > period && !f.scaled {
		x.p.fail("phases", "room %q: phase %d ends at %v, and phase %d, running %v, is due at %v", key.name, n, now, f.n, f.runs, f.due)
	}
}

// rest looks for phases without their end.
func (x *turns) rest() {
	x.p.rooms.inTicks(func(name string, f *roomFacts, t *netloop.Tick) {
		h := f.gameRoom
		if late := h.phaseNow(t) - h.phase.due; h.phase.runs && late > 5*f.spec.Rate.Period() {
			x.p.fail("phases", "room %q: phase %d has not ended %v after its deadline", name, h.phase.n, late)
		}
	})
}

// resources are what the rooms of a server share, and checks the resources of a game. The
// documents: the comments of netloop.ServerOpener and netloop.Fetch.
//
//   - OpenServer comes before all rooms, CloseServer after the last one, once each.
//   - An error of Fetch is that of Open. A replay has the same result, and calls neither work nor
//     OpenServer nor CloseServer.
type resources struct {
	p     *play
	match *match.Rooms[listing]
	opens bool
	calls int // of all functions
	n     uint64
}

// tableNames begins the names of the rooms that match.Rooms opens.
const tableNames = "m/"

func newResources(p *play) resources { return resources{p: p, match: newTables()} }

func newTables() *match.Rooms[listing] {
	spec := netloop.RoomSpec{Name: tableNames, Kind: "table", Rate: netloop.Hz(20), MaxClients: 4, CloseEmpty: time.Second, KeepDropped: -1, Params: rules{List: true, Keep: true, Every: 1}}
	return match.NewRooms(match.Config[listing]{Spec: spec})
}

// OpenServer implements netloop.ServerOpener.
func (g game) OpenServer(*netloop.Server) error {
	defer g.p.enter()()
	x := &g.p.resources
	x.calls++
	if x.opens || len(g.p.rooms.byName) > 0 {
		g.p.fail("resources", "OpenServer is called with %d rooms, before: %v", len(g.p.rooms.byName), x.opens)
	}
	x.opens, x.match = true, newTables()
	return nil
}

// CloseServer implements netloop.ServerOpener.
func (g game) CloseServer(context.Context) error {
	defer g.p.enter()()
	x := &g.p.resources
	x.calls++
	if !x.opens || len(g.p.rooms.byName) > 0 {
		g.p.fail("resources", "CloseServer is called with %d rooms, after OpenServer: %v", len(g.p.rooms.byName), x.opens)
	}
	x.opens = false
	return nil
}

// fetched returns another value for each call.
func (x *resources) fetched() uint64 {
	x.calls++
	if x.n++; !x.opens && !x.p.shadow {
		x.p.fail("resources", "a room opens without OpenServer")
	}
	return x.n
}

// failed checks the error of a fetch that fails.
func (x *resources) failed(key roomKey, err error) {
	var refused *netloop.Refusal
	if !errors.As(err, &refused) || *refused != *errFetch {
		x.p.fail("resources", "room %q: the fetch fails with %v", key.name, err)
	}
}

func (x *resources) over() {
	if x.opens {
		x.p.fail("resources", "the server has ended without CloseServer")
	}
}
