package netloop

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/netloop/netloop/internal/recording"
	"github.com/netloop/netloop/internal/room"
	"github.com/netloop/netloop/internal/transport"
)

// ErrTooMuchWork is the error of [Go] when 1 024 pieces of work of the room are already running.
var ErrTooMuchWork = errors.New("netloop: too much asynchronous work is under way in this room")

// Go runs work on another goroutine and then, in EarlyUpdate of a later tick, passes its result to
// then. The context of work ends with the room, and not when a client leaves. A room that ends
// waits for its work for 5 s after the last client has left, also for work that OnLeave or a result
// starts then, and delivers the results before OnClose. Then the context ends. Work that does not
// return within a second after that is abandoned: its result is an error, netloop_left_behind_total
// counts it, and the room continues with OnClose. work must not touch the room ([Config] CheckEdits
// finds calls of [Object.State]). If it panics, its result is an error.
//
// At most 1 024 pieces of work of a room run at once; a further one fails with [ErrTooMuchWork].
// Results are delivered in the order in which the work ends. then must not be nil, or its call
// panics and the result is lost. Go panics on a client.
func Go[R any](t *Tick, work func(context.Context) (R, error), then func(*Tick, R, error)) {
	r := t.server("Go")
	started := r.e.Async.Go(room.Work{
		New: func() any { return new(R) },
		Do: func(ctx context.Context, result any) (err error) {
			defer r.offTick.enter()()
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

// Fetch runs work in [Game] Open and returns its result: the state of the room from a database, for
// instance. The result is part of a recording, and a replay returns it without running work. Open
// waits for work; its context ends with that of [Server.OpenRoom], or for a client's [Opener] after
// [Config] AdmitTimeout. Fetch panics outside of Open.
//
// R must be a type that a recording can store, as for [Go]; of an error it stores the text, or all
// of a [*Refusal].
func Fetch[R any](r *Room, work func(context.Context) (R, error)) (result R, err error) {
	if !r.opening {
		panic("netloop: Fetch: call it in Open")
	}
	if r.server.cfg.recorded {
		err = r.nextFetched(&result)
		return result, err
	}
	result, err = work(r.openContext)
	r.fetched = append(r.fetched, newFetched(&result, err))
	return result, err
}

// fetched is a result of Fetch in a recording.
type fetched struct {
	Value   []byte `json:",omitempty"`
	Code    Code   `json:",omitempty"` // of a Refusal
	Text    string `json:",omitempty"` // of an error
	Failed  bool   `json:",omitempty"` // work returned an error
	Unknown string `json:",omitempty"` // why the value is not stored
}

func newFetched(result any, err error) (f fetched) {
	if refused, ok := err.(*Refusal); ok { //nolint:errorlint // As in recordedRefusal.
		f.Code, f.Text, f.Failed = refused.Code, refused.Text, true
	} else if err != nil {
		f.Text, f.Failed = err.Error(), true
	}
	value, err := recording.AppendValue(nil, result)
	if err != nil {
		f.Unknown = err.Error()
	}
	f.Value = value
	return f
}

// nextFetched returns the next recorded result of Fetch.
func (r *Room) nextFetched(result any) error {
	if len(r.fetched) == 0 {
		return errors.New("netloop: Fetch: the recorded room made fewer calls")
	}
	f := r.fetched[0]
	r.fetched = r.fetched[1:]
	if f.Unknown != "" {
		return fmt.Errorf("netloop: Fetch: the recording lacks the result: %s", f.Unknown)
	}
	if err := recording.ReadValue(f.Value, result); err != nil {
		return fmt.Errorf("netloop: Fetch: the recorded result: %w", err)
	}
	switch {
	case !f.Failed:
		return nil
	case f.Code != 0:
		return &Refusal{f.Code, f.Text}
	}
	return errors.New(f.Text)
}

// recordedRefusal returns a *Refusal as the *transport.Refusal that a recording can store, and any
// other error unchanged. publicRefusal is the inverse.
func recordedRefusal(err error) error {
	//nolint:errorlint // A wrapped refusal is stored as another error.
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

// offTick is the set of goroutines that run OnAdmit or work given to [Go], which must not read
// objects. It is nil without Config.CheckEdits; enter then has no effect.
type offTick struct {
	running atomic.Int64 // size of ids; check returns at once while it is 0
	ids     sync.Map     // keys are results of goroutineID
}

// enter adds the calling goroutine to the set until the caller calls the returned function.
func (a *offTick) enter() (leave func()) {
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
func (a *offTick) check() {
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
