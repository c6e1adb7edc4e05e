package rpcqueue

import "time"

// Waits counts by method how long messages waited, from Item.At until their handlers ran. Only the
// goroutine of the queue may use it.
type Waits struct{ methods []Wait }

// Wait has the waits of a method's messages.
type Wait struct {
	Method *Method
	Count  uint64
	Sum    time.Duration
	Max    time.Duration
}

// NewWaits returns waits for the methods of a table.
func NewWaits(t *Table) *Waits {
	w := &Waits{methods: make([]Wait, len(t.byID))}
	for _, m := range t.Methods() {
		w.methods[m.ID].Method = m
	}
	return w
}

// add counts a message whose handler runs now.
func (w *Waits) add(it *Item, now time.Duration) {
	if it.At == 0 {
		return
	}
	m, wait := &w.methods[it.Method.ID], max(now-it.At, 0)
	m.Count, m.Sum, m.Max = m.Count+1, m.Sum+wait, max(m.Max, wait)
}

// All returns the waits of the methods that had a message, in the order of their ids.
func (w *Waits) All() (list []Wait) {
	for _, m := range w.methods {
		if m.Count > 0 {
			list = append(list, m)
		}
	}
	return list
}
