package netem

import "time"

// Schedule is a binary heap of entries by time, the earliest first. Entries of the same time are in
// the order of Push. The number of entries is not bounded.
type Schedule[T any] struct {
	heap []due[T]
	seq  uint64
}

// due is an entry of a Schedule.
type due[T any] struct {
	at   time.Duration
	seq  uint64 // order of scheduling: decides between entries of one instant
	what T
}

func (d *due[T]) before(o *due[T]) bool { return d.at < o.at || d.at == o.at && d.seq < o.seq }

// Len returns the number of entries.
func (s *Schedule[T]) Len() int { return len(s.heap) }

// Next returns the time of the earliest entry.
func (s *Schedule[T]) Next() (at time.Duration, ok bool) {
	if len(s.heap) == 0 {
		return 0, false
	}
	return s.heap[0].at, true
}

// Push adds an entry for a time.
func (s *Schedule[T]) Push(at time.Duration, what T) {
	s.seq++
	s.heap = append(s.heap, due[T]{at, s.seq, what})
	h, i := s.heap, len(s.heap)-1
	for i > 0 {
		parent := (i - 1) / 2
		if !h[i].before(&h[parent]) {
			break
		}
		h[i], h[parent] = h[parent], h[i]
		i = parent
	}
}

// Pop removes and returns the earliest entry if its time is not after by.
func (s *Schedule[T]) Pop(by time.Duration) (what T, at time.Duration, ok bool) {
	h := s.heap
	if len(h) == 0 || h[0].at > by {
		return what, 0, false
	}
	what, at = h[0].what, h[0].at
	last := len(h) - 1
	h[0] = h[last]
	h[last] = due[T]{} // Release its references.
	h = h[:last]
	s.heap = h
	for i := 0; ; {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < last; c++ {
			if h[c].before(&h[least]) {
				least = c
			}
		}
		if least == i {
			return what, at, true
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}
