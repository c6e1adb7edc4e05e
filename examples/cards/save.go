package cards

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/netloop/netloop"
)

// kept is a table in the database: JSON, or none.
type kept struct{ Match []byte }

// The time until a save that has failed is tried again: twice as long after each failure, up to
// retryMost, plus a random time of at most as much, so that the tables do not retry all at once.
const (
	retryLeast = 250 * time.Millisecond
	retryMost  = 30 * time.Second
)

// save stores the match on another goroutine. One save is under way at a time, or waits for its
// next attempt; the next save stores all changes made meanwhile, so the newest state is stored
// last.
func (tb *table) save(t *netloop.Tick) {
	if !tb.unsaved || tb.saving {
		return
	}
	keep := tb.keep() // The work must not use the room. If this panics, no save is under way.
	tb.unsaved, tb.saving = false, true
	work := func(ctx context.Context) (outcome, error) {
		err := keep(ctx)
		return outcome{Superseded: errors.Is(err, errSuperseded)}, plain(err)
	}
	netloop.Go(t, work, tb.saved)
}

// outcome is the part of a save's result that a recording stores in addition to the error's text.
type outcome struct{ Superseded bool }

// plain reduces an error to its text, which a recording can store. An error of the database holds
// more.
func plain(err error) error {
	if err == nil {
		return nil
	}
	return errors.New(err.Error())
}

// saved takes the outcome of a save.
func (tb *table) saved(t *netloop.Tick, o outcome, err error) {
	if o.Superseded {
		t.Log().Error("a newer room has the table", "error", err)
		t.Room().Close(t, netloop.CodeInternal, "a newer room has the table")
		return
	}
	tb.g.report(t, err)
	if err == nil {
		tb.failures, tb.saving = 0, false
		tb.save(t)
		return
	}
	tb.unsaved = true
	wait := min(retryLeast<<min(tb.failures, 10), retryMost)
	tb.failures++
	t.AfterFunc(wait+time.Duration(t.Rand().Int64N(int64(wait))), func(t *netloop.Tick) {
		tb.saving = false
		tb.save(t)
	})
}

// report logs the first failure of the database and the first success after it, not the failures of
// each table.
func (g *Game) report(t *netloop.Tick, err error) {
	switch failed := err != nil; {
	case g.failing.Swap(failed) == failed:
	case failed:
		t.Log().Error("tables cannot be saved: each is tried again until it is", "error", err)
	default:
		t.Log().Info("tables can be saved again")
	}
}

// keep returns a function that writes the present match. It deletes an ended match once its result
// is written.
func (tb *table) keep() func(context.Context) error {
	store, key := tb.g.store, tb.key
	if m := *tb.match; m.Phase == Over {
		return func(ctx context.Context) error { return store.ended(ctx, key, &m) }
	}
	b, err := json.Marshal(tb.match)
	return func(ctx context.Context) error {
		if err != nil {
			return err
		}
		return store.save(ctx, key, b)
	}
}

// closeAttempts is the number of attempts to store a table at the end of its room, within about 8
// s.
const closeAttempts = 6

// close stores the final state of the table.
func (tb *table) close(ctx context.Context, _ *netloop.Closed) (err error) {
	if tb.unsaved && tb.match != nil {
		keep := tb.keep()
		for n := range closeAttempts {
			if n > 0 {
				wait, cancel := context.WithTimeout(ctx, retryLeast<<(n-1))
				<-wait.Done()
				cancel()
			}
			if err = keep(ctx); err == nil || errors.Is(err, errSuperseded) {
				break
			}
		}
	}
	return errors.Join(err, tb.g.store.close())
}
