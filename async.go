package netloop

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/netloop/netloop/internal/room"
	"github.com/netloop/netloop/internal/transport"
)

// ErrTooMuchWork is the error of [Go] when 1 024 works of the room are already under way.
var ErrTooMuchWork = errors.New("netloop: too much asynchronous work is under way in this room")

// Go runs work on another goroutine and then, in EarlyUpdate of a later tick, passes its result to
// then. The context is the room's: it ends when the room does, and is not canceled when a client
// leaves. However a room ends, it waits for its work for 5 s after the last client has left, also
// for work that OnLeave or a result starts then, and delivers the results before OnClose. Then the
// context ends. Work that does not return within a second after that is abandoned: its result is an
// error, netloop_left_behind_total counts it, and the room continues with OnClose. work must not
// touch the room ([Config] CheckEdits finds calls of [Object.State]); a panic in it becomes its
// error.
//
// At most 1 024 works of a room are under way at once; a further one gets [ErrTooMuchWork]. Results
// are delivered in the order in which works end. then must not be nil, or its call panics and the
// result is lost. Go panics on a client.
func Go[R any](t *Tick, work func(context.Context) (R, error), then func(*Tick, R, error)) {
	r := t.server("Go")
	started := r.e.Async.Go(room.Work{
		New: func() any { return new(R) },
		Do: func(ctx context.Context, result any) (err error) {
			defer r.asides.enter()()
			*result.(*R), err = work(ctx)
			return recordedRefusal(err)
		},
		Then: func(result any, err error) { then(&r.tick, *result.(*R), publicRefusal(err)) },
	})
	if !started {
		t.AfterFunc(0, func(t *Tick) {
			var zero R
			then(t, zero, ErrTooMuchWork)
		})
	}
}

// recordedRefusal returns a *Refusal as the *transport.Refusal that a recording can store, and any
// other error unchanged. publicRefusal is the inverse.
func recordedRefusal(err error) error {
	//nolint:errorlint // A wrapped refusal is more than a refusal.
	if r, ok := err.(*Refusal); ok && r.Code != 0 {
		return &transport.Refusal{Code: r.Code, Text: r.Text}
	}
	return err
}

func publicRefusal(err error) error {
	if r, ok := err.(*transport.Refusal); ok { //nolint:errorlint // As recordedRefusal made it.
		return &Refusal{r.Code, r.Text}
	}
	return err
}

// asides is the set of goroutines that run work given to [Go] or OnAdmit beside the room's
// goroutine, and must not read objects. It is nil without Config.CheckEdits; enter then does
// nothing.
type asides struct {
	running atomic.Int64 // size of ids; check returns at once while it is 0
	ids     sync.Map     // of goroutineID
}

// enter adds the calling goroutine to the set until the returned function is called.
func (a *asides) enter() (leave func()) {
	if a == nil {
		return func() {}
	}
	id := goroutineID()
	a.ids.Store(id, true)
	a.running.Add(1)
	return func() {
		a.running.Add(-1)
		a.ids.Delete(id)
	}
}

// check panics if the calling goroutine is in the set.
func (a *asides) check() {
	if a.running.Load() == 0 {
		return
	}
	if _, aside := a.ids.Load(goroutineID()); aside {
		panic("netloop: Object.State: this goroutine is not the room's: read the state in the tick, and pass a copy to the work")
	}
}

// goroutineID returns the number of the running goroutine, as a stack trace shows it.
func goroutineID() uint64 {
	var b [64]byte
	id, _, _ := strings.Cut(strings.TrimPrefix(string(b[:runtime.Stack(b[:], false)]), "goroutine "), " ")
	n, _ := strconv.ParseUint(id, 10, 64)
	return n
}
