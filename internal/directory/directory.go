// Package directory holds the rooms of a server by name.
//
// The flow:
//
//	opening a room       Reserve(name) ── the game fills it ──▶ Place.Fill(room), or Place.GiveUp
//	joining a room       Find(ctx, name): waits for a room that is being filled
//	reading              Get(name); All(): an immutable list
//	an operator          Query.Select: a page of Rows
//	a room's entry       Board.Post ── at most every 50 ms ──▶ Board.List; Board.Tell: watchers
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

// Hall is the directory of rooms of type R by their names.
type Hall[R any] struct {
	most   int
	ended  chan struct{} // closed once no room is open, after Close
	opened chan struct{} // closed once no name is taken, after Close

	mu     sync.Mutex
	places map[string]*Place[R]
	codes  map[string]*Place[R] // places with a second name, by that name
	count  uint64               // places ever reserved: it numbers them
	list   []R                  // result of All; nil after a change
	closed bool
}

// Place is a taken name: of a room, or of a room that is being filled.
type Place[R any] struct {
	hall   *Hall[R]
	name   string
	code   string        // its second name; empty is none
	number uint64        // places are numbered in the order of opening
	filled chan struct{} // closed once the room is open or given up
	open   bool          // the room is open; written before filled is closed
	room   R
}

// New returns a directory for at most most rooms.
func New[R any](most int) *Hall[R] {
	return &Hall[R]{
		most: most, ended: make(chan struct{}), opened: make(chan struct{}), places: map[string]*Place[R]{}, codes: map[string]*Place[R]{},
	}
}

// Reserve takes a name for a room that is about to be filled, and a code as its second name, unless
// that is empty. Fill or GiveUp must follow.
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

// Number returns the number of places reserved so far, including this one.
func (p *Place[R]) Number() uint64 { return p.number }

// Fill adds the open room.
func (p *Place[R]) Fill(room R) {
	p.hall.mu.Lock()
	defer p.hall.mu.Unlock()
	p.room, p.open, p.hall.list = room, true, nil
	close(p.filled)
}

// GiveUp frees the name of a room that could not be filled.
func (p *Place[R]) GiveUp() {
	p.hall.mu.Lock()
	defer p.hall.mu.Unlock()
	close(p.filled)
	p.hall.leaveLocked(p.name)
}

// Leave removes a room that has ended: its name is free.
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

// endLocked closes ended if no room is open any more, and opened if no name is taken, after Close.
func (h *Hall[R]) endLocked() {
	if !h.closed {
		return
	}
	open := false
	for _, p := range h.places {
		open = open || p.open
	}
	if !open {
		closeOnce(h.ended)
	}
	if len(h.places) == 0 {
		closeOnce(h.opened)
	}
}

// closeOnce closes a channel unless it is closed. No goroutine sends on it.
func closeOnce(c chan struct{}) {
	select {
	case <-c:
	default:
		close(c)
	}
}

// Find returns the room of a name. It waits for a room that is being filled, until ctx ends.
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

// await waits until a place is filled or given up; nil is no place.
func (p *Place[R]) await(ctx context.Context) (room R, ok bool) {
	if p == nil {
		return room, false
	}
	select {
	case <-p.filled:
		return p.room, p.open // Also if ctx has ended.
	default:
	}
	select {
	case <-p.filled:
		return p.room, p.open
	case <-ctx.Done():
		return room, false
	}
}

// Get returns the open room of a name.
func (h *Hall[R]) Get(name string) (room R, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.places[name]
	if p == nil || !p.open {
		return room, false
	}
	return p.room, true
}

// All returns the open rooms, in the order of opening. Callers must not change the list.
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

// Close rejects all reservations from now on.
func (h *Hall[R]) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	h.endLocked()
}

// Wait returns once no room is open any more, after Close. A room that is being filled may still
// open.
func (h *Hall[R]) Wait() { <-h.ended }

// Opened returns a channel that is closed once no room is being filled either.
func (h *Hall[R]) Opened() <-chan struct{} { return h.opened }
