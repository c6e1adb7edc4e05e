// Package directory holds the rooms of a server by name.
//
// The flow:
//
//	who opens a room     Reserve(name) ── the game fills it ──▶ Place.Fill(room), or Place.GiveUp
//	who comes in         Find(ctx, name): waits for one that is being filled
//	who looks on         Get(name); All(): a list that nobody changes any more
//	an operator          Query.Select: a page of Rows
//	what a room posts    Board.Post ── at most every 50 ms ──▶ Board.List; Board.Tell, who watches
//	the end of a room    Leave(name)
//	the end of a server  Close(), Wait()
//
// Any goroutine may use it. It starts none and reads no clock.
package directory

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
)

// The errors of Reserve.
var (
	ErrTaken  = errors.New("netloop: there is a room of that name")
	ErrCode   = errors.New("netloop: there is a room of that code")
	ErrFull   = errors.New("netloop: the server has as many rooms as it may")
	ErrClosed = errors.New("netloop: the server is closing")
)

// Hall holds rooms of type R by their names.
type Hall[R any] struct {
	most   int
	ended  chan struct{} // closed once no room is open, after Close
	opened chan struct{} // closed once no name is taken, after Close

	mu     sync.Mutex
	places map[string]*Place[R]
	codes  map[string]*Place[R] // of those that have a second name
	count  uint64               // places that were ever taken: they number them
	list   []R                  // of All; nil once it has changed
	closed bool
}

// Place is a name that is taken: by a room, or by one that is being filled.
type Place[R any] struct {
	hall   *Hall[R]
	name   string
	code   string        // its second name; empty is none
	number uint64        // in the order of opening
	filled chan struct{} // closed when it is known what has become of it
	open   bool          // there is a room; written before filled is closed
	room   R
}

// New makes a hall for so many rooms.
func New[R any](most int) *Hall[R] {
	return &Hall[R]{
		most: most, ended: make(chan struct{}), opened: make(chan struct{}), places: map[string]*Place[R]{}, codes: map[string]*Place[R]{},
	}
}

// Reserve takes a name for a room that is about to be filled, and a code, unless that is empty, by
// which it is found as well. Fill or GiveUp follows.
func (h *Hall[R]) Reserve(name, code string) (*Place[R], error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.closed:
		return nil, ErrClosed
	case h.places[name] != nil:
		return nil, ErrTaken
	case h.codes[code] != nil:
		return nil, ErrCode
	case len(h.places) >= h.most:
		return nil, ErrFull
	}
	h.count++
	p := &Place[R]{hall: h, name: name, code: code, number: h.count, filled: make(chan struct{})}
	h.places[name] = p
	if code != "" {
		h.codes[code] = p
	}
	return p, nil
}

// Number counts the places that the hall has had, this one included.
func (p *Place[R]) Number() uint64 { return p.number }

// Fill says that the room is open.
func (p *Place[R]) Fill(room R) {
	p.hall.mu.Lock()
	defer p.hall.mu.Unlock()
	p.room, p.open, p.hall.list = room, true, nil
	close(p.filled)
}

// GiveUp says that there will be no room.
func (p *Place[R]) GiveUp() {
	p.hall.mu.Lock()
	defer p.hall.mu.Unlock()
	close(p.filled)
	p.hall.leaveLocked(p.name)
}

// Leave takes out a room that has ended: its name is free.
func (h *Hall[R]) Leave(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.leaveLocked(name)
}

func (h *Hall[R]) leaveLocked(name string) {
	delete(h.codes, h.places[name].code)
	delete(h.places, name)
	h.list = nil
	h.endLocked()
}

// endLocked says so if no room is open any more, or no name is taken, after Close.
func (h *Hall[R]) endLocked() {
	if !h.closed {
		return
	}
	open := 0
	for _, p := range h.places {
		if p.open {
			open++
		}
	}
	if open == 0 {
		closeOnce(h.ended)
	}
	if len(h.places) == 0 {
		closeOnce(h.opened)
	}
}

// closeOnce closes a channel unless it is closed. Nobody sends on it.
func closeOnce(c chan struct{}) {
	select {
	case <-c:
	default:
		close(c)
	}
}

// Find returns the room of a name. It waits for one that is being filled, until ctx ends.
func (h *Hall[R]) Find(ctx context.Context, name string) (room R, ok bool) {
	h.mu.Lock()
	p := h.places[name]
	h.mu.Unlock()
	return p.await(ctx)
}

// FindCode is Find by the code of a room.
func (h *Hall[R]) FindCode(ctx context.Context, code string) (room R, ok bool) {
	h.mu.Lock()
	p := h.codes[code]
	h.mu.Unlock()
	return p.await(ctx)
}

// await waits until it is known what has become of a place; nil is none.
func (p *Place[R]) await(ctx context.Context) (room R, ok bool) {
	if p == nil {
		return room, false
	}
	select {
	case <-p.filled:
		return p.room, p.open // Also for somebody whose time is over.
	default:
	}
	select {
	case <-p.filled:
		return p.room, p.open
	case <-ctx.Done():
		return room, false
	}
}

// Get returns the room of a name that is open.
func (h *Hall[R]) Get(name string) (room R, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.places[name]
	if p == nil || !p.open {
		return room, false
	}
	return p.room, true
}

// All returns the rooms that are open, in the order of opening. Nobody may change the list.
func (h *Hall[R]) All() []R {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.list != nil {
		return h.list
	}
	open := make([]*Place[R], 0, len(h.places))
	for _, p := range h.places {
		if p.open {
			open = append(open, p)
		}
	}
	slices.SortFunc(open, func(a, b *Place[R]) int { return cmp.Compare(a.number, b.number) })
	h.list = make([]R, len(open))
	for i, p := range open {
		h.list[i] = p.room
	}
	return h.list
}

// Len returns how many names are taken.
func (h *Hall[R]) Len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.places)
}

// Close lets nobody reserve any more.
func (h *Hall[R]) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	h.endLocked()
}

// Wait returns when no room is open any more, after Close. One that is being filled may still come.
func (h *Hall[R]) Wait() { <-h.ended }

// Opened is closed when no room is being filled either.
func (h *Hall[R]) Opened() <-chan struct{} { return h.opened }
