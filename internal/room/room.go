package room

import (
	"context"

	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/overload"
	"github.com/netloop/netloop/internal/slowtick"
	"github.com/netloop/netloop/internal/transport"
	"github.com/netloop/netloop/internal/watchdog"
)

// Room is one loop and one game state. The room's goroutine owns it. Other goroutines may call only
// the methods whose comments permit it.
type Room struct {
	core

	// Parts that the room's callers use too.
	Admission  Admission
	Messages   Messages
	Mailbox    Mailbox
	Async      Async
	Inputs     Inputs
	Load       Load
	Scale      TimeScale
	Questions  Questions
	Commands   Commands
	Stats      Stats
	Faults     Faults
	Supervisor Supervisor
	Shutdown   Shutdown
	Transfer   Transfer

	connections connections
	requests    requests
	feed        spectatorFeed
	stall       stall

	arrive      func(*transport.Arrival)           // takeArrival
	arrived     int                                // arrivals of the last poll
	captured    uint64                             // number of the last tick with captured state
	onSnapshot  []func()                           // called after each snapshot
	newSchedule func() (loop.Clock, loop.Schedule) // starts the schedule of ticks
}

// New returns a room without systems and handlers. The game adds them before the room is started.
func New(cfg Config) (*Room, error) {
	r := &Room{core: core{
		cfg: cfg, spec: cfg.Spec, game: cfg.Game, schema: cfg.Schema, clock: cfg.Clock, metrics: cfg.Metrics,
		loop: cfg.Loop, now: cfg.Now, watchdog: watchdog.New(cfg.Watchdog),
	}}
	r.core.open(network{r})
	r.arrive, r.newSchedule = r.takeArrival, r.byClock
	r.assemble()
	r.openSleep()
	if err := r.Messages.open(); err != nil {
		return nil, err
	}
	r.tally = cfg.Metrics.Open(r.spec.Kind)
	return r, nil
}

// assemble creates the room's parts.
func (r *Room) assemble() {
	c := &r.core
	r.Load = Load{core: c, ladder: overload.New(c.spec.Rate.Period())}
	r.Scale = TimeScale{core: c}
	r.Scale.told.Store(new(c.loop.Scale()))
	r.Faults = Faults{core: c}
	r.Faults.checkWorld()
	r.Stats.core, r.Stats.room, r.Stats.transports = c, r, map[string]uint64{}
	if c.cfg.Detail {
		r.Stats.slow.Store(slowtick.New(c.spec.Rate.Period()))
	}
	r.Commands = Commands{core: c, room: r}
	r.Transfer = Transfer{core: c, room: r}
	r.Questions, r.requests, r.stall = Questions{core: c}, requests{core: c}, stall{core: c}
	r.Inputs = Inputs{core: c}
	r.Inputs.prepare()
	r.Async = Async{core: c}
	r.Async.ctx, r.Async.cancel = context.WithCancel(context.Background())
	r.Admission = Admission{core: c, load: &r.Load, scale: &r.Scale, handled: &r.Messages.handled}
	r.Admission.open()
	r.Messages = Messages{core: c, penalise: r.Admission.penalise}
	r.Mailbox = Mailbox{core: c, messages: &r.Messages, async: &r.Async}
	r.connections = connections{core: c, room: r, admission: &r.Admission, messages: &r.Messages, stall: &r.stall}
	r.feed = spectatorFeed{core: c, load: &r.Load, current: &r.Scale}
	r.Supervisor, r.Shutdown = Supervisor{core: c, room: r}, Shutdown{core: c, room: r}
	r.Supervisor.told, r.Supervisor.tell = context.WithCancel(context.Background())
}

// Discard releases a room after a failed Open of its game.
func (r *Room) Discard() {
	r.Async.cancel()
	r.Supervisor.tell()
	r.tally.Close(transport.CodeInternal.Name())
}
