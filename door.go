package netloop

import (
	"math/rand/v2"
	"time"

	"github.com/netloop/netloop/internal/inside"
	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/netvar"
	"github.com/netloop/netloop/internal/schema"
	"github.com/netloop/netloop/internal/transport"
)

// The one door to the packages built on this one: see package inside.
var _ = openDoor()

func openDoor() bool {
	d := &inside.Netloop
	d.Schema = func(declared any) *schema.Schema {
		s := declared.(*Schema).s
		s.Freeze()
		return s
	}
	d.Method = func(descriptor any) *schema.Method { return descriptor.(interface{ method() *schema.Method }).method() }
	d.Class = func(descriptor any) inside.Class {
		c := descriptor.(interface{ class() *class }).class()
		return inside.Class{State: c.nv, Wrap: c.wrap}
	}
	d.NewTick = newClientTick
	d.On = func(l any, reject func(error), s Stage, name string, fn, o any) any {
		return register(l.(*loop.Loop[*Tick]), reject, onSpec(s, name, fn.(func(*Tick)), o.([]SystemOption)))
	}
	d.Add = func(l any, reject func(error), name string, ask, o any) any {
		return register(l.(*loop.Loop[*Tick]), reject, addSpec(name, ask.(func(Stage) func(*Tick)), o.([]SystemOption)))
	}
	d.Group = func(l any, reject func(error), name string, o any) any {
		return register(l.(*loop.Loop[*Tick]), reject, groupSpec(name, o.([]SystemOption)))
	}
	d.Loop = func(l any, reject func(error)) any { return newLoop(l.(*loop.Loop[*Tick]), reject) }
	d.Server = func(server any) inside.Server { return &memoryServer{server.(*Server)} }
	return true
}

func newClientTick(cfg inside.TickConfig) inside.Tick {
	ts := new(timers)
	t := &Tick{now: cfg.Now, store: cfg.Store, timers: ts, rand: cfg.Rand, log: cfg.Log}
	return inside.Tick{Tick: t, RunTimers: func() { ts.run(t) }}
}

// memoryServer drives a server on one goroutine, in virtual time.
type memoryServer struct{ s *Server }

func (m *memoryServer) UseClock(c loop.Clock)      { m.s.clock = c }
func (m *memoryServer) Schema() any                { return m.s.schema }
func (m *memoryServer) Handler() transport.Handler { return admission{m.s} }
func (m *memoryServer) Timeline() loop.Timeline    { return m.s.room.timeline() }
func (m *memoryServer) Step(in loop.Input) error   { return m.s.room.step(in) }
func (m *memoryServer) Overload() uint8            { return m.s.room.nextOverload() }
func (m *memoryServer) Stages() []loop.DumpStage   { return m.s.room.loop.Dump() }

func (m *memoryServer) View() loop.View { return m.s.room.snapshotLoop(m.s.room.in.Tick) }

func (m *memoryServer) Inspect(fn func(tick any)) error {
	m.s.room.feed.unrecorded("a look between two ticks, which may change the state")
	return m.s.room.inspect(func(t *Tick) { fn(t) })
}

func (m *memoryServer) OnSnapshot(look func(tick any, w *netvar.World)) {
	r := m.s.room
	r.looks = append(r.looks, func(t *Tick) { look(t, r.world) })
}

func (m *memoryServer) OnMisuse(tell func(text string)) { m.s.room.misuses.tell = tell }

func (m *memoryServer) Settle() { m.s.room.async.settle() }

func (m *memoryServer) Drain(limit time.Duration) error {
	m.s.endAdmission(CodeClosing, "the server is closing")
	return m.s.room.tellDrain(limit)
}

func (m *memoryServer) Lingers(elapsed, limit time.Duration) bool {
	return m.s.room.lingers(elapsed, limit)
}

func (m *memoryServer) Finish(code transport.Code, text string) error {
	m.s.endAdmission(code, text)
	return m.s.room.finish(LeaveReason{code, text})
}

// reseed starts the room's random numbers.
func (r *Room) reseed(seed uint64) {
	r.tick.rand = rand.New(rand.NewPCG(seed, seed^0x9e3779b97f4a7c15)) // The golden ratio: any other stream.
}
