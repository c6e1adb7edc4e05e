package memnet

import "time"

// event is something that happens at a time: an arrival of a datagram, or a call.
type event struct {
	at   time.Duration
	seq  uint64 // order of scheduling: decides between events of one instant
	to   *end   // of a datagram: where it arrives
	data []byte
	sent time.Duration
	call func() // of anything else
}

func (e *event) before(o *event) bool { return e.at < o.at || e.at == o.at && e.seq < o.seq }

// events is a binary heap of events, the earliest first. It is not bounded by itself: what
// is in it is what sessions, which are bounded, have sent within one delay of the link.
type events struct {
	heap []event
	seq  uint64
}

func (q *events) push(e event) {
	q.seq++
	e.seq = q.seq
	q.heap = append(q.heap, e)
	h, i := q.heap, len(q.heap)-1
	for i > 0 {
		parent := (i - 1) / 2
		if !h[i].before(&h[parent]) {
			break
		}
		h[i], h[parent] = h[parent], h[i]
		i = parent
	}
}

// pop takes the earliest event if it is due by a time.
func (q *events) pop(by time.Duration) (e event, ok bool) {
	h := q.heap
	if len(h) == 0 || h[0].at > by {
		return event{}, false
	}
	e = h[0]
	last := len(h) - 1
	h[0] = h[last]
	h[last] = event{} // Let go of its bytes.
	h = h[:last]
	q.heap = h
	for i := 0; ; {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < last; c++ {
			if h[c].before(&h[least]) {
				least = c
			}
		}
		if least == i {
			return e, true
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}
