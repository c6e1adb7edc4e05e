package persist

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/netloop/netloop"
)

// Config describes the stored state of a room.
type Config[T any] struct {
	// Keeper has the store. A replay uses none, so it may be nil there.
	Keeper *Keeper
	// Key is the key of the room's record; "" means the name of the room. A room without a name,
	// such as the default room, needs one.
	Key string
	// Save returns the present state; nil deletes the record. It is called between the systems of a
	// tick, and after the last tick. The state is encoded as JSON at once, so it may share memory
	// with the game. It must not be nil.
	Save func() *T
	// Every is the least game time between the beginnings of two saves: zero means 5 s; less than
	// zero saves each change at once, or as soon as the save before it has ended.
	Every time.Duration
}

// The time until a failed call is tried again: twice as long after each failure, up to retryMax,
// plus a random time of at most as much, so that the rooms do not retry all at once.
const (
	retryMin = 250 * time.Millisecond
	retryMax = 30 * time.Second
)

const (
	defaultEvery = 5 * time.Second
	// attempts is the number of attempts to load the state, and to store it at the end of a room.
	// Their pauses take about 8 s.
	attempts = 6
	// callTimeout bounds a call of the store. A store that does not answer counts as failed: its
	// failure is logged, and the newest state is tried again.
	callTimeout = 10 * time.Second
)

// Saver stores the state of one room. It belongs to the room's goroutine.
type Saver[T any] struct {
	cfg         Config[T]
	incarnation uint64
	calls       chan struct{} // holds a value during a call of the store
	begun       uint64        // writes that have begun
	stored      uint64        // newest write that has succeeded, under calls

	handed   bool // the room moves to another server, or a newer one has the state
	changed  bool // since the last save began, or that save has failed
	pending  bool // a save is under way, or its timer runs
	failures int  // saves in a row that have failed
}

// Keep loads the state of a room, nil without a record, and stores it from then on. Call it in
// [netloop.Game] Open, once for each key, and return its error: then the room does not open. The
// error is a [*netloop.Refusal] with [netloop.CodeBusy] if the store fails repeatedly. A record
// that cannot be decoded is kept.
func Keep[T any](r *netloop.Room, c Config[T]) (s *Saver[T], stored *T, err error) {
	if c.Key == "" {
		c.Key = r.Spec().Name
	}
	if c.Key == "" || c.Save == nil {
		return nil, nil, errors.New("persist: Keep: a Config needs a Save, and a Key if the room has no name")
	}
	if c.Every == 0 {
		c.Every = defaultEvery
	}
	s = &Saver[T]{cfg: c, incarnation: r.Incarnation(), calls: make(chan struct{}, 1)}
	record, err := netloop.Fetch(r, func(ctx context.Context) (record []byte, err error) {
		err = repeat(ctx, attempts, func(ctx context.Context) (err error) {
			record, err = c.Keeper.store.Load(ctx, c.Key, s.incarnation)
			return err
		})
		if err != nil {
			r.Log().Error("the state of a room cannot be loaded", "key", c.Key, "error", err)
			return nil, netloop.Refuse(netloop.CodeBusy, "the state of the room cannot be loaded: try again later")
		}
		return record, nil
	})
	if err != nil {
		return nil, nil, err
	}
	if record != nil {
		stored = new(T)
		if err := json.Unmarshal(record, stored); err != nil {
			return nil, nil, fmt.Errorf("persist: the record %q cannot be read: %w", c.Key, err)
		}
	}
	r.OnClose(func(ctx context.Context, why *netloop.Closed) error {
		err := s.close(ctx, why)
		if errors.Is(err, ErrSuperseded) { // The room has lost its name, and has not failed.
			r.Log().Warn("the last changes of the room are lost: a newer room has its state", "key", c.Key)
			return nil
		}
		return err
	})
	r.OnHandOver(netloop.HandOver{Store: s.handOver, Continue: func(ctx context.Context) { s.resume(ctx, r) }})
	return s, stored, nil
}

// repeat calls fn until it succeeds, up to most times, each for at most callTimeout. It ends early
// with ctx, or once the room is superseded.
func repeat(ctx context.Context, most int, fn func(ctx context.Context) error) (err error) {
	for n := range most {
		if n > 0 {
			wait, cancel := context.WithTimeout(ctx, retryMin<<(n-1))
			<-wait.Done()
			cancel()
		}
		call, cancel := context.WithTimeout(ctx, callTimeout)
		err = fn(call)
		cancel()
		if err == nil || errors.Is(err, ErrSuperseded) || ctx.Err() != nil {
			break
		}
	}
	return err
}

// Changed notes that the state has changed. It costs nothing else until the next save.
func (s *Saver[T]) Changed(t *netloop.Tick) {
	s.changed = true
	if !s.pending && !s.handed {
		s.save(t)
	}
}

