package simulation

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/netlooptest"
	"github.com/netloop/netloop/persist"
)

// keeps is the store of the rooms' purses, and checks package persist. The documents: the comments
// of package persist, of persist.Store and of persist.Config.
//
//   - The calls for a room never overlap. Each save is whole and newer than the one before, and is
//     refused if a newer room has loaded the record. The room that is refused closes.
//   - A room loads the last record that was stored. One whose record cannot be loaded does not
//     open, and says so.
//   - A change is stored within an interval, or when the store works again: a crash loses no more.
//     The end of a room stores the rest. Saves begin an interval apart.
//   - A replay calls no store.
type keeps struct {
	p      *play
	store  *netlooptest.Store
	keeper *persist.Keeper

	mu      sync.Mutex // calls begin beside ticks
	rows    map[string]*keptRow
	rooms   map[uint64]*keptRoom // by incarnation
	fails   bool
	stalls  bool
	tears   bool            // the next save
	hangs   bool            // the next save, for hanging
	calm    time.Duration   // end of the last trouble
	slowest time.Duration   // latency so far
	usurped map[string]bool // keys
	trouble bool            // there was any
	calls   int             // in a replay
}

// keptRow is a record of the store.
type keptRow struct {
	owner  uint64
	record []byte
	whole  []byte // the last record that was stored as a whole
	torn   bool
}

// keptRoom is a room with a record.
type keptRoom struct {
	key     roomKey
	every   time.Duration
	opened  time.Duration
	opens   bool         // the record is loaded
	changes []keptChange // that are not stored
	calls   int          // under way
	numbers int          // of calls
	saves   int
	fails   int // in a row
	failed  time.Duration
}

type keptChange struct {
	n  uint64
	at time.Duration
}

// storeTimeout bounds a call, as the driver of a database does.
const storeTimeout = 5 * time.Second

// hanging is the time of a save that ignores the end of its context: longer than the end of a room
// waits for work.
const hanging = 9 * time.Second

func newKeeps(p *play) *keeps {
	k := &keeps{p: p, store: new(netlooptest.Store), rows: map[string]*keptRow{}, rooms: map[uint64]*keptRoom{}, usurped: map[string]bool{}}
	k.keeper = persist.New(k)
	return k
}

// call calls the store.
func (k *keeps) call(ctx context.Context, key string, inc uint64, do func(ctx context.Context) error) error {
	if k.p.shadow {
		k.calls++
		return nil
	}
	leave := k.p.enter()
	k.mu.Lock()
	r := k.rooms[inc]
	if r == nil {
		r = &keptRoom{opened: k.p.rooms.now()}
		k.rooms[inc] = r
	}
	r.numbers++
	r.calls++
	overlap := r.calls > 1
	// Calls have unequal ends.
	wait, limit := k.p.saves.latency+time.Duration(inc%1000*100+uint64(r.numbers)%100+1), storeTimeout
	if k.hangs && !k.p.calm && r.opens {
		ctx, wait, limit, k.hangs = context.WithoutCancel(ctx), wait+hanging, 2*hanging, false
	}
	k.mu.Unlock()
	leave()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var err error
	select {
	case <-time.After(wait):
		err = do(ctx)
	case <-ctx.Done():
		err = ctx.Err()
	}
	defer k.p.enter()()
	k.mu.Lock()
	defer k.mu.Unlock()
	if limit > storeTimeout {
		k.calm = k.p.rooms.now()
	}
	if r.calls--; overlap {
		k.p.fail("keeps", "two calls of the room of incarnation %d overlap", inc)
	}
	row := k.rowOf(key)
	if !k.p.real && row.owner > inc != errors.Is(err, persist.ErrSuperseded) && (err == nil || errors.Is(err, persist.ErrSuperseded)) {
		k.p.fail("keeps", "%s is of %d, and a call of %d returns %v", key, row.owner, inc, err)
	}
	if err == nil {
		row.owner = inc
	}
	return err
}

func (k *keeps) rowOf(key string) *keptRow {
	if k.rows[key] == nil {
		k.rows[key] = &keptRow{}
	}
	return k.rows[key]
}

