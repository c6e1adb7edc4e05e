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
)

// Work is a piece of the game's work on another goroutine.
type Work struct {
	// New allocates the result: a pointer to a value that a recording can store.
	New func() any
	// Do runs on a separate goroutine, and writes the result.
	Do func(ctx context.Context, result any) error
	// Then passes the result to the game, in EarlyUpdate of a later tick.
	Then func(result any, err error)
}

// Async is the room's running work on other goroutines, with its results.
type Async struct {
	*core
	ctx    context.Context // context of the work; ends with the room
	cancel context.CancelFunc

	mu      sync.Mutex
	done    []result        // in the order of arrival; under mu
	running map[uint64]Work // work that has a goroutine, by its number; under mu
	changed chan struct{}   // closed at the next result; nil: no goroutine waits for one; under mu
	closed  bool            // no new work is started and no result is accepted; under mu
	spare   []result        // belongs to the room's goroutine
	pending int             // belongs to the room's goroutine
	started uint64          // number of the newest work; belongs to the room's goroutine

	// recorded is set in a replay: work whose results are in the recording, by its number. A
	// replay runs no work.
	recorded map[uint64]Work
	streams  map[uint64]*Stream // by number; used by a replay
}

// Stream is work on another goroutine that yields many results.
type Stream struct {
	of      *Async
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
	of    *Stream // nil: the work has only this result
}

// take empties the list of results. The returned slice is valid until the next call.
func (a *Async) take() []result {
	clear(a.spare) // Release the values.
	a.mu.Lock()
	defer a.mu.Unlock()
	a.done, a.spare = a.spare[:0], a.done
	return a.spare
}

// maxAsync limits the work of a room that may run at once. Each piece takes a goroutine and,
// usually, a connection to another system.
const maxAsync = 1024

var errGoexit = errors.New("netloop: work given to Go ended its goroutine (runtime.Goexit)")

// Go runs a piece of work on another goroutine. It reports false if maxAsync pieces are running.
func (a *Async) Go(w Work) bool {
	if a.pending >= maxAsync {
		a.metrics.Drops.Add(1, "async", "full")
		return false
	}
	number := a.expect(w)
	if a.recorded != nil {
		return true
	}
	switch {
	case !a.begins(number, w): // The room has ended or was given up: the result is dropped.
		a.metrics.Drops.Add(1, "async", "room_gone")
		return true
	case a.ctx.Err() != nil: // The room ends, and the time for its work has expired.
		a.finish(result{number, w.New(), a.ctx.Err(), w.Then, nil})
		return true
	}
	go func() {
		v := w.New()
		err := errGoexit // Remains the error if the work calls runtime.Goexit.
		defer func() {
			a.finish(result{number, v, err, w.Then, nil})
			a.Sleep.rouse()
		}()
		err = a.CallAside("Go", func() error { return w.Do(a.ctx, v) })
	}()
	return true
}

// expect counts a piece of work as running and numbers it.
func (a *Async) expect(w Work) uint64 {
	a.pending++
	a.started++
	if a.recorded != nil {
		a.recorded[a.started] = w
	}
	return a.started
}

// begins records that a piece of work is about to run on a goroutine. It reports false once the
// room has ended or was given up.
func (a *Async) begins(number uint64, w Work) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed || a.givenUp.Load() {
		return false
	}
	if a.running == nil {
		a.running = map[uint64]Work{}
	}
	a.running[number] = w
	return true
}

// finish stores the result of a piece of work. Any goroutine may call it.
func (a *Async) finish(res result) {
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

// busy returns a channel that is closed at the next result; nil if no work has a goroutine.
func (a *Async) busy() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.running) == 0 {
		return nil
	}
	if a.changed == nil {
		a.changed = make(chan struct{})
	}
	return a.changed
}

