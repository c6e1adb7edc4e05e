package history

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/netloop/netloop/internal/netvar/state"
	"github.com/netloop/netloop/internal/recording"
	"github.com/netloop/netloop/internal/room"
)

const (
	// maxKept bounds the bytes of the kept ticks of all rooms of a server. A room of 20 players has
	// 10 MB in a minute.
	maxKept = 64 << 20
	// maxDrops bounds the old ticks that a room's ring drops after each tick. It is more than the
	// one tick that the ring adds, so a ring above its limits becomes smaller.
	maxDrops = 4
)

// Rings keep the last ticks of the rooms of a server.
type Rings struct {
	span  time.Duration
	limit int64
	bytes atomic.Int64 // of the kept ticks of all rooms
}

// NewRings returns Rings that keep the ticks of a time.
func NewRings(span time.Duration) *Rings { return &Rings{span: span, limit: maxKept} }

// Ring keeps the last ticks of a room: the changes and the record of each, and the state before the
// first of them. So a tick costs its own changes, once when it is added and once when it is
// dropped, and no tick copies the whole world.
type Ring struct {
	all  *Rings
	room *room.Room
	head recording.Head
	most uint64 // ticks

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
	g := &Ring{all: s, room: r, head: head, most: uint64((s.span + period - 1) / period), tracker: newTracker(table)}
	g.base.state = &State{classes: table.Classes()}
	r.KeepTicks(g)
	return g
}

// Close forgets the ticks of a room that has ended.
func (g *Ring) Close() {
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
		return nil, refusef(http.StatusNotFound, "the room has run no tick yet")
	}
	f, err := freeze(g.tracker.classes, base, ticks)
	if err != nil {
		return nil, err
	}
	for _, l := range visits {
		f.lanes.add(l)
	}
	spec := g.room.Spec()
	rec := f.recording(fmt.Sprintf("The last %.4g s of %s", g.all.span.Seconds(), cmp.Or(spec.Name, "the default room")), g.room.Schema(), spec)
	rec.kept, rec.head = true, g.room.Head(g.head)
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
