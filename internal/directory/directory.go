// Package directory holds the rooms of a server by name.
//
// The flow:
//
//	opening a room       Reserve(name) ── the game fills it ──▶ Fill(room), or Cancel
//	joining a room       Find(ctx, name): waits for a room that is being filled
//	reading              Get(name); All(): an immutable list
//	an operator          Query.Select: a page of Rows
//	a room's entry       Listing.Set ── at most every 50 ms ──▶ List; Notify: watchers
//	the end of a room    Remove(name)
//	the end of a server  Close(), Wait()
//
// Any goroutine may use a directory. The package starts no goroutine and reads no clock.
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
	ErrFull   = errors.New("netloop: server has the maximum number of rooms")
	ErrClosed = errors.New("netloop: the server is closing")
)

// Directory is the directory of rooms of type R by their names.
type Directory[R any] struct {
	most   int
	ended  chan struct{} // closed once no room is open, after Close
	opened chan struct{} // closed once no name is taken, after Close

	mu     sync.Mutex
	names  map[string]*Reservation[R]
	codes  map[string]*Reservation[R] // reservations with a code, by their code
	count  uint64                     // number of names reserved so far, which numbers them
	list   []R                        // result of All; nil after a change
	closed bool
}

// Reservation is a taken name: of a room, or of a room that is being filled.
type Reservation[R any] struct {
	dir    *Directory[R]
	name   string
	code   string        // second name; empty: none
	number uint64        // names are numbered in the order of opening
	filled chan struct{} // closed once the room is open or canceled
	open   bool          // the room is open; written before filled is closed
	room   R
}

// New returns a directory for at most most rooms.
func New[R any](most int) *Directory[R] {
	return &Directory[R]{
		most: most, ended: make(chan struct{}), opened: make(chan struct{}), names: map[string]*Reservation[R]{}, codes: map[string]*Reservation[R]{},
	}
}

// Reserve takes a name for a room that is about to be filled, and a code as its second name, unless
// the code is empty. Fill or Cancel must follow.
func (d *Directory[R]) Reserve(name, code string) (*Reservation[R], error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.closed:
		return nil, ErrClosed
	case d.names[name] != nil:
		return nil, ErrTaken
	case d.codes[code] != nil:
		return nil, ErrCode
	case len(d.names) >= d.most:
		return nil, ErrFull
	}
	d.count++
	p := &Reservation[R]{dir: d, name: name, code: code, number: d.count, filled: make(chan struct{})}
	d.names[name] = p
	if code != "" {
		d.codes[code] = p
	}
	return p, nil
}

// Number returns the number of names reserved so far, including this one.
func (p *Reservation[R]) Number() uint64 { return p.number }

// Fill adds the open room.
func (p *Reservation[R]) Fill(room R) {
	p.dir.mu.Lock()
	defer p.dir.mu.Unlock()
	p.room, p.open, p.dir.list = room, true, nil
	close(p.filled)
}

// Cancel frees the name of a room that could not be filled.
func (p *Reservation[R]) Cancel() {
	p.dir.mu.Lock()
	defer p.dir.mu.Unlock()
	close(p.filled)
	p.dir.removeLocked(p.name)
}

// Remove removes a room that has ended: its name is free.
func (d *Directory[R]) Remove(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.removeLocked(name)
}

func (d *Directory[R]) removeLocked(name string) {
	delete(d.codes, d.names[name].code)
	delete(d.names, name)
	d.list = nil
	d.signalEndLocked()
}

// signalEndLocked, after Close, closes ended if no room is open, and opened if no name is taken.
func (d *Directory[R]) signalEndLocked() {
	if !d.closed {
		return
	}
	open := false
	for _, p := range d.names {
		open = open || p.open
	}
	if !open {
		closeOnce(d.ended)
	}
	if len(d.names) == 0 {
		closeOnce(d.opened)
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
func (d *Directory[R]) Find(ctx context.Context, name string) (room R, ok bool) {
	d.mu.Lock()
	p := d.names[name]
	d.mu.Unlock()
	return p.await(ctx)
}

// FindCode is Find by the code of a room.
func (d *Directory[R]) FindCode(ctx context.Context, code string) (room R, ok bool) {
	d.mu.Lock()
	p := d.codes[code]
	d.mu.Unlock()
	return p.await(ctx)
}

// await waits until the room of a reservation is open or canceled, or ctx ends, and returns the
// open room. ok is false if there is no open room, and for a nil reservation.
func (p *Reservation[R]) await(ctx context.Context) (room R, ok bool) {
	if p == nil {
		return room, false
	}
	select {
	case <-p.filled:
		return p.room, p.open // This also applies if ctx has ended.
	default:
	}
	select {
	case <-p.filled:
		return p.room, p.open
	case <-ctx.Done():
		return room, false
	}
}

// Taken reports whether a name is that of a room that is open, or is being filled.
func (d *Directory[R]) Taken(name string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.names[name] != nil
}

// Get returns the open room of a name.
func (d *Directory[R]) Get(name string) (room R, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.names[name]
	if p == nil || !p.open {
		return room, false
	}
	return p.room, true
}

// All returns the open rooms, in the order of opening. Callers must not change the list.
func (d *Directory[R]) All() []R {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.list != nil {
		return d.list
	}
	open := make([]*Reservation[R], 0, len(d.names))
	for _, p := range d.names {
		if p.open {
			open = append(open, p)
		}
	}
	slices.SortFunc(open, func(a, b *Reservation[R]) int { return cmp.Compare(a.number, b.number) })
	d.list = make([]R, len(open))
	for i, p := range open {
		d.list[i] = p.room
	}
	return d.list
}

// Len returns the number of taken names.
func (d *Directory[R]) Len() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.names)
}

// Close rejects all reservations from now on.
func (d *Directory[R]) Close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	d.signalEndLocked()
}

// Wait returns, after Close, when no room is open. A room that is being filled may still open.
func (d *Directory[R]) Wait() { <-d.ended }

// Opened returns a channel that is closed once, after Close, no room is open or being filled.
func (d *Directory[R]) Opened() <-chan struct{} { return d.opened }
