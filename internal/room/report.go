package room

import (
	"context"
	"runtime/trace"
	"strconv"

	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/metrics"
	"github.com/netloop/netloop/internal/netvar"
	"github.com/netloop/netloop/internal/rpcqueue"
	"github.com/netloop/netloop/internal/slowtick"
	"github.com/netloop/netloop/internal/tracedump"
)

// reportEvery is the number of ticks between two reports of the room's plain counters to the
// metrics: four reports a second, far more than scrapes.
func (r *Room) reportEvery() uint64 {
	return max(1, r.spec.Rate.Num/r.spec.Rate.Den/4)
}

// measured is the view of a room that its goroutine reports: see metrics.Room.
type measured struct{ *Room }

func (m measured) State() *netvar.Stats { return m.world.Stats() }
func (m measured) Dropped() (n int) {
	for _, c := range m.clients.list {
		if c.dropped != nil {
			n++
		}
	}
	return n
}

func (m measured) Reel() int {
	if m.camera.reel == nil {
		return 0
	}
	return m.camera.reel.size()
}

func (m measured) Clients() int { return len(m.clients.list) }

func (m measured) Depths(f metrics.Part) {
	for _, s := range loop.Stages() {
		f.Set(uint64(m.rpcs.Depth(s)), stageQueues[s-1])
	}
}

func (m measured) Drops(f metrics.Part) {
	f.Set(m.unanswered, "rpc", "unanswered")
	f.Set(m.rpcs.Evicted(), "accounts", "evicted")
	f.Set(m.penalties.dropped(), "penalties", "evicted")
}

func (m measured) Messages(f metrics.Part) {
	m.rpcs.Counts(func(method *rpcqueue.Method, s loop.Stage, o rpcqueue.Outcome, n uint64) {
		f.Set(n, method.Name, s.String(), o.String())
	})
}

func (m measured) MessagesWaited(f metrics.Part) { f.Set(m.rpcs.Waited()) }

func (m measured) Limits(f metrics.Part) {
	m.rpcs.LimitCounts(func(limit rpcqueue.Scope, did rpcqueue.Rung, dry bool, n uint64) {
		f.Set(n, limit.String(), did.String(), strconv.FormatBool(dry))
	})
}

func (m measured) Bytes(f metrics.Part) {
	for _, c := range m.schema.AllClasses() {
		f.Set(m.world.SpentOn(c), c.Name())
	}
	f.Set(m.world.SpentOn(nil), "(despawned)")
}

// FieldBytes sets no series for a field without any bytes.
func (m measured) FieldBytes(f metrics.Part) {
	for _, c := range m.schema.AllClasses() {
		for i, bytes := range m.world.SpentOnFields(c) {
			if bytes > 0 {
				f.Set(bytes, c.Name(), c.FieldName(i))
			}
		}
	}
}

// stageQueues are the metric labels of the queues of rpcqueue.
var stageQueues = func() (names [loop.NumStages]string) {
	for i, s := range loop.Stages() {
		names[i] = "rpc_" + s.String()
	}
	return names
}()

// report copies the room's plain counters to the metrics.
func (r *Room) report() {
	r.tally.Report(measured{r})
	r.reportMargins()
}

// observeTick records the cost of a tick, if the room has Detail, and requests its trace if the
// tick took longer than its period.
func (r *Room) observeTick(rec *loop.Record) {
	if r.slow == nil {
		return
	}
	f := slowtick.Facts{Overload: uint8(r.Overload()), Clients: len(r.clients.list), Arrivals: r.arrived, Work: r.async.pending}
	for i, s := range loop.Stages() {
		f.Queues[i] = r.rpcs.Depth(s)
	}
	blame := r.slow.Observe(rec, &f)
	if d := r.flight; d != nil && rec.Duration > r.spec.Rate.Period() {
		d.Slow(tracedump.Tick{Number: rec.Tick, Start: rec.Start, Wall: r.in.Wall, Duration: rec.Duration, System: blame.Name})
	}
}

// traced begins a tick's region in an execution trace, and returns its end. Without a running
// trace it costs some nanoseconds.
func traced(tick uint64) func() {
	if !trace.IsEnabled() {
		return untraced
	}
	ctx := context.Background()
	trace.Logf(ctx, "tick", "%d", tick)
	return trace.StartRegion(ctx, "tick").End
}

func untraced() {}
