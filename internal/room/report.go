package room

import (
	"strconv"

	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/metrics"
	"github.com/netloop/netloop/internal/netvar"
	"github.com/netloop/netloop/internal/rpcqueue"
)

// reportEvery is after how many ticks the room's plain counters go to the
// metrics: four times a second, far more often than they are scraped.
func (r *Room) reportEvery() uint64 {
	return max(1, r.spec.Rate.Num/r.spec.Rate.Den/4)
}

// measured is a room as its goroutine reports it: see metrics.Room.
type measured struct{ *Room }

func (m measured) State() *netvar.Stats      { return m.world.Stats() }
func (m measured) Clients(f *metrics.Family) { f.Set(uint64(len(m.clients.list))) }

func (m measured) Depths(f *metrics.Family) {
	for _, s := range loop.Stages() {
		f.Set(uint64(m.rpcs.Depth(s)), stageQueues[s-1])
	}
}

func (m measured) Drops(f *metrics.Family) {
	f.Set(m.unsaid, "rpc", "unanswered")
	f.Set(m.rpcs.Evicted(), "accounts", "evicted")
	f.Set(m.penalties.dropped(), "penalties", "evicted")
}

func (m measured) Messages(f *metrics.Family) {
	m.rpcs.Counts(func(method *rpcqueue.Method, s loop.Stage, o rpcqueue.Outcome, n uint64) {
		f.Set(n, method.Name, s.String(), o.String())
	})
}

func (m measured) MessagesWaited(f *metrics.Family) { f.Set(m.rpcs.Waited()) }

func (m measured) Limits(f *metrics.Family) {
	m.rpcs.LimitCounts(func(limit rpcqueue.Scope, did rpcqueue.Rung, dry bool, n uint64) {
		f.Set(n, limit.String(), did.String(), strconv.FormatBool(dry))
	})
}

func (m measured) Bytes(f *metrics.Family) {
	for _, c := range m.schema.AllClasses() {
		f.Set(m.world.SpentOn(c), c.Name())
	}
	f.Set(m.world.SpentOn(nil), "(despawned)")
}

// FieldBytes makes no series of a field that never took any.
func (m measured) FieldBytes(f *metrics.Family) {
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