// Load implements persist.Store.
func (k *keeps) Load(ctx context.Context, key string, inc uint64) (record []byte, err error) {
	err = k.call(ctx, key, inc, func(ctx context.Context) error { record, err = k.store.Load(ctx, key, inc); return err })
	return record, err
}

// Save implements persist.Store.
func (k *keeps) Save(ctx context.Context, key string, inc uint64, record []byte) error {
	err := k.call(ctx, key, inc, func(ctx context.Context) error { return k.store.Save(ctx, key, inc, record) })
	k.saved(key, inc, record, err)
	return err
}

// Delete implements persist.Store.
func (k *keeps) Delete(ctx context.Context, key string, inc uint64) error {
	err := k.call(ctx, key, inc, func(ctx context.Context) error { return k.store.Delete(ctx, key, inc) })
	k.saved(key, inc, nil, err)
	return err
}

// saved notes the result of a save.
func (k *keeps) saved(key string, inc uint64, record []byte, err error) {
	if k.p.shadow {
		return
	}
	defer k.p.enter()()
	k.mu.Lock()
	defer k.mu.Unlock()
	r, row, now := k.rooms[inc], k.rowOf(key), k.p.rooms.now()
	k.p.note("%s of %d is stored: %v", key, inc, err)
	if err != nil {
		r.fails, r.failed = r.fails+1, now
		if errors.Is(err, persist.ErrSuperseded) {
			k.p.ends.tell(r.key, 0)
		}
		if have := k.store.Record(key); !bytes.Equal(have, row.record) {
			row.record, row.torn, k.tears = have, true, false
		}
		return
	}
	var s purse
	if record != nil && (json.Unmarshal(record, &s) != nil || !s.whole()) {
		k.p.fail("keeps", "%s of %d is stored as %.80s", key, inc, record)
	}
	row.record, row.whole, row.torn = record, record, false
	r.fails = 0
	r.saves++
	at := -1
	for i, c := range r.changes {
		if c.n == s.N {
			at = i
		}
	}
	if at < 0 && len(r.changes) > 0 {
		k.p.fail("keeps", "%s of %d has stored %d, and its changes are %v", key, inc, s.N, r.changes)
	}
	r.changes = r.changes[at+1:]
}

// loaded notes the result of Keep.
func (k *keeps) loaded(key roomKey, every time.Duration, stored *purse, err error) {
	if k.p.shadow {
		return
	}
	defer k.p.enter()()
	k.mu.Lock()
	defer k.mu.Unlock()
	name := purseOf(key.name)
	row := k.rowOf(name)
	var want purse
	whole := row.record == nil || json.Unmarshal(row.record, &want) == nil
	var refused *netloop.Refusal
	switch {
	case err != nil && errors.As(err, &refused):
		if refused.Code != netloop.CodeBusy || !strings.Contains(refused.Text, "cannot be loaded") || !k.trouble {
			k.p.fail("keeps", "room %q is refused: %v", key.name, err)
		}
	case err != nil:
		if whole || !strings.Contains(err.Error(), name) {
			k.p.fail("keeps", "room %q cannot read %.80s: %v", key.name, row.record, err)
		}
	case !whole || (stored == nil) != (row.record == nil) || stored != nil && (stored.N != want.N || !stored.whole()):
		k.p.fail("keeps", "room %q has loaded %v, and the record is %.80s", key.name, stored, row.record)
	}
	if every == 0 {
		every = 5 * time.Second
	}
	r := k.rooms[key.inc]
	r.key, r.every, r.opened, r.opens = key, max(every, 0), k.p.rooms.now(), err == nil
}

