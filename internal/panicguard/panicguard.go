// Package panicguard recovers panics of a game's functions, so that a panic ends only its call, and
// logs them.
//
//	defer g.Recover(place, then) ──▶ count ──▶ is it news of this place? ──▶ one line, with stack
//
// Systems are guarded by package loop, which has quarantine. The game's other functions (handlers,
// targets, callbacks) are guarded here. The first panic of a place is logged with its stack.
// Further panics of the place are counted, and one of them is logged per Every: a client that can
// make a function fail must not fill the log, which is bounded.
package panicguard

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"
)

// Every is the minimum time between two lines of the log about the same place.
const Every = 10 * time.Second

// Kind is the kind of a place, as named in the log and its attribute.
type Kind uint8

// The kinds of places.
const (
	Hook    Kind = iota // a function that the game has given to netloop
	Handler             // of a method
)

var kinds = [...]struct{ says, attr string }{{"a hook", "hook"}, {"a handler", "method"}}

// Place identifies a called function of a game. Their number is limited by the game's declarations,
// so the state per place needs no bound.
type Place struct {
	Kind Kind
	Name string // name of the hook or method: the label of the metric
	Of   string // the class of the hook, if it is a class's
	So   string // the consequence of a panic, if it is not obvious
}

// Guard guards the functions of one owner. Any goroutine may use it.
type Guard struct {
	Log   *slog.Logger
	Now   func() time.Duration // the clock of Every
	Count func(name string)    // called for each panic

	mu   sync.Mutex
	told Throttle[place]
}

// place is the comparable key of a Place.
type place struct {
	kind     Kind
	name, of string
	panics   bool // otherwise errors
}

// Recover is deferred around a call of a game's function. After a panic it calls then, unless that
// is nil, with the panic as an error. Without a panic it costs almost no time.
func (g *Guard) Recover(at *Place, then func(error)) {
	if v := recover(); v != nil {
		g.Panicked(at, v, nil)
		if then != nil {
			then(fmt.Errorf("%s panicked: %v", at.Name, v))
		}
	}
}

// Panicked logs a panic that the caller has recovered, on the goroutine of the panic. Without a
// stack it uses its own.
func (g *Guard) Panicked(at *Place, v any, stack []byte, attrs ...any) {
	g.Count(at.Name)
	kept, ok := g.news(at, true)
	if !ok {
		return
	}
	if stack == nil {
		stack = debug.Stack()
	}
	g.tell(at, "panicked", kept, append(attrs, "panic", fmt.Sprint(v), "stack", string(stack)))
}

// Failed logs an error of a game's function that is reported nowhere else.
func (g *Guard) Failed(at *Place, err error, attrs ...any) {
	if kept, ok := g.news(at, false); ok {
		g.tell(at, "failed", kept, append(attrs, "error", err))
	}
}

func (g *Guard) news(at *Place, panics bool) (kept uint64, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.told.News(place{at.Kind, at.Name, at.Of, panics}, g.Now())
}

func (g *Guard) tell(at *Place, did string, kept uint64, attrs []any) {
	kind := &kinds[at.Kind]
	all := []any{kind.attr, at.Name}
	if at.Of != "" {
		all = append(all, "of", at.Of)
	}
	if at.So != "" && did == "panicked" {
		all = append(all, "so", at.So)
	}
	g.Log.Error(kind.says+" "+did, append(append(all, attrs...), "unlogged_before", kept)...)
}
