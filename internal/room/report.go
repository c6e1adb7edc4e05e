package room

import (
	"maps"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/metrics"
	"github.com/netloop/netloop/internal/netvar"
	"github.com/netloop/netloop/internal/rpcqueue"
	"github.com/netloop/netloop/internal/slowtick"
	"github.com/netloop/netloop/internal/tracedump"
)

// Stats holds a room's figures for the metrics.
type Stats struct {
	*core
	room       *Room
	slow       atomic.Pointer[slowtick.Log] // nil without Detail and without a recent Watch
	read       atomic.Int64                 // time of the last call of Watch, in ns of the clock
	transports map[string]uint64            // connected clients, by transport
	flight     *tracedump.Dumper            // writes traces of slow ticks; nil without traces
	unread     bool                         // the room is replayed: nothing reads its metrics
}

// Tables returns the number of entries in tables that grow with clients. Only the room's goroutine
// may call it.
func (s *Stats) Tables() map[string]int {
	all := s.room.Admission.seats.Sizes()
	all["clients"] = len(s.clients.list)
	all["peers"] = s.world.Peers()
	maps.Copy(all, s.room.Messages.queue.Sizes())
	return all
}

// Trace sets the recorder of slow ticks. Call it before the first tick.
func (s *Stats) Trace(d *tracedump.Dumper) { s.flight = d }

// Slow returns the log of ticks, or nil without Detail and without a recent Watch. Any goroutine
// may read it.
func (s *Stats) Slow() *slowtick.Log { return s.slow.Load() }

// watchedFor is the time after the last Watch for which a room without Detail keeps its log of
// ticks.
const watchedFor = time.Minute

// Watch returns the log of ticks. Without Detail the log begins with this call, and ends watchedFor
// after the last call. Any goroutine may call it, one at a time.
func (s *Stats) Watch() *slowtick.Log {
	s.read.Store(int64(s.clock.Now()))
	if s.slow.Load() == nil {
		s.slow.Store(slowtick.New(s.spec.Rate.Period()))
	}
	return s.slow.Load()
}

// unwatch drops the log of ticks of a room without Detail, if Watch was not called recently.
func (s *Stats) unwatch() {
	if !s.cfg.Detail && s.slow.Load() != nil && s.clock.Now()-time.Duration(s.read.Load()) > watchedFor {
		s.slow.Store(nil)
	}
}

// Figures returns a few numbers of the room. Any goroutine may call it.
func (s *Stats) Figures() metrics.Figures { return s.tally.Figures() }

// Progress returns the time since the end of the newest tick, and the tick period. Any goroutine
// may call it.
func (s *Stats) Progress() (since, period time.Duration) { return s.tally.Progress() }

// every is the number of ticks between two reports of the room's plain counters to the metrics: for
// four reports a second, which are more frequent than scrapes.
func (s *Stats) every() uint64 {
	return max(1, s.spec.Rate.Num/s.spec.Rate.Den/4)
}

// measured implements metrics.Room: the room's goroutine reports its plain counters through it.
type measured struct{ r *Room }

func (m measured) State() *netvar.Stats { return m.r.world.Stats() }
func (m measured) Dropped() (n int) {
	for _, c := range m.r.clients.list {
		if c.dropped != nil {
			n++
		}
	}
	return n
}

// Transports sets the number of connected clients of each transport that has had a client.
func (m measured) Transports(f metrics.Part) {
	byName := m.r.Stats.transports
	for name := range byName {
		byName[name] = 0
	}
	for _, c := range m.r.clients.list {
		if c.dropped == nil {
			byName[c.Transport()]++
		}
	}
	for name, n := range byName {
		f.Set(n, name)
	}
}

func (m measured) DelayBuffer() int { return m.r.feed.size() }

func (m measured) Clients() int { return len(m.r.clients.list) }

func (m measured) Depths(f metrics.Part) {
	for _, s := range loop.Stages() {
		f.Set(uint64(m.r.Messages.queue.Depth(s)), stageQueues[s-1])
	}
}

func (m measured) Drops(f metrics.Part) {
	f.Set(m.r.Messages.unanswered, "rpc", "unanswered")
	f.Set(m.r.Messages.queue.Evicted(), "accounts", "evicted")
	f.Set(m.r.Admission.penalties.dropped(), "penalties", "evicted")
}

func (m measured) Messages(f metrics.Part) {
	m.r.Messages.queue.Counts(func(method *rpcqueue.Method, s loop.Stage, o rpcqueue.Outcome, n uint64) {
		f.Set(n, method.Name, s.String(), o.String())
	})
}

func (m measured) MessagesWaited(f metrics.Part) { f.Set(m.r.Messages.queue.Waited()) }

func (m measured) Limits(f metrics.Part) {
	m.r.Messages.queue.LimitCounts(func(limit rpcqueue.Scope, did rpcqueue.Rung, dry bool, n uint64) {
		f.Set(n, limit.String(), did.String(), strconv.FormatBool(dry))
	})
}

func (m measured) Bytes(f metrics.Part) {
	for _, c := range m.r.schema.AllClasses() {
		f.Set(m.r.world.SpentOn(c), c.Name())
	}
	f.Set(m.r.world.SpentOn(nil), "(despawned)")
}

// FieldBytes sets the bytes spent on each field of each class. It sets no series for a field
// without any bytes.
func (m measured) FieldBytes(f metrics.Part) {
	for _, c := range m.r.schema.AllClasses() {
		for i, bytes := range m.r.world.SpentOnFields(c) {
			if bytes > 0 {
				f.Set(bytes, c.Name(), c.FieldName(i))
			}
		}
	}
}

// stageQueues holds, for each stage, the metric label of its queue of messages.
var stageQueues = func() (names [loop.NumStages]string) {
	for i, s := range loop.Stages() {
		names[i] = "rpc_" + s.String()
	}
	return names
}()

// report copies the room's plain counters to the metrics.
func (s *Stats) report() {
	if s.unread {
		return
	}
	s.tally.Report(measured{s.room})
	s.unwatch()
	s.room.Inputs.reportMargins()
}

// observe records the cost of a tick, if the room has a log of ticks, and requests a trace if the
// tick took longer than its period.
func (s *Stats) observe(rec *loop.Record) {
	r := s.room
	top := r.Messages.tariff.TakeSpender()
	slow := s.slow.Load()
	if slow == nil {
		return
	}
	f := slowtick.Facts{Overload: uint8(r.Load.Level()), Clients: len(s.clients.list), Arrivals: r.arrived, Work: r.Async.pending}
	if top.Method != nil {
		f.Sender = slowtick.Sender{Client: top.From, Method: top.Method.Name, Cost: top.Cost}
	}
	for i, stage := range loop.Stages() {
		f.Queues[i] = r.Messages.queue.Depth(stage)
	}
	blame := slow.Observe(rec, &f)
	if d := s.flight; d != nil && rec.Duration > s.spec.Rate.Period() {
		d.Slow(tracedump.Tick{Number: rec.Tick, Start: rec.Start, Wall: s.in.Wall, Duration: rec.Duration, System: blame.Name})
	}
}
