// Package panicguard recovers panics of a game's functions, so that a panic ends only its call, and
// logs them.
//
//	defer g.Recover(fn, then) ──▶ count ──▶ is a line about it due? ──▶ one line, with stack
//
// Systems are guarded by package loop, which has quarantine. This package guards the game's other
// functions (handlers, targets, callbacks). The first panic of a function is logged with its stack.
// Further panics of the function are counted, and one of them is logged per Every: a client that
// can make a function fail must not fill the log, which is bounded.
package panicguard

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"
)

// Every is the minimum time between two lines of the log about the same function.
const Every = 10 * time.Second

// Kind is the kind of a function, as named in the log and its attribute.
type Kind uint8

// The kinds of functions.
const (
	Hook    Kind = iota // a function that the game has given to netloop
	Handler             // of a method
)

var kinds = [...]struct{ says, attr string }{{"a hook", "hook"}, {"a handler", "method"}}

// Func identifies a called function of a game. Their number is limited by the game's declarations,
// so the state per function needs no bound.
type Func struct {
	Kind   Kind
	Name   string // name of the hook or method: the label of the metric
	Class  string // the class of the hook, if the hook belongs to a class
	Effect string // the consequence of a panic, if it is not obvious
}

// Guard guards the functions of one owner. Any goroutine may use it.
type Guard struct {
	Log   *slog.Logger
	Now   func() time.Duration // the clock for Every
	Count func(name string)    // called for each panic

	mu       sync.Mutex
	throttle Throttle[key]
}

// key identifies a Func, and whether it panicked or failed.
type key struct {
	kind     Kind
	name, of string
	panics   bool // true: panics; false: errors
}

// Recover is deferred around a call of a game's function. After a panic it calls then, unless that
// is nil, with the panic as an error. Without a panic it costs almost no time.
func (g *Guard) Recover(at *Func, then func(error)) {
	if v := recover(); v != nil {
		g.Panicked(at, v, nil)
		if then != nil {
			then(fmt.Errorf("%s panicked: %v", at.Name, v))
		}
	}
}

// Panicked counts a panic that the caller has recovered, and logs it at most once per Every and
// function. If stack is nil, it logs its own stack: the caller must then be on the goroutine of the
// panic.
func (g *Guard) Panicked(at *Func, v any, stack []byte, attrs ...any) {
	g.Count(at.Name)
	kept, ok := g.allow(at, true)
	if !ok {
		return
	}
	if stack == nil {
		stack = debug.Stack()
	}
	g.log(at, "panicked", kept, append(attrs, "panic", fmt.Sprint(v), "stack", string(stack)))
}

// Failed logs, at most once per Every and function, an error of a game's function that is not
// reported elsewhere.
func (g *Guard) Failed(at *Func, err error, attrs ...any) {
	if kept, ok := g.allow(at, false); ok {
		g.log(at, "failed", kept, append(attrs, "error", err))
	}
}

func (g *Guard) allow(at *Func, panics bool) (kept uint64, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.throttle.Allow(key{at.Kind, at.Name, at.Class, panics}, g.Now())
}

func (g *Guard) log(at *Func, did string, kept uint64, attrs []any) {
	kind := &kinds[at.Kind]
	all := []any{kind.attr, at.Name}
	if at.Class != "" {
		all = append(all, "of", at.Class)
	}
	if at.Effect != "" && did == "panicked" {
		all = append(all, "so", at.Effect)
	}
	g.Log.Error(kind.says+" "+did, append(append(all, attrs...), "unlogged_before", kept)...)
}
