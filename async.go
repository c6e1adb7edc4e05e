package netloop

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/netloop/netloop/internal/recording"
)

// async is the work that a room has under way on other goroutines.
type async struct {
	mu      sync.Mutex
	done    []result // in the order in which they came; under mu
	spare   []result // the room's
	pending int      // the room's
	started uint64   // the room's: numbers the work
	wait    sync.WaitGroup

	// recorded, in a replay, makes the results of work that a recording holds, by its
	// number: nothing is done again.
	recorded map[uint64]func(*recording.Result) (result, error)
}

// result is what a piece of work came to.
type result struct {
	work  uint64 // its number, from 1
	value any    // a *R
	err   error
	then  func(*Tick)
}

// take empties the list of results. What it returns is valid until the next call.
func (a *async) take() []result {
	clear(a.spare) // Let go of the values.
	a.mu.Lock()
	defer a.mu.Unlock()
	a.done, a.spare = a.spare[:0], a.done
	return a.spare
}

// maxAsync is how much work of a room may be under way at once: each is a
// goroutine and, mostly, a connection to something.
const maxAsync = 1024

// ErrTooMuchWork is the error with which [Go] gives up when 1 024 works of the
// room are already under way.
var ErrTooMuchWork = errors.New("netloop: too much asynchronous work is under way in this room")

// Go runs work on another goroutine and then, in EarlyUpdate of a later tick,
// hands its result to then. The context is the room's: it ends when the room
// does, and a client that leaves cancels nothing. A room that ends waits for it
// for 5 s, also for what OnLeave asks for at the very end, and hands over its
// result before OnClose; work that ignores its context keeps Run from returning, until
// the watchdog ([Config]) gives up on it. work must not touch the room; a panic in it becomes its error.
//
// At most 1 024 works of a room are under way at once; then gets [ErrTooMuchWork]
// for one beyond. Results come in the order in which works end. It panics on a
// client.
func Go[R any](t *Tick, work func(context.Context) (R, error), then func(*Tick, R, error)) {
	r := t.server("Go")
	a := &r.async
	if a.pending >= maxAsync {
		var zero R
		r.server.metrics.AddDrop("async", "full", 1)
		t.After(0, func(t *Tick) { then(t, zero, ErrTooMuchWork) })
		return
	}
	a.pending++
	a.started++
	number := a.started
	if a.recorded != nil {
		a.recorded[number] = func(rec *recording.Result) (result, error) {
			v, err := new(R), recordedError(rec)
			return result{number, v, err, func(t *Tick) { then(t, *v, err) }}, recording.ReadValue(rec.Value, v)
		}
		return
	}
	a.wait.Add(1)
	go func() {
		defer a.wait.Done()
		v := new(R)
		err := errGoexit // Work that calls runtime.Goexit gets no further than its call.
		defer func() {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.done = append(a.done, result{number, v, err, func(t *Tick) { then(t, *v, err) }})
		}()
		err = called(&r.aside, "Go", func() (err error) { *v, err = work(r.ctx); return err })
	}()
}

var errGoexit = errors.New("netloop: work given to Go ended its goroutine")

// idle returns a channel that is closed when all work is done. Nothing may be
// started meanwhile.
func (a *async) idle() <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.wait.Wait()
	}()
	return done
}

// settle waits until all work is done, and puts its results in the order in which
// it was asked for.
func (a *async) settle() {
	a.wait.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	slices.SortFunc(a.done, func(x, y result) int { return cmp.Compare(x.work, y.work) })
}

// takeResults hands the results that have come to the game.
func (r *Room) takeResults(t *Tick) {
	for _, res := range r.feed.results() {
		r.async.pending--
		_ = r.call("Go", func() error { res.then(t); return nil }) // The log knows.
	}
}