// changed notes a change of a purse.
func (k *keeps) changed(key roomKey, n uint64) {
	if k.p.shadow {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	r := k.rooms[key.inc]
	r.changes = append(r.changes, keptChange{n, k.p.rooms.now()})
}

// set begins or ends a trouble of the store: 1 fails, 2 stalls, 3 tears, 4 hangs, others end all.
func (k *keeps) set(n uint64) {
	k.mu.Lock()
	k.trouble = k.trouble || n > 0
	k.fails, k.stalls, k.tears, k.hangs = n == 1, n == 2, k.tears || n == 3, n == 4
	k.calm = k.p.rooms.now()
	k.mu.Unlock()
	k.store.Fail(n == 1)
	k.store.Stall(n == 2)
	if n == 3 {
		k.store.Tear()
	}
	k.p.settle()
}

// usurp loads the record of a room for another process.
func (k *keeps) usurp(room string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	row := k.rows[purseOf(room)]
	if row == nil || k.troubled() {
		return
	}
	k.trouble, k.usurped[purseOf(room)] = true, true
	row.owner++
	if _, err := k.store.Load(context.Background(), purseOf(room), row.owner); err != nil {
		k.p.fail("world", "usurp: %v", err)
	}
}

// idle reports whether no call is under way.
func (k *keeps) idle() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, r := range k.rooms {
		if r.calls > 0 {
			return false
		}
	}
	return true
}

func (k *keeps) troubled() bool { return k.fails || k.stalls || k.tears }

// heal ends all troubles, and mends torn records.
func (k *keeps) heal() {
	k.set(0)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.tears { // The next save would be torn.
		_ = k.store.Save(context.Background(), "spare", 1, nil)
	}
	for key, row := range k.rows {
		if row.torn {
			row.torn, row.record = false, row.whole
			if err := k.store.Save(context.Background(), key, row.owner, row.whole); err != nil {
				k.p.fail("world", "mend: %v", err)
			}
		}
	}
	k.tears = false
}

// check looks for changes that should be stored.
func (k *keeps) check() {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.p.w.Now()
	k.slowest = max(k.slowest, k.p.saves.latency)
	if k.troubled() {
		k.calm = now
		return
	}
	for _, r := range k.rooms {
		f := k.p.rooms.of(r.key)
		if f == nil || len(r.changes) == 0 || r.calls > 0 || k.usurped[purseOf(r.key.name)] {
			continue
		}
		by := max(r.changes[0].at, k.calm+storeTimeout, k.p.rooms.stalled) + r.every
		if r.fails > 0 {
			by = max(by, r.failed+2*min(250*time.Millisecond<<min(r.fails-1, 10), 30*time.Second))
			if k.p.rooms.stalled > r.failed {
				by += k.p.rooms.stalls // The timer of the next attempt stood still, too.
			}
		}
		if by += 8*f.spec.Rate.Period() + 4*nap + 2*k.slowest + k.p.slack(finishing); now > by {
			k.p.fail("keeps", "room %q has changes that are not stored since %v: %v", r.key.name, by, r.changes)
		}
	}
}

// ended looks for changes that were not stored at the end of a room.
func (k *keeps) ended(key roomKey, why *netloop.Closed) {
	k.mu.Lock()
	defer k.mu.Unlock()
	r := k.rooms[key.inc]
	if r == nil || k.p.shadow || k.troubled() || k.usurped[purseOf(key.name)] || why.Code == netloop.CodeInternal {
		return
	}
	if len(r.changes) > 0 {
		k.p.fail("keeps", "room %q has ended with %v, and its changes %v are not stored", key.name, why, r.changes)
	}
	if life := k.p.rooms.now() - r.opened; r.every > 0 && r.saves > int(life/r.every)+3 {
		k.p.fail("keeps", "room %q has saved %d times in %v, and its interval is %v", key.name, r.saves, life, r.every)
	}
}

// forgiven reports whether a text of the log tells of a trouble of the store.
func (k *keeps) forgiven(text string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, part := range []string{"the last changes are lost", "the save before does not end", "a newer room has the state", "belongs to a newer room", "states cannot be stored", "the state of a room cannot be loaded"} {
		if k.trouble && strings.Contains(text, part) {
			return true
		}
	}
	// A room is opened for a client, and its record is not loaded within the time of an admission.
	return k.trouble && strings.Contains(text, "hook=OpenFor ") && strings.Contains(text, "error="+context.DeadlineExceeded.Error())
}
