package netloop

import (
	"context"
	"net/url"
	"time"

	"github.com/netloop/netloop/internal/admin"
	"github.com/netloop/netloop/internal/bridge"
	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/netem"
	"github.com/netloop/netloop/internal/netvar/state"
	"github.com/netloop/netloop/internal/room"
	"github.com/netloop/netloop/internal/schema"
)

// The hooks for the packages that build on this one: see package bridge.
var _ = setHooks()

func setHooks() bool {
	d := &bridge.Netloop
	d.Schema = func(declared any) *schema.Schema {
		s := declared.(*Schema).s
		s.Freeze()
		return s
	}
	d.Method = func(descriptor any) *schema.Method { return descriptor.(interface{ method() *schema.Method }).method() }
	d.Input = func(descriptor any) *schema.Input { return descriptor.(interface{ input() *schema.Input }).input() }
	d.Class = func(descriptor any) bridge.Class {
		c := descriptor.(interface{ class() *class }).class()
		return bridge.Class{State: c.nv, Wrap: c.wrap, Predicted: c.predicted}
	}
	d.Object = func(handle any) *state.Object { return handle.(interface{ object() *state.Object }).object() }
	d.Repoint = func(handle any, to *state.Object) {
		handle.(interface{ repoint(to *state.Object) }).repoint(to)
	}
	d.Repeat = func(descriptor, last any, missed int) any {
		return descriptor.(interface {
			repeatAny(last any, missed int) any
		}).repeatAny(last, missed)
	}
	d.Send = func(options any) schema.Send { return sendWith(options.([]SendOption)) }
	d.NewTick = func(cfg bridge.TickConfig) bridge.Tick {
		timers := new(loop.Timers[*Tick])
		t := &Tick{now: cfg.Now, store: cfg.Store, timers: timers, rand: cfg.Rand, log: cfg.Log}
		return bridge.Tick{
			Tick: t, RunTimers: func() { timers.Run(t, t.now) },
			ShiftTimers: func(game, scaled time.Duration) {
				timers.Shift(loop.GameClock, game)
				timers.Shift(loop.ScaledClock, scaled)
			},
		}
	}
	d.Systems = func(l any, reject func(error)) any { return &registry{l.(*loop.Loop[*Tick]), reject} }
	d.Room = func(r any) *room.Room { return r.(*Room).e }
	d.Replay = func(r any) *room.Replay { return r.(*Replay).e }
	d.Server = func(server any) bridge.Server {
		s := server.(*Server)
		return bridge.Server{
			Public: s, Room: s.room.e, SpectatorRoom: s.room.spectatorRoom, Tick: &s.room.tick, Schema: s.schema, Handler: admitter{s}, Local: &s.local,
			UseClock: func(c loop.Clock) { s.clock.Clock = c }, EndAdmission: s.endAdmission, CloseServer: s.closeServer,
			Join: s.joinCluster, Leave: s.leaveCluster, HandOver: func() { s.handOverAll(context.Background()) },
			Adopt: func(take func(bridge.Room)) {
				s.supervisor.start = func(r *Room) {
					take(bridge.Room{Room: r.e, SpectatorRoom: r.spectatorRoom, Tick: &r.tick, Ended: func(err error) { s.roomEnded(r, err) }})
				}
			},
			Tell: s.notify,
			Page: s.page,
			WriterPage: func(ctx context.Context, path string, query url.Values) (any, error) {
				return s.page(admin.AsWriter(ctx), path, query)
			},
			SetIdleTimeout: func(idle time.Duration) { s.idle = idle },
			Simulate:       func(cfg netem.Config) { s.network = &cfg },
		}
	}
	return true
}