// Stored reports whether the store has the present state.
func (s *Saver[T]) Stored() bool { return !s.changed && !s.pending }

// save encodes the state and stores it on another goroutine. If Save panics, the next change saves.
func (s *Saver[T]) save(t *netloop.Tick) {
	s.pending = false
	write := s.write()
	s.pending, s.changed = true, false
	next := t.In(max(s.cfg.Every, 0))
	netloop.Go(t, func(ctx context.Context) (struct{}, error) {
		err := write(ctx, 1)
		switch {
		case err == nil:
			return struct{}{}, nil
		case errors.Is(err, ErrSuperseded):
			return struct{}{}, ErrSuperseded
		}
		// A recording cannot store the error of a driver.
		return struct{}{}, errors.New(err.Error())
	}, func(t *netloop.Tick, _ struct{}, err error) { s.saved(t, err, next) })
}

// saved takes the result of a save. The next one may begin at the deadline.
func (s *Saver[T]) saved(t *netloop.Tick, err error, next netloop.Deadline) {
	if errors.Is(err, ErrSuperseded) {
		t.Log().Error("the state of the room belongs to a newer room", "key", s.cfg.Key)
		s.handed = true
		t.Room().CloseSuperseded(t)
		return
	}
	s.report(t, err)
	if err != nil {
		s.changed = true
		wait := min(retryMin<<min(s.failures, 10), retryMax)
		s.failures++
		t.AfterFunc(wait+time.Duration(t.Rand().Int64N(int64(wait))), s.save)
		return
	}
	s.failures = 0
	t.AfterFunc(next.Left(t), func(t *netloop.Tick) {
		s.pending = false
		if s.changed {
			s.save(t)
		}
	})
}

// report logs the first failure of the store and the first success after it, not the failures of
// each room.
func (s *Saver[T]) report(t *netloop.Tick, err error) {
	k := s.cfg.Keeper
	switch failed := err != nil; {
	case k == nil || k.failing.Swap(failed) == failed:
	case failed:
		t.Log().Error("states cannot be stored: each save is tried again until it succeeds", "key", s.cfg.Key, "error", err)
	default:
		t.Log().Info("states can be stored again")
	}
}

// write encodes the present state, and returns the function that stores it, trying up to most
// times. The function waits until no other one calls the store. It does nothing if a newer state
// is stored already: its goroutine may have started late.
func (s *Saver[T]) write() func(ctx context.Context, most int) error {
	keeper, key, incarnation := s.cfg.Keeper, s.cfg.Key, s.incarnation
	s.begun++
	number := s.begun
	state := s.cfg.Save()
	var record []byte
	var err error
	if state != nil {
		record, err = json.Marshal(state)
	}
	call := func(ctx context.Context) error {
		switch {
		case err != nil:
			return fmt.Errorf("the state cannot be encoded: %w", err)
		case state == nil:
			return keeper.store.Delete(ctx, key, incarnation)
		}
		return keeper.store.Save(ctx, key, incarnation, record)
	}
	return func(ctx context.Context, most int) error {
		select {
		case s.calls <- struct{}{}:
			defer func() { <-s.calls }()
		case <-ctx.Done():
			return fmt.Errorf("the save before does not end: %w", ctx.Err())
		}
		if number < s.stored {
			return nil
		}
		err := repeat(ctx, most, call)
		if err == nil {
			s.stored = number
		}
		return err
	}
}

// close stores the last changes. A room that has failed stores none: its state may be half changed.
func (s *Saver[T]) close(ctx context.Context, why *netloop.Closed) error {
	if !s.changed || s.handed || why.Code == netloop.CodeInternal {
		return nil
	}
	if err := s.write()(ctx, attempts); err != nil {
		return fmt.Errorf("persist: %q: the last changes are lost: %w", s.cfg.Key, err)
	}
	s.changed = false
	return nil
}

// handOver stores the state for the room on another server. No field that later ticks read changes,
// so that a replay of a room that continues is the same.
func (s *Saver[T]) handOver(ctx context.Context) error {
	s.handed = true
	if err := s.write()(ctx, attempts); err != nil {
		return fmt.Errorf("persist: %q: %w", s.cfg.Key, err)
	}
	return nil
}

// resume continues after a failed hand-over. The record belongs to the room again, which may have a
// larger incarnation.
func (s *Saver[T]) resume(ctx context.Context, r *netloop.Room) {
	s.handed = false
	if s.incarnation == r.Incarnation() {
		return
	}
	s.incarnation = r.Incarnation()
	err := repeat(ctx, attempts, func(ctx context.Context) error {
		_, err := s.cfg.Keeper.store.Load(ctx, s.cfg.Key, s.incarnation)
		return err
	})
	if err != nil {
		r.Log().Warn("the record of a room that continues may be loaded by an older room", "key", s.cfg.Key, "error", err)
	}
}
