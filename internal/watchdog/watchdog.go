package watchdog

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/netloop/netloop/internal/loop"
)

// Watchdog watches the ticks of one room, and the hooks that bring it to its end. Safe for use by
// many goroutines, but for what says otherwise.
type Watchdog struct {
	limit     time.Duration
	goroutine atomic.Uint64
	tick      atomic.Uint64 // that runs, or the number of a hook with its top bit set; 0 is none
	began     atomic.Int64  // when it did
	allowed   atomic.Int64  // how much longer than limit it may take
	stage     atomic.Uint32
	hook      atomic.Pointer[string] // nil: a tick
	hooks     uint64                 // that have begun; of the goroutine of the ticks
	hung      atomic.Pointer[Hang]   // reported, and has not returned
	hangs     atomic.Uint64
}

// Hang is a tick, or a hook, that did not return.
type Hang struct {
	Hook string // empty: a tick
	Tick uint64
	// Stage is the last one whose RPCs were drained: a system that an anchor puts before
	// the drain of its stage counts to the stage before. 0 is before the first.
	Stage loop.Stage
	For   time.Duration // how long, when it was noticed
}

// Error says what hangs and where.
func (h *Hang) Error() string {
	if h.Hook != "" {
		return fmt.Sprintf("%s hangs: it has not returned for %v", h.Hook, h.For.Round(time.Millisecond))
	}
	return fmt.Sprintf("tick %d hangs: it has not returned for %v, stage %v", h.Tick, h.For.Round(time.Millisecond), h.Stage)
}

// New returns a watchdog for ticks that take at most limit. One of 0 or less never reports.
func New(limit time.Duration) *Watchdog { return &Watchdog{limit: limit} }

// Adopt says that the calling goroutine runs the ticks: Dump shows it first.
func (w *Watchdog) Adopt() { w.goroutine.Store(current()) }

// Begin says that a tick begins; at is the time of Check's clock.
func (w *Watchdog) Begin(tick uint64, at time.Duration) {
	w.stage.Store(0)
	w.began.Store(int64(at))
	w.tick.Store(tick)
}

// BeginHook says that something begins that the room calls between two ticks or after the
// last, and for how long it may take beyond the limit. End ends it.
func (w *Watchdog) BeginHook(name string, allowed, at time.Duration) {
	w.hooks++
	w.hook.Store(&name)
	w.allowed.Store(int64(allowed))
	w.Begin(1<<63|w.hooks, at)
}

// Stage says which stage the tick has come to.
func (w *Watchdog) Stage(s loop.Stage) { w.stage.Store(uint32(s)) }

// End says that the tick or hook has returned, or that its goroutine is gone. It returns the hang
// that was reported of it, or nil.
func (w *Watchdog) End() *Hang {
	w.tick.Store(0)
	if w.hook.Load() != nil {
		w.hook.Store(nil)
		w.allowed.Store(0)
	}
	if w.hung.Load() == nil {
		return nil
	}
	return w.hung.Swap(nil)
}

// Check looks at the tick or hook that runs, and reports a hang the first time that it sees it. One
// goroutine calls it.
func (w *Watchdog) Check(now time.Duration) (Hang, bool) {
	tick := w.tick.Load()
	h := Hang{Tick: tick, Stage: loop.Stage(w.stage.Load()), For: now - time.Duration(w.began.Load())}
	if hook := w.hook.Load(); hook != nil {
		h.Hook, h.Tick = *hook, 0
	}
	if tick == 0 || w.limit <= 0 || h.For <= w.limit+time.Duration(w.allowed.Load()) || w.hung.Load() != nil || w.tick.Load() != tick {
		return Hang{}, false
	}
	w.hung.Store(&h)
	if w.tick.Load() != tick {
		w.hung.Store(nil) // It returned just now, and its End may have come too early to see this.
		return Hang{}, false
	}
	w.hangs.Add(1)
	return h, true
}

// Err returns the *Hang of what hangs, nil if nothing does.
func (w *Watchdog) Err() error {
	if h := w.hung.Load(); h != nil {
		return h
	}
	return nil
}

// Hangs is how many were reported.
func (w *Watchdog) Hangs() uint64 { return w.hangs.Load() }
