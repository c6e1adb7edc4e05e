package netlooptest

import (
	"context"
	"errors"
	"sync"

	"github.com/netloop/netloop/persist"
)

// Store is a [persist.Store] in memory with faults that a test controls. The zero Store is empty
// and works. Any goroutine may use it.
type Store struct {
	mu    sync.Mutex
	rows  map[string]storedRow
	saves int
	fails bool
	torn  bool
	stall chan struct{} // closed when the stall ends; nil without one
}

// storedRow is a key of a Store. A nil record is none.
type storedRow struct {
	record []byte
	owner  uint64
}

// ErrStore is the error of a [Store] that fails.
var ErrStore = errors.New("netlooptest: the store fails, as the test wants")

// Fail makes all calls fail from now on, or work again.
func (s *Store) Fail(fail bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fails = fail
}

// Stall lets all calls wait from now on until their context ends, or until Stall is called with
// false. [World.Settle] must not be called meanwhile: it waits for the calls.
func (s *Store) Stall(stall bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stall != nil {
		close(s.stall)
		s.stall = nil
	}
	if stall {
		s.stall = make(chan struct{})
	}
}

// Tear makes the next Save store the first half of its record and fail, as a store that does not
// replace records as a whole does in a crash.
func (s *Store) Tear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.torn = true
}

// Record returns the record of a key, or nil.
func (s *Store) Record(key string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rows[key].record
}

// Saves returns the number of successful calls of Save and Delete.
func (s *Store) Saves() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.saves
}

// Load implements [persist.Store].
func (s *Store) Load(ctx context.Context, key string, incarnation uint64) (record []byte, err error) {
	err = s.call(ctx, key, incarnation, func(r *storedRow) error { record = r.record; return nil })
	return record, err
}

// Save implements [persist.Store].
func (s *Store) Save(ctx context.Context, key string, incarnation uint64, record []byte) error {
	return s.call(ctx, key, incarnation, func(r *storedRow) error {
		if s.torn {
			s.torn, r.record = false, record[:len(record)/2]
			return ErrStore
		}
		r.record = record
		s.saves++
		return nil
	})
}

// Delete implements [persist.Store].
func (s *Store) Delete(ctx context.Context, key string, incarnation uint64) error {
	return s.call(ctx, key, incarnation, func(r *storedRow) error { r.record = nil; s.saves++; return nil })
}

// call runs fn on the row of a key, which the incarnation owns from then on.
func (s *Store) call(ctx context.Context, key string, incarnation uint64, fn func(*storedRow) error) error {
	s.mu.Lock()
	stall := s.stall
	s.mu.Unlock()
	if stall != nil {
		select {
		case <-stall:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	row := s.rows[key]
	switch {
	case s.fails:
		return ErrStore
	case row.owner > incarnation:
		return persist.ErrSuperseded
	}
	row.owner = incarnation
	err := fn(&row)
	if s.rows == nil {
		s.rows = map[string]storedRow{}
	}
	s.rows[key] = row
	return err
}
