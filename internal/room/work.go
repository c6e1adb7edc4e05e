package room

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/netloop/netloop/internal/recording"
	"github.com/netloop/netloop/internal/rpcqueue"
)

// Results of the game's work on other goroutines, and posted messages.

// Work is a piece of the game's work on another goroutine.
type Work struct {
	// New allocates the result: a pointer to a value that a recording can store.
	New func() any
	// Do runs on a goroutine of its own and fills in the result.
	Do func(ctx context.Context, result any) error
	// Then passes the result to the game, in EarlyUpdate of a later tick.
	Then func(result any, err error)
}

// async is the room's running work on other goroutines, with its results.
type async struct {
	mu      sync.Mutex
	done    []result        // in the order of arrival; under mu
	running map[uint64]Work // work with a goroutine, by its number; under mu
	changed chan struct{}   // closed at the next result; nil: no goroutine waits for one; under mu
	closed  bool            // no new work is started and no result is accepted; under mu
	spare   []result        // belongs to the room's goroutine
	pending int             // belongs to the room's goroutine
	started uint64          // numbers the work; belongs to the room's goroutine

	// recorded is set in a replay: work whose results are in the recording, by its number. A
	// replay runs no work.
	recorded map[uint64]Work
	streams  map[uint64]*Stream // by number; a replay looks them up
}

// Stream is work on another goroutine that yields many results.
type Stream struct {
	r       *Room
	number  uint64
	work    Work
	waiting atomic.Bool // a result waits for its tick
}

// result is the outcome of a piece of work.
type result struct {
	work  uint64 // its number, from 1
	value any    // made by Work.New
	err   error
	then  func(any, error)
	of    *Stream // nil: the only result of its work
}

// take empties the list of results. The returned slice is valid until the next call.
func (a *async) take() []result {
	clear(a.spare) // Release the values.
	a.mu.Lock()
	defer a.mu.Unlock()
	a.done, a.spare = a.spare[:0], a.done
	return a.spare
}

// maxAsync limits the work of a room that may run at once: each piece is a goroutine and, mostly,
// a connection to another system.
const maxAsync = 1024

var errGoexit = errors.New("netloop: work given to Go ended its goroutine")

// Go runs a piece of work on another goroutine. It reports false if too many are running.
func (r *Room) Go(w Work) bool {
	a := &r.async
	if a.pending >= maxAsync {
		r.metrics.Drops.Add(1, "async", "full")
		return false
	}
	number := a.expect(w)
	if a.recorded != nil {
		return true
	}
	switch {
	case !r.begins(number, w): // The room has ended or was given up: the result is dropped.
		r.metrics.Drops.Add(1, "async", "room_gone")
		return true
	case r.ctx.Err() != nil: // The room ends, and the time for its work has expired.
		a.finish(result{number, w.New(), r.ctx.Err(), w.Then, nil})
		return true
	}
	go func() {
		v := w.New()
		err := errGoexit // Remains the error if the work calls runtime.Goexit.
		defer func() {
			a.finish(result{number, v, err, w.Then, nil})
			r.rouse()
		}()
		err = r.CallAside("Go", func() error { return w.Do(r.ctx, v) })
	}()
	return true
}

// expect counts a piece of work as running and numbers it.
func (a *async) expect(w Work) uint64 {
	a.pending++
	a.started++
	if a.recorded != nil {
		a.recorded[a.started] = w
	}
	return a.started
}

// begins records that work gets a goroutine. It reports false once the room has ended or was given
// up.
func (r *Room) begins(number uint64, w Work) bool {
	a := &r.async
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed || r.life.givenUp.Load() {
		return false
	}
	if a.running == nil {
		a.running = map[uint64]Work{}
	}
	a.running[number] = w
	return true
}

// finish stores the result of a piece of work. Any goroutine may call it.
func (a *async) finish(res result) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return
	}
	delete(a.running, res.work)
	a.done = append(a.done, res)
	if a.changed != nil {
		close(a.changed)
		a.changed = nil
	}
}

// next returns a channel that is closed when a result can be taken. idle reports that there is
// neither a result nor work with a goroutine.
func (a *async) next() (came <-chan struct{}, idle bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.done) > 0 {
		return closedChannel, false
	}
	return a.changedLocked(), len(a.running) == 0
}

// changedLocked returns a channel that is closed at the next result.
func (a *async) changedLocked() <-chan struct{} {
	if a.changed == nil {
		a.changed = make(chan struct{})
	}
	return a.changed
}

var closedChannel = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// busy returns a channel that is closed at the next result; nil if no work has a goroutine.
func (a *async) busy() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.running) == 0 {
		return nil
	}
	return a.changedLocked()
}

// quiet waits until no work has a goroutine, but not longer than limit. Any goroutine may call it.
func (a *async) quiet(limit time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	for {
		c := a.busy()
		if c == nil {
			return
		}
		select {
		case <-c:
		case <-ctx.Done():
			return
		}
	}
}

// close rejects all work and results from now on. It returns results for the running work, ordered
// by number.
func (a *async) close() (left []result) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	for number, w := range a.running {
		left = append(left, result{number, w.New(), errLeftBehind, w.Then, nil})
	}
	slices.SortFunc(left, func(x, y result) int { return cmp.Compare(x.work, y.work) })
	a.running = nil
	return left
}

// Stream registers work that pushes many results. It is not counted as running work, and the end
// of the room does not wait for it. Only New and Then of w are used.
func (r *Room) Stream(w Work) *Stream {
	a := &r.async
	a.started++
	s := &Stream{r: r, number: a.started, work: w}
	if a.streams == nil {
		a.streams = map[uint64]*Stream{}
	}
	a.streams[s.number] = s
	return s
}

