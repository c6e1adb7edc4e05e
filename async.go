package netloop

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// async is the work that a room has under way on other goroutines.
type async struct {
	mu      sync.Mutex
	done    []func(*Tick) // results in the order in which they came; under mu
	spare   []func(*Tick) // the room's
	pending int           // the room's
	wait    sync.WaitGroup
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
// result before OnClose; work that ignores its context keeps Run from returning.
// work must not touch the room; a panic in it becomes its error.
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
	a.wait.Add(1)
	go func() {
		defer a.wait.Done()
		var v R
		err := errGoexit // Work that calls runtime.Goexit gets no further than its call.
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("netloop: work given to Go panicked: %v", p)
			}
			a.mu.Lock()
			defer a.mu.Unlock()
			a.done = append(a.done, func(t *Tick) { then(t, v, err) })
		}()
		v, err = work(r.ctx)
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

// takeResults hands the results that have come to the game.
func (r *Room) takeResults(t *Tick) {
	a := &r.async
	a.mu.Lock()
	a.done, a.spare = a.spare[:0], a.done
	a.mu.Unlock()
	for _, then := range a.spare {
		a.pending--
		if err := r.call("Go", func() error { then(t); return nil }); err != nil {
			t.log.Error("the result of asynchronous work was mishandled", "error", err)
		}
	}
	clear(a.spare)
}
