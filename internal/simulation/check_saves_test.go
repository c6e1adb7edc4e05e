package simulation

import (
	"context"
	"errors"
	"time"

	"github.com/netloop/netloop"
)

// saves is a ledger, and checks work given to Go. The documents: the comments of netloop.Go and
// Room.Incarnation, "A room ends" in ARCHITECTURE.md and OPERATING.md.
//
//   - A save is cancelled only when its room has ended, and 5 s after that at the earliest.
//   - Each save runs once, and its result is delivered once, before OnClose.
//   - A save of an older room of a name is refused once a newer one has loaded.
type saves struct {
	p       *play
	latency time.Duration
	failing bool
	all     map[saveKey]*saveFacts
	newest  map[string]uint64 // incarnations that the store has seen
	waits   int
	free    chan struct{} // closed at the very end
}

type saveKey struct {
	key roomKey
	n   uint64
}

type saveFacts struct{ ran, told int }

var errStore = errors.New("the store fails")

func newSaves(p *play) saves {
	return saves{p: p, all: map[saveKey]*saveFacts{}, newest: map[string]uint64{}, free: make(chan struct{})}
}

func (s *saves) asked(key roomKey, n uint64) { s.all[saveKey{key, n}] = &saveFacts{} }

// save writes to the store. 0 is the save of OnClose.
func (s *saves) save(ctx context.Context, key roomKey, n uint64) error {
	if s.p.w == nil {
		return nil
	}
	defer s.p.enter()()
	if f := s.all[saveKey{key, n}]; f != nil {
		if f.ran++; f.ran > 1 {
			s.p.fail("saves", "save %d of room %q runs %d times", n, key.name, f.ran)
		}
	}
	failing := s.failing
	if err := s.waitFor(ctx, s.latency); err != nil {
		return err
	}
	if key.inc < s.newest[key.name] || failing {
		return errStore
	}
	s.newest[key.name] = key.inc
	return nil
}

// grace is the time that work has after the end of its room.
const grace = 5 * time.Second

// wait takes time, unless the context ends, which it must not do early.
func (s *saves) wait(ctx context.Context, d time.Duration) error {
	if s.p.w == nil {
		return nil
	}
	defer s.p.enter()()
	return s.waitFor(ctx, d)
}

// waitFor is wait with the lock of the world, which it releases meanwhile.
func (s *saves) waitFor(ctx context.Context, d time.Duration) error {
	began := time.Now()
	s.waits++
	d += time.Duration(s.waits) // No two end at the same time, in an order that varies.
	s.p.w.unlock()
	ended := s.await(ctx, d)
	s.p.w.lock()
	if took := time.Since(began); ended && took < grace {
		s.p.fail("saves", "a context of work ends %v after the work has begun", took)
	}
	if ended {
		return ctx.Err()
	}
	return nil
}

// await reports whether the context has ended before the time.
func (s *saves) await(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return true
	case <-time.After(d):
	case <-s.free:
	}
	return false
}

// told notes that the result of a save was delivered.
func (s *saves) told(key roomKey, n uint64, err error) {
	f := s.all[saveKey{key, n}]
	if f == nil || s.p.w == nil {
		return
	}
	s.p.note("save %d of room %q is over: %v", n, key.name, err)
	refused := err != nil && !errors.Is(err, errStore) && !errors.Is(err, netloop.ErrTooMuchWork)
	if f.told++; f.told > 1 || f.ran != 1 && err == nil {
		s.p.fail("saves", "save %d of room %q ran %d times and was reported %d times", n, key.name, f.ran, f.told)
	}
	if refused && !errors.Is(err, context.Canceled) {
		s.p.fail("saves", "save %d of room %q: %v", n, key.name, err)
	}
}

// rest looks for saves of running rooms without a result.
func (s *saves) rest() {
	for k, f := range s.all {
		if s.p.rooms.of(k.key) != nil && f.told != 1 {
			s.p.fail("saves", "save %d of room %q ran %d times and was reported %d times", k.n, k.key.name, f.ran, f.told)
		}
	}
}

// release ends the saves of servers that have crashed.
func (s *saves) release() { close(s.free) }
