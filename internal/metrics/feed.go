package metrics

import (
	"math"
	"strconv"
	"time"
)

// The methods below feed what ObserveTick does not see. Add takes a difference, Set the
// running total of whoever counts; one source uses one of them. Any goroutine may call
// them; none of them blocks or, for known labels, allocates.

// Directions of traffic, seen from this process.
const (
	In  = "in"
	Out = "out"
)

// ObserveFlushLag takes the time from a flush to the last datagram of one client accepted
// by the transport. Waiting for the client's congestion window is choke, not flush lag.
func (m *Metrics) ObserveFlushLag(d time.Duration) { m.flushLag.Observe(d.Seconds()) }

// SetClients says how many clients the room has.
func (m *Metrics) SetClients(n int) { m.clients.set(natural(n)) }

// SetOverload says how far up the overload ladder the room is.
func (m *Metrics) SetOverload(level uint8) { m.overload.set(uint64(level)) }

// SetTimeScale says how fast the room's scaled time runs.
func (m *Metrics) SetTimeScale(scale float64) { m.timeScaleBits.Store(math.Float64bits(scale)) }

// SetHungTicks takes the total of ticks that the watchdog reported.
func (m *Metrics) SetHungTicks(total uint64) { m.hungTicks.set(total) }

// SetTraces takes the totals of slow ticks by what became of their trace.
func (m *Metrics) SetTraces(written, skipped, failed uint64) {
	m.traces.set(written, "written")
	m.traces.set(skipped, "skipped")
	m.traces.set(failed, "failed")
}

// AddOverloadedTick counts one tick that ran above the ladder's bottom.
func (m *Metrics) AddOverloadedTick() { m.overloadedTicks.add(1) }

// SetRPC takes the total of messages of a method at a stage with one outcome.
func (m *Metrics) SetRPC(method, stage, outcome string, total uint64) {
	m.rpcs.set(total, method, stage, outcome)
}

// SetLimit takes the total of how often a limit of messages did something, or in a dry run
// would have done it.
func (m *Metrics) SetLimit(limit, action string, dry bool, total uint64) {
	m.limits.set(total, limit, action, strconv.FormatBool(dry))
}

// SetRPCsWaited takes the total of messages that waited because the part of a tick that
// messages have was used up.
func (m *Metrics) SetRPCsWaited(total uint64) { m.rpcsWaited.set(total) }

// AddPanic counts one isolated panic outside of the tick record: of a hook or a handler.
func (m *Metrics) AddPanic(name string) { m.panics.add(1, name) }

// SetQuarantined says how many systems do not run because they panicked again and again.
func (m *Metrics) SetQuarantined(n int) { m.quarantined.set(natural(n)) }

// AddDeferred counts one snapshot that was due to a client and could not leave.
func (m *Metrics) AddDeferred(reason string) { m.deferred.add(1, reason) }

// SetQueueDepth says how many entries wait in a queue.
func (m *Metrics) SetQueueDepth(queue string, n int) { m.queueDepth.set(natural(n), queue) }

// AddDrop counts n entries that a queue dropped for a reason.
func (m *Metrics) AddDrop(queue, reason string, n uint64) { m.drops.add(n, queue, reason) }

// SetDrops is AddDrop for a running total.
func (m *Metrics) SetDrops(queue, reason string, total uint64) { m.drops.set(total, queue, reason) }

// SetChoked takes the total of datagrams that waited for a client's congestion window.
func (m *Metrics) SetChoked(total uint64) { m.choked.set(total) }

// SetSnapshots takes the totals of object records and bytes in snapshots.
func (m *Metrics) SetSnapshots(records, bytes uint64) {
	m.snapshotRecords.set(records)
	m.snapshotBytes.set(bytes)
}

// SetClamped takes the total of values that did not fit their field.
func (m *Metrics) SetClamped(total uint64) { m.clamped.set(total) }

// SetHeld takes the total of changed values that captures held back for a reason.
func (m *Metrics) SetHeld(reason string, total uint64) { m.held.set(total, reason) }

// SetVisibility takes the totals of objects that appeared to clients and disappeared from them, while
// they lived.
func (m *Metrics) SetVisibility(shown, hidden uint64) {
	m.visibility.set(shown, "shown")
	m.visibility.set(hidden, "hidden")
}

// SetBadPositions takes the total of positions on grids that are no place there.
func (m *Metrics) SetBadPositions(total uint64) { m.badPositions.set(total) }

// AddMisuse counts one thing that a check found a game do with its state.
func (m *Metrics) AddMisuse(kind string) { m.misuses.add(1, kind) }

// SetSpent takes the total of bytes that the object records of a class took.
func (m *Metrics) SetSpent(class string, total uint64) { m.spent.set(total, class) }

// SetSpentOnField takes the total of bytes of a field; one that never took any makes no series.
func (m *Metrics) SetSpentOnField(class, field string, total uint64) {
	if total > 0 {
		m.spentOnFields.set(total, class, field)
	}
}

// SetWaited takes the total of object records that were owed and left out of a snapshot for a
// reason.
func (m *Metrics) SetWaited(reason string, total uint64) { m.waited.set(total, reason) }

// SetFullStates takes the total of records sent in full for a reason.
func (m *Metrics) SetFullStates(reason string, total uint64) { m.fullStates.set(total, reason) }

// SetTransport takes the totals of packets and bytes in a direction (In or Out).
func (m *Metrics) SetTransport(direction string, packets, bytes uint64) {
	m.packets.set(packets, direction)
	m.bytes.set(bytes, direction)
}

// SetDisconnects takes the total of connections that ended with a code.
func (m *Metrics) SetDisconnects(code string, total uint64) { m.disconnects.set(total, code) }

// SetHandshakes takes the totals of connections that came and of those that were declined.
func (m *Metrics) SetHandshakes(came, declined uint64) {
	m.handshakes.set(came)
	m.refusals.set(declined)
}

// SetLogsDropped takes the total of log lines lost.
func (m *Metrics) SetLogsDropped(total uint64) { m.logsDropped.set(total) }

func natural(n int) uint64 { return uint64(max(n, 0)) }
