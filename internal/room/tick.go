package room

import (
	"context"
	"runtime/trace"

	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/transport"
)

// Step runs one tick: the loop runs the systems of the room and of the game, stage by stage.
func (r *Room) Step(in loop.Input) error {
	r.begin(in)
	end := traced(in.Tick)
	rec, err := r.loop.Step(in)
	end()
	r.account(rec)
	if err != nil {
		r.Shutdown.closing = &transport.Closed{Code: transport.CodeInternal, Text: err.Error()}
	}
	if r.Shutdown.closing == nil {
		r.Transfer.run()
	}
	if r.Shutdown.closing != nil {
		return r.cfg.Closed(r.Shutdown.closing.Code, r.Shutdown.closing.Text)
	}
	return nil
}

// begin passes the input of a tick to the parts of the room that depend on it.
func (r *Room) begin(in loop.Input) {
	r.wake()
	r.stall.observe(&in, r.in.Start)
	r.in = in
	r.Shutdown.begin(in.Start)
	r.source.begin(&r.in)
	r.Admission.setEpoch(in.Epoch)
	r.Load.begin(&in)
	r.Messages.begin(&in)
	r.watchdog.Begin(in.Tick, in.Start)
}

// Systems lists the systems of each tick, in the order of the stages.
func (r *Room) Systems() []System {
	run := func(fn func()) func(loop.Stage) { return func(loop.Stage) { fn() } }
	all := append([]System{
		{StartSystem, loop.Initialization, loop.Head, run(r.game.Start), "OnStart functions would not run"},
		{"transport.poll", loop.EarlyUpdate, loop.Head, run(r.poll), "nothing from clients would reach the room"},
		{"rpc.drain", 0, loop.Head, r.Messages.drain, "messages would wait for ever"},
		{TimersSystem, loop.Update, loop.Head, run(r.game.RunTimers), "Tick.AfterFunc would call nothing"},
		{"netvar.snapshot", loop.PreLateUpdate, loop.Tail, run(r.snapshot), "clients would see no state"},
		{"transport.flush", loop.PostLateUpdate, loop.Tail, run(r.flush), "nothing would reach clients"},
	}, r.Inputs.system()...)
	if r.world.Rounds() {
		all = append(all, System{"netvar.round", loop.FixedUpdate, loop.Tail, run(r.world.Round), "clients would predict from other values than the server goes on from"})
	}
	return all
}

// poll is the system transport.poll. It handles the arrivals since the last tick in their order,
// without those that arrive meanwhile; then lost connections, posted messages and results of work.
func (r *Room) poll() {
	for _, c := range r.clients.list {
		c.observeLink()
	}
	r.arrived = 0
	r.feed.join(r)
	r.source.arrivals(r.arrive)
	r.requests.start()
	r.connections.expire()
	r.Mailbox.deliver()
	r.Async.deliver()
	r.Commands.deliver()
	r.connections.closeEmpty()
}

// snapshot is the system netvar.snapshot: it captures the edits since the last tick, and encodes
// packets for each client with the changes that it has not received.
func (r *Room) snapshot() {
	r.world.Capture(r.now.Tick)
	r.captured = r.now.Tick
	turn := r.now.Tick%uint64(r.Load.sendEvery()) == 0
	for _, c := range r.clients.list {
		if c.kicked == nil && c.dropped == nil && (turn || c.due) {
			c.encode(r.now.Tick, r.in.Start)
		}
	}
	r.feed.snapshot()
	for _, fn := range r.onSnapshot {
		fn()
	}
}

// flush is the system transport.flush: it passes each client's batch to its writer, and never
// waits for the network.
func (r *Room) flush() {
	rescaled := r.Scale.changed()
	now := r.clock.Now() // Used to measure flush lag; no decision depends on it.
	for _, c := range r.clients.list {
		if c.dropped == nil {
			c.flush(now, rescaled)
		}
	}
	r.feed.store()
}

// account does the work after a tick: it stops the watchdog, ends the tick in the recording, and
// reports its cost and faults. It also answers waiting questions, and may put the room to sleep.
func (r *Room) account(rec *loop.Record) {
	if h := r.watchdog.End(); h != nil {
		r.log.Warn("a tick that hung has returned", "tick", h.Tick, "took", rec.Duration)
	}
	for _, name := range rec.Cancelled {
		r.source.unrecorded("the end of the context of system " + name)
	}
	r.source.end()
	r.tally.ObserveTick(rec, r.spec.Rate.Period())
	r.Load.observe(rec)
	r.Stats.observe(rec)
	r.Faults.report(rec)
	r.Admission.seats.Ticked(r.clock.Now())
	r.cfg.Server.Ticked()
	r.Questions.answer(rec.Tick)
	if rec.Tick%r.Stats.every() == 0 {
		r.Stats.report()
	}
	r.trySleep()
}

// System is a built-in system, which each room runs. It has a name like the systems of the game, so
// that a game can place its own systems before and after it.
type System struct {
	Name    string
	Stage   loop.Stage // 0: each of the seven stages
	Place   loop.Place
	Run     func(loop.Stage)
	Without string // consequence if a game removes the system
}

// Names of the built-in systems that call the game's OnStart functions and timers.
const (
	StartSystem  = "room.start"
	TimersSystem = "room.timers"
)

// traced begins a region for the tick in an execution trace, and returns the function that ends it.
// It costs some nanoseconds if no trace is running.
func traced(tick uint64) func() {
	if !trace.IsEnabled() {
		return untraced
	}
	ctx := context.Background()
	trace.Logf(ctx, "tick", "%d", tick)
	return trace.StartRegion(ctx, "tick").End
}

func untraced() {}
