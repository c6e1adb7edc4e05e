package room

import (
	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/rpcqueue"
)

// reportEvery is after how many ticks the room's plain counters go to the
// metrics: four times a second, far more often than they are scraped.
func (r *Room) reportEvery() uint64 {
	return max(1, r.spec.Rate.Num/r.spec.Rate.Den/4)
}

// report hands the room's plain counters to the metrics. They are plain because
// the tick counts often and is scraped rarely.
func (r *Room) report() {
	m := r.metrics
	m.SetClients(len(r.clients.list))
	r.rpcs.Counts(func(method *rpcqueue.Method, s loop.Stage, o rpcqueue.Outcome, n uint64) {
		m.SetRPC(method.Name, s.String(), o.String(), n)
	})
	r.rpcs.LimitCounts(func(limit rpcqueue.Scope, did rpcqueue.Rung, dry bool, n uint64) {
		m.SetLimit(limit.String(), did.String(), dry, n)
	})
	m.SetRPCsWaited(r.rpcs.Waited())
	m.SetDrops("rpc", "unanswered", r.unsaid)
	m.SetDrops("accounts", "evicted", r.rpcs.Evicted())
	m.SetDrops("penalties", "evicted", r.penalties.dropped())
	for _, s := range loop.Stages() {
		m.SetQueueDepth(stageQueues[s-1], r.rpcs.Depth(s))
	}
	state := r.world.Stats()
	m.SetSnapshots(state.Records, state.Bytes)
	m.SetClamped(state.Clamped)
	m.SetVisibility(state.Shown, state.Hidden)
	m.SetBadPositions(state.BadPositions)
	m.SetHeld("threshold", state.BelowThreshold)
	m.SetHeld("interval", state.WithinInterval)
	for _, c := range r.schema.AllClasses() {
		m.SetSpent(c.Name(), r.world.SpentOn(c))
		for i, bytes := range r.world.SpentOnFields(c) {
			m.SetSpentOnField(c.Name(), c.FieldName(i), bytes)
		}
	}
	m.SetSpent("(despawned)", r.world.SpentOn(nil))
	m.SetWaited("packets", state.Waited-state.OverBudget-state.WaitedLarge)
	m.SetWaited("stream", state.WaitedLarge)
	m.SetWaited("budget", state.OverBudget)
	m.SetWaited("shed", state.Shed)
	m.SetFullStates("first", state.FullFirst)
	m.SetFullStates("became_visible", state.FullVisible)
	m.SetFullStates("mask_changed", state.FullMasked)
	m.SetFullStates("requested", state.FullRequested)
	m.SetFullStates("resumed", state.FullResumed)
	m.SetFullStates("evicted", state.FullEvicted)
	m.SetFullStates("large", state.FullLarge)
}

// stageQueues are the metric labels of the queues of rpcqueue.
var stageQueues = func() (names [loop.NumStages]string) {
	for i, s := range loop.Stages() {
		names[i] = "rpc_" + s.String()
	}
	return names
}()
