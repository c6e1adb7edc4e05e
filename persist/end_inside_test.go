package persist

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/netloop/netloop"
)

// failing is a store that works again after a time; 0 is never.
type failing struct {
	began   time.Time
	mended  time.Duration
	err     error
	calls   int
	record  string
	waiting bool // each call waits for the end of its context
}

func (f *failing) Load(context.Context, string, uint64) ([]byte, error) { return nil, nil }

func (f *failing) Delete(context.Context, string, uint64) error { return nil }

func (f *failing) Save(ctx context.Context, _ string, _ uint64, record []byte) error {
	f.calls++
	if f.waiting {
		<-ctx.Done()
		return ctx.Err()
	}
	if f.mended == 0 || time.Since(f.began) < f.mended {
		return f.err
	}
	f.record = string(record)
	return nil
}

// The last changes of a room are tried again for 8 s, but not once a newer room has the record, and
// not after the end of the context. A failed room, or one without changes, stores nothing.
func TestTheFinalSaveIsRetried(t *testing.T) {
	ouch := errors.New("ouch")
	for name, c := range map[string]struct {
		store    failing
		code     netloop.Code
		same     bool          // no changes
		busy     bool          // the save before the last one does not end
		min, max time.Duration // until close returns
		calls    int
		stored   bool
		err      error
	}{
		"fails for good":   {store: failing{err: ouch}, min: 7750 * time.Millisecond, max: 7750 * time.Millisecond, calls: 6, err: ouch},
		"works again":      {store: failing{err: ouch, mended: 2 * time.Second}, min: 3750 * time.Millisecond, max: 3750 * time.Millisecond, calls: 5, stored: true},
		"a newer room":     {store: failing{err: ErrSuperseded}, calls: 1, err: ErrSuperseded},
		"does not answer":  {store: failing{waiting: true}, min: time.Minute, max: time.Minute, calls: 6, err: context.DeadlineExceeded},
		"an earlier save":  {busy: true, min: time.Minute, max: time.Minute, err: context.DeadlineExceeded},
		"no changes":       {same: true},
		"a room that fell": {code: netloop.CodeInternal},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &c.store
				store.began = time.Now()
				n := 7
				s := &Saver[int]{cfg: Config[int]{Keeper: New(store), Save: func() *int { return &n }}, calls: make(chan struct{}, 1), changed: !c.same}
				if c.busy {
					s.calls <- struct{}{}
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				err := s.close(ctx, &netloop.Closed{Code: c.code})
				if took := time.Since(store.began); took < c.min || took > c.max || store.calls != c.calls || !errors.Is(err, c.err) || (err == nil) != (c.err == nil) {
					t.Errorf("close has returned after %v and %d calls: %v", took, store.calls, err)
				}
				if c.stored != (store.record == "7") || s.Stored() != (c.stored || c.same) {
					t.Errorf("the record is %q, and stored is %v", store.record, s.Stored())
				}
			})
		})
	}
}

// A save that the store does not answer fails after 10 s, so that it is logged and tried again.
func TestASaveWithoutAnAnswerFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, n := &failing{waiting: true}, 7
		s := &Saver[int]{cfg: Config[int]{Keeper: New(store), Save: func() *int { return &n }}, calls: make(chan struct{}, 1)}
		began := time.Now()
		if err := s.write()(t.Context(), 1); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 10*time.Second {
			t.Errorf("a save without an answer has returned after %v with %v", time.Since(began), err)
		}
	})
}

// A room that was not handed over stores its last changes: the failed attempt has ended.
func TestARoomThatWasNotHandedOverStoresItsChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, n := &failing{began: time.Now(), mended: time.Minute, err: ErrSuperseded}, 7
		s := &Saver[int]{cfg: Config[int]{Keeper: New(store), Save: func() *int { return &n }}, calls: make(chan struct{}, 1), changed: true}
		if err := s.handOver(t.Context()); !errors.Is(err, ErrSuperseded) || s.Stored() {
			t.Errorf("the hand-over has ended with %v, and stored is %v", err, s.Stored())
		}
		s.handed = false
		time.Sleep(time.Minute)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := s.close(ctx, &netloop.Closed{}); err != nil || store.record != "7" || !s.Stored() {
			t.Errorf("close has ended with %v, and the record is %q", err, store.record)
		}
	})
}

// A state that JSON cannot hold is an error, and does not replace the record.
func TestAStateThatCannotBeEncodedIsNotStored(t *testing.T) {
	store, nan := &failing{}, math.NaN()
	s := &Saver[float64]{cfg: Config[float64]{Keeper: New(store), Save: func() *float64 { return &nan }}, calls: make(chan struct{}, 1)}
	if err := s.write()(t.Context(), 1); err == nil || !strings.Contains(err.Error(), "cannot be encoded") || store.calls != 0 {
		t.Errorf("%d calls of the store: %v", store.calls, err)
	}
}

// A save that starts only after a newer state was stored writes nothing: after a failed hand-over
// the store would refuse it, and the room would end.
func TestALateSaveWritesNothing(t *testing.T) {
	store, state := new(failing), 0
	s := &Saver[int]{cfg: Config[int]{Keeper: New(store), Save: func() *int { state++; return new(state) }}, calls: make(chan struct{}, 1)}
	late, last := s.write(), s.write()
	store.err = errors.New("ouch")
	if err := last(t.Context(), 1); err == nil {
		t.Error("a save fails without an error")
	}
	store.mended, store.err = 1, nil
	if err := last(t.Context(), attempts); err != nil || store.record != "2" {
		t.Errorf("%v, stored %q", err, store.record)
	}
	store.err, store.mended = ErrSuperseded, 0
	if err := late(t.Context(), 1); err != nil || store.record != "2" {
		t.Errorf("%v, stored %q", err, store.record)
	}
}
