// Package panicguard recovers panics of a game's functions, so that a panic costs only its call,
// and logs them.
//
//	defer g.Recover(place, then) ──▶ count ──▶ is it news of this place? ──▶ one line, with stack
//
// Systems are package loop's, which knows quarantine. What a game hands over besides (handlers,
// targets, callbacks) is guarded here. The first panic of a place is told with its stack. Others
// of the same place are counted, and one of them is told each time that Every has passed: a client
// that has found out what makes a function fail must not fill the log, which is bounded.
package panicguard

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"
)

// Every is the least time between two lines of the log about the same place.
const Every = 10 * time.Second

// Kind is what a place is, as the log and its attribute name it.
type Kind uint8

// The kinds of places.
const (
	Hook    Kind = iota // a function that the game has given to netloop
	Handler             // of a method
)

var kinds = [...]struct{ says, attr string }{{"a hook", "hook"}, {"a handler", "method"}}

// Place is where a game's function was called. There are no more places than a game declares
// things, so what is kept of each needs no bound.
type Place struct {
	Kind Kind
	Name string // of the hook or the method: the label of the metric
	Of   string // the class whose hook it is, if it is one's
	So   string // what a panic leads to, if that is not seen by itself
}

// Guard guards the functions of one owner. Any goroutine may use it.
type Guard struct {
	Log   *slog.Logger
	Now   func() time.Duration // by which Every is measured
	Count func(name string)    // called for each panic

	mu   sync.Mutex
	told Throttle[place]
}

// place is a Place without what follows from the rest.
type place struct {
	kind     Kind
	name, of string
	panics   bool // else errors
}

// Recover is deferred around a call of the game's. It calls then, unless that is nil, with the
// panic as an error. Without a panic it costs next to nothing.
func (g *Guard) Recover(at *Place, then func(error)) {
	if v := recover(); v != nil {
		g.Panicked(at, v, nil)
		if then != nil {
			then(fmt.Errorf("%s panicked: %v", at.Name, v))
		}
	}
}

// Panicked takes a panic that somebody else has recovered, on its goroutine. Without a stack it
// takes the one that it is called with.
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

// Failed takes an error that a function of the game has returned, and that nobody else hears of.
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