// Push stores a result, a value as returned by New. It reports false while the result before still
// waits for its tick, and after the room has ended. Any goroutine may call it.
func (s *Stream) Push(value any) bool {
	if s.r.ctx.Err() != nil || !s.waiting.CompareAndSwap(false, true) {
		return false
	}
	s.r.async.finish(result{s.number, value, nil, s.work.Then, s})
	s.r.rouse()
	return true
}

// Ready reports whether Push would accept a result. Any goroutine may call it.
func (s *Stream) Ready() bool { return s.r.ctx.Err() == nil && !s.waiting.Load() }

// asked reports whether a replay expects a result of a piece of work.
func (a *async) asked(number uint64) bool {
	_, once := a.recorded[number]
	return once || a.streams[number] != nil
}

// replayed decodes the result of a piece of work from its record.
func (a *async) replayed(rec *recording.Result, failed error) (result, error) {
	w, s := a.recorded[rec.Work], a.streams[rec.Work]
	if s != nil {
		w = s.work
	}
	delete(a.recorded, rec.Work)
	v := w.New()
	return result{rec.Work, v, failed, w.Then, s}, recording.ReadValue(rec.Value, v)
}

// some reports whether a result waits. Any goroutine may call it.
func (a *async) some() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.done) > 0
}

// Settle waits until all work is done, and sorts its results by the number of the work.
func (r *Room) Settle() {
	a := &r.async
	for c := a.busy(); c != nil; c = a.busy() {
		<-c
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	slices.SortFunc(a.done, func(x, y result) int { return cmp.Compare(x.work, y.work) })
}

// takeResults passes finished results to the game.
func (r *Room) takeResults() {
	for _, res := range r.feed.results() {
		r.takeResult(&res)
	}
}

func (r *Room) takeResult(res *result) {
	r.markActive()
	if res.of != nil {
		res.of.waiting.Store(false)
	} else {
		r.async.pending--
	}
	// Call has logged the error.
	_ = r.Call("Go", func() error { res.then(res.value, res.err); return nil })
}

// posts queues messages of Post and of other rooms, within limits.
type posts struct {
	mu        sync.Mutex
	items     []rpcqueue.Item // under mu
	fromRooms int             // messages of other rooms among items; under mu
	bytes     int             // encoded size of these; under mu
	each      map[string]int  // their number by sending room; under mu
	closed    bool            // under mu
	spare     []rpcqueue.Item // belongs to the room's goroutine
}

const maxPosts = 1024 // a burst of ten seconds at 100 a second

// The errors of Post.
var (
	ErrFull  = errors.New("netloop: the room's queue of posted messages is full")
	ErrEnded = errors.New("netloop: the room has ended")
)

// Post queues a message of the server itself for one of the next ticks. Any goroutine may call it.
func (r *Room) Post(it rpcqueue.Item) error {
	err := r.Receive(it)
	switch {
	case errors.Is(err, ErrEnded):
		r.metrics.Drops.Add(1, "post", "closed")
	case errors.Is(err, ErrFull):
		r.metrics.Drops.Add(1, "post", "full")
	}
	return err
}

// Receive is Post for a message of another room, which counts a rejected message itself.
func (r *Room) Receive(it rpcqueue.Item) error {
	err := r.queued.add(it)
	if err == nil {
		r.rouse()
	}
	return err
}

// add queues a message, if the limit of its kind permits.
func (p *posts) add(it rpcqueue.Item) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return ErrEnded
	}
	l := roomMessageOf(&it)
	switch {
	case l == nil && len(p.items)-p.fromRooms >= maxPosts,
		l != nil && (p.fromRooms >= maxRoomMessages || p.bytes+l.size > maxWaiting || p.each[l.from.Room] >= maxFromRoom):
		return ErrFull
	case l != nil:
		if p.each == nil {
			p.each = map[string]int{}
		}
		p.each[l.from.Room]++
		p.fromRooms++
		p.bytes += l.size
	}
	p.items = append(p.items, it)
	return nil
}

// take empties the queue. The returned slice is valid until the next call.
func (p *posts) take() []rpcqueue.Item {
	clear(p.spare) // Release the messages.
	p.mu.Lock()
	defer p.mu.Unlock()
	p.items, p.spare = p.spare[:0], p.items
	p.fromRooms, p.bytes = 0, 0
	clear(p.each)
	return p.spare
}

// some reports whether a message waits. Any goroutine may call it.
func (p *posts) some() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.items) > 0
}

// close returns the waiting messages, and rejects later ones: no tick would take them.
func (p *posts) close() (dropped []rpcqueue.Item) {
	p.mu.Lock()
	defer p.mu.Unlock()
	dropped = p.items
	p.items, p.fromRooms, p.closed = nil, 0, true
	return dropped
}

// closePosts drops the waiting messages, because no tick follows. Any goroutine may call it.
func (r *Room) closePosts() {
	for _, it := range r.queued.close() {
		if l := roomMessageOf(&it); l != nil {
			l.gone()
			continue
		}
		r.metrics.Drops.Add(1, "post", "closed")
	}
}

// takePosts queues messages that other goroutines have posted.
func (r *Room) takePosts() {
	for _, it := range r.feed.posts() {
		r.markActive()
		out := r.rpcs.Push(it)
		if l := roomMessageOf(&it); l != nil && !out.Queued() {
			l.refused(&it, out)
		}
	}
}
