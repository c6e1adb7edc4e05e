package rpcqueue

import "github.com/netloop/netloop/internal/loop"

// Item is one message.
type Item struct {
	Method *Method
	// From is the sender; 0 is nobody: posted, or sent by the server.
	From uint64
	// Stage is the stage wished for; 0 is the default of the method.
	Stage loop.Stage
	// Call numbers a call that wants an answer; 0 is one-way.
	Call uint64
	// Msg holds a *M.
	Msg any
}

// Handler runs a message. The item is valid during the call; its Msg belongs to
// the handler, which may keep it.
type Handler[C any] func(c C, it *Item) error

// Queue holds messages until their stage runs. One goroutine owns it.
type Queue[C any] struct {
	// OnPanic, if set, is told of a handler that panicked.
	OnPanic func(it *Item, v any, stack []byte)
	// OnError, if set, is told of a handler that returned an error.
	OnError func(it *Item, err error)
}

// New returns an empty queue.
func New[C any](t *Table) *Queue[C] { panic("rpcqueue: not yet") }

// Handle registers the handler of a method.
func (q *Queue[C]) Handle(m *Method, h Handler[C]) error { panic("rpcqueue: not yet") }

// Push queues a message or says why not.
func (q *Queue[C]) Push(it Item) Outcome { panic("rpcqueue: not yet") }

// Begin starts a tick.
func (q *Queue[C]) Begin(tick uint64) { panic("rpcqueue: not yet") }

// Drain runs what is queued for the stage.
func (q *Queue[C]) Drain(s loop.Stage, c C) int { panic("rpcqueue: not yet") }

// Forget drops what the sender has queued.
func (q *Queue[C]) Forget(from uint64) int { panic("rpcqueue: not yet") }

// Counts visits every count that is not zero.
func (q *Queue[C]) Counts(fn func(m *Method, s loop.Stage, o Outcome, n uint64)) {
	panic("rpcqueue: not yet")
}

// Depth is the number of messages queued for the stage.
func (q *Queue[C]) Depth(s loop.Stage) int { panic("rpcqueue: not yet") }
