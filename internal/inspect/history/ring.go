package history

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/netloop/netloop/internal/netvar/state"
	"github.com/netloop/netloop/internal/recording"
	"github.com/netloop/netloop/internal/room"
	"github.com/netloop/netloop/internal/schema"
)

const (
	// maxKept bounds the bytes of the kept ticks of all rooms of a server. A room of 20 players has
	// 10 MB in a minute.
	maxKept = 64 << 20
	// maxDrops bounds the old ticks that a room's ring drops after each tick. It is more than the
	// one tick that the ring adds, so a ring above its limits becomes smaller.
	maxDrops = 4
	// maxEnded bounds the ended rooms of a server whose ticks are kept. endedFor is the time for
	// which they are kept, and they are dropped before those of running rooms.
	maxEnded = 8
	endedFor = 10 * time.Minute
)

// Rings keep the last ticks of the rooms of a server.
type Rings struct {
	span  time.Duration
	limit int64
	bytes atomic.Int64 // of the kept ticks of all rooms

	mu    sync.Mutex
	ended []*Ring // under mu: of ended rooms, the oldest first
	// expires is the time of the server's clock at which the oldest of ended is dropped.
	expires atomic.Int64
}

// NewRings returns Rings that keep the ticks of a time.
func NewRings(span time.Duration) *Rings {
	s := &Rings{span: span, limit: maxKept}
	s.updateLocked()
	return s
}

// end keeps the ring of a room that has ended, instead of older rings beyond the limits and of one
// with the same name.
func (s *Rings) end(g *Ring) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = slices.DeleteFunc(s.ended, func(other *Ring) bool {
		if other.spec.Name != g.spec.Name {
			return false
		}
		other.forget()
		return true
	})
	if len(s.ended) == maxEnded {
		s.dropLocked()
	}
	s.ended = append(s.ended, g)
	s.updateLocked()
}

// dropLocked drops the oldest ended ring.
func (s *Rings) dropLocked() {
	s.ended[0].forget()
	s.ended = slices.Delete(s.ended, 0, 1)
	s.updateLocked()
}

func (s *Rings) updateLocked() {
	s.expires.Store(math.MaxInt64)
	if len(s.ended) > 0 {
		s.expires.Store(int64(s.ended[0].now + endedFor))
	}
}

// release drops the oldest ended ring if its time is over, or if the bytes exceed the limit. A tick
// calls it, so it does not wait.
func (s *Rings) release(now time.Duration) {
	if int64(now) < s.expires.Load() && s.bytes.Load() <= s.limit || !s.mu.TryLock() {
		return
	}
	defer s.mu.Unlock()
	if len(s.ended) > 0 {
		s.dropLocked()
	}
}

// Ended returns the ring of an ended room, if its ticks are still kept.
func (s *Rings) Ended(name string) (g *Ring, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.ended, func(g *Ring) bool { return g.spec.Name == name })
	if i < 0 {
		return nil, false
	}
	return s.ended[i], true
}

// EndedRows lists the ended rooms whose ticks are kept, the newest first.
func (s *Rings) EndedRows() []EndedRow {
	s.mu.Lock()
	defer s.mu.Unlock()
	rows := make([]EndedRow, len(s.ended))
	for i, g := range s.ended {
		rows[len(rows)-1-i] = EndedRow{g.spec.Name, g.tick}
	}
	return rows
}

// Ring keeps the last ticks of a room: the changes and the record of each, and the state before the
// first of them. So a tick costs its own changes, once when it is added and once when it is
// dropped, and no tick copies the whole world.
type Ring struct {
	all    *Rings
	schema *schema.Schema
	spec   room.Spec
	head   recording.Head
	most   uint64 // ticks

	// The room's goroutine changes the base only if the lock is free, because it must not wait for
	// copy.
	base struct {
		sync.Mutex
		state *State // before the first kept tick
		err   error  // why the state is wrong; nil if it is right
	}
	mu     sync.Mutex
	ticks  []keptTick // under mu
	visits []*lane    // under mu: the clients of the kept ticks

	// Only the room's goroutine uses these.
	tracker *tracker
	present presence
	buf     []byte
	now     time.Duration // of the server's clock, at the newest tick
	tick    uint64        // the newest one
}

// keptTick is a tick of a Ring. Its bytes never change.
type keptTick struct {
	info          tickInfo // without the offsets in files
	frame, record []byte
}

// Open makes the ring of a room that has run no tick, and begins to fill it. Close ends it. The
// head describes how to open the room again, for a file of its ticks.
func (s *Rings) Open(r *room.Room, head recording.Head) *Ring {
	table := r.Schema().Classes()
	period := r.Spec().Rate.Period()
	g := &Ring{all: s, schema: r.Schema(), spec: r.Spec(), head: r.Head(head), most: uint64((s.span + period - 1) / period), tracker: newTracker(table)}
	g.base.state = &State{classes: table.Classes()}
	r.KeepTicks(g)
	return g
}

// Close ends the ring of a room that has ended. Its ticks are kept for a while: see Rings.Ended.
func (g *Ring) Close() {
	g.tracker, g.present, g.buf = nil, nil, nil // They refer to the room.
	if g.tick > 0 {
		g.all.end(g)
	}
}

