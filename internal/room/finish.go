package room

import (
	"context"
	"errors"
	"time"

	"github.com/netloop/netloop/internal/transport"
)

// The end of a room, from its last tick on. Each end (by Close, CloseEmpty, an operator, the end
// of the server, a panic, runtime.Goexit) runs these steps; only a room that hangs is given up
// instead (supervise.go). Each wait has a bound:
//
//	drain        ticks continue while clients are there: for the time of End
//	closePosts   no wait: messages that no tick takes are refused, their senders told
//	leaveAll     OnLeave of each client: the watchdog's limit for each
//	finishWork   work given to Go and its results: WorkGrace for all of it, with a live context;
//	             then cancelGrace for the rest to return; the remaining work is abandoned
//	endSystems   OnRemove: WorkGrace, and the watchdog's limit
//	saveAll      OnClose: SaveTimeout, and the watchdog's limit

const (
	// WorkGrace is how long the end of a room waits for work given to Go before it cancels it.
	WorkGrace = 5 * time.Second
	// cancelGrace is how long work may take to return once its context has ended. Work that takes
	// longer ignores its context.
	cancelGrace = time.Second
	// SaveTimeout bounds OnClose: as long as service managers wait before they kill.
	SaveTimeout = 60 * time.Second
)

// Ended returns why the room ends, once its last tick has run; nil before. Any goroutine may call
// it.
func (r *Room) Ended() *transport.Closed { return r.ended.Load() }

// Finish ends a room that runs no more ticks: each client leaves and is told why, work is
// finished, all systems are removed, and the game saves. A second call runs the steps that the
// first did not begin because a step ended its goroutine.
func (r *Room) Finish(code transport.Code, text string) (err error) {
	r.ending = true
	r.refuse(code, text)
	if r.ended.CompareAndSwap(nil, &transport.Closed{Code: code, Text: text}) {
		r.finishAt.Store(new(r.clock.Now()))
	}
	steps := [...]func() error{
		r.refuseMessages, r.leaveAll, r.closeSessions, r.finishWork, r.endSystems, r.saveAll,
	}
	for r.finished < len(steps) {
		step := steps[r.finished]
		r.finished++
		err = errors.Join(err, step())
		r.exitIfGivenUp()
	}
	r.report()
	r.tally.Close(code.Name())
	return err
}

// refuseMessages drops the messages that wait for a tick, and refuses later ones.
func (r *Room) refuseMessages() error {
	r.closePosts()
	r.dropQueued()
	return nil
}

// leaveAll lets each client leave.
func (r *Room) leaveAll() error {
	return r.Inspect(func() {
		for len(r.clients.list) > 0 {
			ended := r.Watched("OnLeave", 0)
			r.leave(r.clients.list[0], r.ended.Load())
			ended()
		}
	})
}

// closeSessions tells all connections of the room why it ends.
func (r *Room) closeSessions() error {
	err := r.Inspect(func() { r.closeCamera(r.ended.Load()) })
	why := r.ended.Load()
	r.seats.Close(why.Code, why.Text)
	r.tellStall()
	return err
}

// finishWork waits for the work that was given to Go, and passes its results to the game, which
// may start more work meanwhile. After WorkGrace the context of all work ends, and new work fails
// at once. In the end each result has been passed to the game: for work that ignores its context,
// errLeftBehind.
func (r *Room) finishWork() error {
	err := r.resultsWithin(WorkGrace)
	r.cancel()
	err = errors.Join(err, r.resultsWithin(cancelGrace))
	left := r.async.close()
	r.leftBehind(left)
	for _, res := range left {
		ended := r.Watched("Go", 0)
		err = errors.Join(err, r.Inspect(func() { r.takeResult(&res) }))
		ended()
	}
	return err
}

// resultsWithin passes results to the game until no work is running, but not longer than limit.
func (r *Room) resultsWithin(limit time.Duration) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	for ctx.Err() == nil {
		came, idle := r.async.next()
		if idle {
			break
		}
		select {
		case <-came:
		case <-ctx.Done():
			return err
		}
		ended := r.Watched("Go", 0)
		err = errors.Join(err, r.Inspect(r.takeResults))
		ended()
	}
	return err
}

// errLeftBehind is the result of work that the room no longer waits for at its end.
var errLeftBehind = errors.New("netloop: the work ignores the end of its context: the room ends without it")

// leftBehind counts and logs work that the room does not wait for.
func (r *Room) leftBehind(left []result) {
	if len(left) > 0 {
		r.metrics.LeftBehind.Add(uint64(len(left)), "Go")
		r.log.Error("work given to Go ignores the end of its context: the room ends without it", "works", len(left))
	}
}

// endSystems tells each remaining system that it is removed.
func (r *Room) endSystems() error {
	ended := r.Watched("OnRemove", WorkGrace)
	rec := r.loop.End()
	ended()
	for i := range rec.Panics {
		r.metrics.Panics.Add(1, rec.Panics[i].System)
	}
	r.reportFaults(rec)
	return nil
}

// saveAll lets the game save.
func (r *Room) saveAll() error {
	ctx, cancel := context.WithTimeout(context.Background(), SaveTimeout)
	defer cancel()
	return r.game.Close(ctx)
}

// Watched makes the watchdog report a closing hook that does not return, and that may take longer
// than a tick by allowed. The returned function marks the return of the hook; it ends the
// goroutine of a room that was given up meanwhile.
func (r *Room) Watched(hook string, allowed time.Duration) (ended func()) {
	r.watchdog.BeginHook(hook, allowed, r.clock.Now())
	return func() {
		if h := r.watchdog.End(); h != nil {
			r.log.Warn("a hook that hung has returned", "hook", hook)
		}
		r.exitIfGivenUp()
	}
}
