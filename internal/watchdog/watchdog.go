package watchdog

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/netloop/netloop/internal/loop"
)

// Watchdog watches the ticks of one room, and the hooks at its end. It is safe for use by many
// goroutines, except where its methods say otherwise.
type Watchdog struct {
	limit     time.Duration
	goroutine atomic.Uint64
	// the running tick, or the number of a hook with its top bit set; 0 is none
	tick    atomic.Uint64
	began   atomic.Int64 // when the tick or hook began
	allowed atomic.Int64 // how much longer than limit it may take
	stage   atomic.Uint32
	hook    atomic.Pointer[string] // nil: a tick
	hooks   uint64                 // hooks begun so far; belongs to the goroutine of the ticks
	hung    atomic.Pointer[Hang]   // reported, and has not returned
	hangs   atomic.Uint64
}

// Hang is a tick, or a hook, that did not return.
type Hang struct {
	Hook string // empty: a tick
	Tick uint64
	// Stage is the last stage whose drain of RPCs has begun, 0 if none has. A system that an anchor
	// puts before the drain of its stage is thus reported under the stage before.
	Stage loop.Stage
	For   time.Duration // how long it had run when it was reported
}

// Error describes the hang and its place.
func (h *Hang) Error() string {
	if h.Hook != "" {
		return fmt.Sprintf("%s hangs: it has not returned for %v", h.Hook, h.For.Round(time.Millisecond))
	}
	return fmt.Sprintf("tick %d hangs: it has not returned for %v, stage %v", h.Tick, h.For.Round(time.Millisecond), h.Stage)
}

// New returns a watchdog for ticks that take at most limit. With 0 or less it never reports.
func New(limit time.Duration) *Watchdog { return &Watchdog{limit: limit} }

// SetGoroutine records that the calling goroutine runs the ticks: Dump shows it first.
func (w *Watchdog) SetGoroutine() { w.goroutine.Store(currentGoroutine()) }

// Begin records the start of a tick; at is the time of Check's clock.
func (w *Watchdog) Begin(tick uint64, at time.Duration) {
	w.stage.Store(0)
	w.began.Store(int64(at))
	w.tick.Store(tick)
}

// BeginHook records the start of a hook between two ticks or after the last; allowed is how much
// longer than the limit it may take. End ends it.
func (w *Watchdog) BeginHook(name string, allowed, at time.Duration) {
	w.hooks++
	w.hook.Store(&name)
	w.allowed.Store(int64(allowed))
	w.Begin(1<<63|w.hooks, at)
}

// Stage records the stage of the tick.
func (w *Watchdog) Stage(s loop.Stage) { w.stage.Store(uint32(s)) }

// End records that the tick or hook has returned, or that its goroutine has ended. It returns its
// reported hang, or nil.
func (w *Watchdog) End() *Hang {
	w.tick.Store(0)
	w.hook.Store(nil)
	w.allowed.Store(0)
	return w.hung.Swap(nil)
}

// Check returns the hang of the running tick or hook, if it takes longer than its limit and was not
// returned before. Only one goroutine may call it.
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
		w.hung.Store(nil) // It returned just now, and its End may have run too early to see this.
		return Hang{}, false
	}
	w.hangs.Add(1)
	return h, true
}

// Err returns the current *Hang, nil without one.
func (w *Watchdog) Err() error {
	if h := w.hung.Load(); h != nil {
		return h
	}
	return nil
}

// Hangs returns the number of reported hangs.
func (w *Watchdog) Hangs() uint64 { return w.hangs.Load() }