// quiet waits until no work has a goroutine, but not longer than limit. Any goroutine may call it.
func (a *Async) quiet(limit time.Duration) {
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

// close rejects all work and results from now on. It returns a result with errLeftBehind for each
// running piece of work, ordered by number.
func (a *Async) close() (left []result) {
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
func (a *Async) Stream(w Work) *Stream {
	a.started++
	s := &Stream{of: a, number: a.started, work: w}
	if a.streams == nil {
		a.streams = map[uint64]*Stream{}
	}
	a.streams[s.number] = s
	return s
}

// Push stores a result; value has the type that New returns. It reports false while the previous
// result still waits for its tick, and after the room has ended. Any goroutine may call it.
func (s *Stream) Push(value any) bool {
	if s.of.ctx.Err() != nil || !s.waiting.CompareAndSwap(false, true) {
		return false
	}
	s.of.finish(result{s.number, value, nil, s.work.Then, s})
	s.of.Sleep.rouse()
	return true
}

// Ready reports whether Push would accept a result. Any goroutine may call it.
func (s *Stream) Ready() bool { return s.of.ctx.Err() == nil && !s.waiting.Load() }

// asked reports whether a replay expects a result of a piece of work.
func (a *Async) asked(number uint64) bool {
	_, once := a.recorded[number]
	return once || a.streams[number] != nil
}

// replayed decodes the result of a piece of work from its record.
func (a *Async) replayed(rec *recording.Result, failed error) (result, error) {
	w, s := a.recorded[rec.Work], a.streams[rec.Work]
	if s != nil {
		w = s.work
	}
	delete(a.recorded, rec.Work)
	v := w.New()
	return result{rec.Work, v, failed, w.Then, s}, recording.ReadValue(rec.Value, v)
}

// some reports whether a result waits. Any goroutine may call it.
func (a *Async) some() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.done) > 0
}

// Settle waits until all work is done, and sorts the results by the number of their work.
func (a *Async) Settle() {
	for c := a.busy(); c != nil; c = a.busy() {
		<-c
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	slices.SortFunc(a.done, func(x, y result) int { return cmp.Compare(x.work, y.work) })
}

// deliver passes finished results to the game.
func (a *Async) deliver() {
	for _, res := range a.source.results() {
		a.deliverOne(&res)
	}
}

func (a *Async) deliverOne(res *result) {
	a.Sleep.markActive()
	if res.of != nil {
		res.of.waiting.Store(false)
	} else {
		a.pending--
	}
	// Call has logged the error.
	_ = a.Call("Go", func() error { res.then(res.value, res.err); return nil })
}

// finishAll waits for the work that was given to Go, and passes its results to the game, which may
// start more work meanwhile. After WorkGrace it ends the context of all work, and new work fails at
// once. At the end the game has got a result for each piece of work; for work that ignores its
// context, the result is errLeftBehind.
func (a *Async) finishAll() error {
	err := a.deliverWithin(WorkGrace)
	a.cancel()
	err = errors.Join(err, a.deliverWithin(cancelGrace))
	left := a.close()
	a.leftBehind(left)
	for _, res := range left {
		ended := a.Watched("Go", 0)
		err = errors.Join(err, a.Inspect(func() { a.deliverOne(&res) }))
		ended()
	}
	return err
}

// deliverWithin passes results to the game until no work is running, but not longer than limit.
func (a *Async) deliverWithin(limit time.Duration) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	for ctx.Err() == nil {
		if came := a.busy(); !a.some() {
			if came == nil {
				return err
			}
			select {
			case <-came:
			case <-ctx.Done():
				return err
			}
		}
		ended := a.Watched("Go", 0)
		err = errors.Join(err, a.Inspect(a.deliver))
		ended()
	}
	return err
}

// errLeftBehind is the result of work for which the room does not wait any longer at its end.
var errLeftBehind = errors.New("netloop: the work ignores the end of its context: the room ends without it")

// leftBehind counts and logs work that the room does not wait for.
func (a *Async) leftBehind(left []result) {
	if len(left) > 0 {
		a.metrics.LeftBehind.Add(uint64(len(left)), "Go")
		a.log.Error("work given to Go ignores the end of its context: the room ends without it", "works", len(left))
	}
}
