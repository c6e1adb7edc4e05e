package room

import (
	"context"
	"runtime/trace"

	"github.com/netloop/netloop/internal/flight"
	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/slowtick"
)

// observeTick remembers what a tick cost, and asks for its trace if that was more
// than its period.
func (r *Room) observeTick(rec *loop.Record) {
	f := slowtick.Facts{Overload: uint8(r.Overload()), Clients: len(r.clients.list), Arrivals: len(r.arrivals), Work: r.async.pending}
	for i, s := range loop.Stages() {
		f.Queues[i] = r.rpcs.Depth(s)
	}
	blame := r.slow.Observe(rec, &f)
	if d := r.flight; d != nil && rec.Duration > r.spec.Rate.Period() {
		d.Slow(flight.Tick{Number: rec.Tick, Start: rec.Start, Wall: r.in.Wall, Duration: rec.Duration, System: blame.Name})
	}
}

// traced begins a tick's region in an execution trace, and returns its end. While
// nobody traces it costs some nanoseconds.
func traced(tick uint64) func() {
	if !trace.IsEnabled() {
		return untraced
	}
	ctx := context.Background()
	trace.Logf(ctx, "tick", "%d", tick)
	return trace.StartRegion(ctx, "tick").End
}

func untraced() {}