// forget drops all ticks.
func (g *Ring) forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range g.ticks {
		g.all.bytes.Add(-g.ticks[i].bytes())
	}
	g.ticks = nil
}

// entrySize is the memory of a kept tick besides its bytes.
const entrySize = 192

func (k *keptTick) bytes() int64 { return int64(len(k.frame) + len(k.record) + entrySize) }

// Keep implements room.Keeper.
func (g *Ring) Keep(r *room.Room, t *recording.Tick, record []byte) {
	tick := t.Input.Tick
	k := keptTick{info: tickInfo{
		tick: tick, late: int64(t.Input.Start - t.Input.Deadline), changes: g.tracker.observe(r.World(), tick), arrivals: countOf(t),
	}}
	g.buf = g.tracker.appendChanges(g.buf[:0], tick)
	size := len(g.buf)
	b := append(append(make([]byte, 0, size+len(record)), g.buf...), record...)
	k.frame, k.record = b[:size:size], b[size:]
	g.mu.Lock()
	g.present.compare(r.Clients(), tick, &k.info.arrivals, func(joined *lane) { g.visits = append(g.visits, joined) })
	g.ticks = append(g.ticks, k)
	g.mu.Unlock()
	g.all.bytes.Add(k.bytes())
	g.now, g.tick = t.Input.Start, tick
	g.all.release(g.now)
	g.drop(tick)
}

// drop drops the oldest ticks beyond the limits: their changes become part of the base.
func (g *Ring) drop(now uint64) {
	if !g.base.TryLock() {
		return // The ring is being frozen: a later tick drops more.
	}
	defer g.base.Unlock()
	for range maxDrops {
		oldest := &g.ticks[0]
		if len(g.ticks) == 1 || now-oldest.info.tick < g.most && g.all.bytes.Load() <= g.all.limit {
			return
		}
		if err := g.base.state.fold(oldest.frame); err != nil {
			g.base.err = err
		}
		g.all.bytes.Add(-oldest.bytes())
		g.mu.Lock()
		first := g.ticks[1].info.tick
		g.ticks[0] = keptTick{} // release its bytes
		g.ticks = g.ticks[1:]
		g.visits = slices.DeleteFunc(g.visits, func(l *lane) bool { to := l.to.Load(); return to != 0 && to < first })
		g.mu.Unlock()
	}
}

// freeze returns the kept ticks as a recording, which later ticks do not change.
func (g *Ring) freeze() (*Recording, error) {
	base, ticks, visits, err := g.copy()
	if err != nil {
		return nil, err
	}
	if len(ticks) == 0 {
		return nil, refusef(http.StatusNotFound, "no tick of the room is kept")
	}
	f, err := freeze(g.schema.Classes().Classes(), base, ticks)
	if err != nil {
		return nil, err
	}
	for _, l := range visits {
		f.lanes.add(l)
	}
	rec := f.recording(fmt.Sprintf("The last %.4g s of %s", g.all.span.Seconds(), cmp.Or(g.spec.Name, "the default room")), g.schema, g.spec)
	rec.head = g.head
	rec.head.Kept = true
	first, last := ticks[0].info.tick, ticks[len(ticks)-1].info.tick
	rec.progress.outcome.Store(&Outcome{State: Kept, Tick: last, Text: fmt.Sprintf("ticks %d to %d of the running server", first, last)})
	return rec, nil
}

// copy returns the base as a keyframe, and the ticks after it.
func (g *Ring) copy() (base []byte, ticks []keptTick, visits []*lane, err error) {
	g.base.Lock()
	defer g.base.Unlock()
	if g.base.err != nil {
		return nil, nil, nil, g.base.err
	}
	g.mu.Lock()
	ticks = slices.Clone(g.ticks)
	for _, l := range g.visits {
		copied := &lane{id: l.id, subject: l.subject, from: l.from}
		copied.to.Store(l.to.Load())
		visits = append(visits, copied)
	}
	g.mu.Unlock()
	return g.base.state.appendKeyframe(nil), ticks, visits, nil
}

// frozen are kept ticks in the form that answers are read from.
type frozen struct {
	store   *store
	lanes   *lanes
	records bytes.Buffer
}

// freeze stores ticks as a replay does. The first one has all objects as added.
func freeze(classes []*state.Class, base []byte, ticks []keptTick) (*frozen, error) {
	f := &frozen{store: newMemoryStore(classes), lanes: newLanes()}
	st := &State{classes: classes}
	out, err := recording.NewWriter(&f.records, nil)
	if err = errors.Join(err, st.apply(base)); err != nil {
		return nil, err
	}
	for i := range ticks {
		k := &ticks[i]
		k.info.record = int64(f.records.Len())
		t := new(recording.Tick)
		if err := errors.Join(st.apply(k.frame), recording.ReadTick(k.record, t), out.Write(k.record)); err != nil {
			return nil, err
		}
		frame := k.frame
		if i == 0 {
			frame = st.appendKeyframe(nil)
		}
		changes := func(dst []byte) []byte { return append(dst, frame...) }
		if err := errors.Join(f.store.append(k.info, changes), f.store.appendKeyframe(st.appendKeyframe)); err != nil {
			return nil, err
		}
		f.lanes.count(t)
	}
	f.lanes.flush()
	return f, nil
}
