package cards

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/netloop/netloop"
)

// kept is a table as the database has it: JSON, or nothing.
type kept struct{ Match []byte }

// save keeps the match, behind the back of the tick: one save at a time, and then what has come of
// it since, so that the newest state is the last to arrive.
func (tb *table) save(t *netloop.Tick) {
	if !tb.unsaved || tb.saving {
		return
	}
	tb.unsaved, tb.saving = false, true
	keep := tb.keep() // The work must not touch the room.
	netloop.Go(t, func(ctx context.Context) (struct{}, error) { return struct{}{}, keep(ctx) }, func(t *netloop.Tick, _ struct{}, err error) {
		tb.saving = false
		if err != nil {
			t.Log().Error("a table was not kept", "error", err)
		}
		tb.save(t)
	})
}

// keep returns what writes the match as it is now. One that has ended is let go of, once its result
// is written.
func (tb *table) keep() func(context.Context) error {
	store, name := tb.g.store, tb.spec.Name
	if m := *tb.match; m.Phase == Over {
		return func(ctx context.Context) error { return store.ended(ctx, name, &m) }
	}
	b, err := json.Marshal(tb.match)
	return func(ctx context.Context) error {
		if err != nil {
			return err
		}
		return store.save(ctx, name, b)
	}
}

// close keeps the table as it is at the end.
func (tb *table) close(ctx context.Context) (err error) {
	if tb.unsaved && tb.match != nil {
		err = tb.keep()(ctx)
	}
	return errors.Join(err, tb.g.store.close())
}
