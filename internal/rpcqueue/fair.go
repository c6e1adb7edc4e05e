package rpcqueue

import (
	"cmp"
	"slices"
	"time"
)

// senders stores the senders that have pushed and were not forgotten.
type senders struct {
	byID map[uint64]*sender
	last *sender // of the last push; one packet mostly has several messages

	// Scratch of a drain.
	line  []*sender // senders with messages in the ring
	after []int32   // by index in the ring: the index of the same sender's next message, or none
	kept  []Item
}

func (ss *senders) get(id uint64) *sender {
	if ss.last == nil || ss.last.id != id {
		ss.last = ss.find(id)
	}
	return ss.last
}

func (ss *senders) find(id uint64) *sender {
	s := ss.byID[id]
	if s == nil {
		s = &sender{id: id, account: new(account)}
		ss.byID[id] = s
	}
	return s
}

// forget frees a sender and returns its account, nil if the sender is unknown.
func (ss *senders) forget(id uint64) *account {
	s := ss.byID[id]
	if s == nil {
		return nil
	}
	delete(ss.byID, id)
	ss.last = nil
	return s.account
}

// allowance limits one drain.
type allowance struct {
	messages int
	all      time.Duration // by the prices of the messages
	each     time.Duration // of one sender, in the whole tick
}

// own reports whether a message fits into its sender's share. The first message of a sender in a
// drain always fits, so that no message waits for ever because of its price. Sender 0 has no limit.
func (a *allowance) own(s *sender, price time.Duration) bool {
	return s.id == 0 || s.took == 0 || s.spent+s.took+price <= a.each
}

// plan moves the messages that a drain runs to the front of a ring, adds their costs to their
// senders, and returns their number and total cost.
func (ss *senders) plan(r *ring, prices []time.Duration, round uint64, a allowance) (n int, cost time.Duration) {
	if cost, ok := ss.fits(r, prices, round, a); ok {
		return r.len(), cost
	}
	return ss.share(r, prices, round, a)
}

// fits reports whether all waiting messages may run, which is the usual case. It returns their cost
// too.
func (ss *senders) fits(r *ring, prices []time.Duration, round uint64, a allowance) (cost time.Duration, ok bool) {
	ok = r.len() <= a.messages
	for i := 0; ok && i < r.len(); i++ {
		it := r.items.At(i)
		s, price := it.sender, prices[it.Method.ID]
		ss.enlist(s, round)
		ok = cost+price <= a.all && a.own(s, price)
		s.took += price
		cost += price
	}
	ss.dismiss(ok)
	return cost, ok
}

// enlist adds a sender to ss.line, the senders in the drain being planned, and reports whether it
// was not there yet.
func (ss *senders) enlist(s *sender, round uint64) bool {
	if s.enlisted {
		return false
	}
	if s.round != round {
		s.round, s.spent = round, 0
	}
	s.enlisted = true
	ss.line = append(ss.line, s)
	return true
}

// dismiss empties ss.line. If charge is set, it adds the cost of each sender's messages in this
// drain to the time spent by the sender.
func (ss *senders) dismiss(charge bool) {
	for _, s := range ss.line {
		if charge {
			s.spent += s.took
		}
		s.took, s.enlisted = 0, false
	}
	clear(ss.line)
	ss.line = ss.line[:0]
}

// none ends the chain of a sender's messages.
const none = -1

// share is plan for a drain that can run only a part of the waiting messages. It repeatedly selects
// the oldest message of the sender with the least cost in this drain, until the allowance is used
// up or no further message fits. If a sender gets no message because all time is used up, it is the
// first in the next drain, and then its message runs at any price. Messages that run and messages
// that wait both remain in the order of arrival, so that a client's own order holds, and messages
// run first in, first out. It costs a pass over the ring.
func (ss *senders) share(r *ring, prices []time.Duration, round uint64, a allowance) (n int, cost time.Duration) {
	ss.chain(r, round)
	slices.SortFunc(ss.line, func(x, y *sender) int { return compareTurns(x, y, r.cursor) })
	start, missed := r.cursor, false
	for waiting := ss.line; len(waiting) > 0 && n < a.messages; {
		s := waiting[0]
		price := prices[r.items.At(int(s.next)).Method.ID]
		late := n > 0 && cost+price > a.all
		if late && !missed {
			missed, r.cursor = true, s.id-1
		}
		if late || !a.own(s, price) {
			s.next = none
		} else {
			n++
			s.quota++
			s.took += price
			cost += price
			s.next = ss.after[s.next]
			if !missed {
				r.cursor = s.id
			}
		}
		if s.next == none {
			last := len(waiting) - 1
			waiting[0], waiting[last] = waiting[last], s
			waiting = waiting[:last]
		}
		sink(waiting, start)
	}
	ss.dismiss(true)
	ss.gather(r)
	return n, cost
}

// chain adds each sender with messages in the ring to ss.line, and links its messages from oldest
// to newest by ss.after.
func (ss *senders) chain(r *ring, round uint64) {
	if len(ss.after) < r.len() {
		ss.after = make([]int32, max(r.len(), 2*len(ss.after)))
	}
	for i := range r.len() {
		place := int32(i)
		s := r.items.At(i).sender
		if ss.enlist(s, round) {
			s.next = place
		} else {
			ss.after[s.newest] = place
		}
		s.newest, ss.after[place] = place, none
	}
}

// compareTurns orders senders by their cost in this drain, and then by id, starting after the
// cursor and wrapping around.
func compareTurns(x, y *sender, cursor uint64) int {
	return cmp.Or(cmp.Compare(x.took, y.took), cmp.Compare(x.id-cursor-1, y.id-cursor-1))
}

// sink restores a heap after the key of its first element has increased.
func sink(heap []*sender, cursor uint64) {
	for i := 0; ; {
		first := i
		for _, child := range [...]int{2*i + 1, 2*i + 2} {
			if child < len(heap) && compareTurns(heap[child], heap[first], cursor) < 0 {
				first = child
			}
		}
		if first == i {
			return
		}
		heap[i], heap[first] = heap[first], heap[i]
		i = first
	}
}

// gather moves the oldest messages of each sender, up to its quota, to the front of the ring.
func (ss *senders) gather(r *ring) {
	to := 0
	for i := range r.len() {
		it := r.items.At(i)
		if it.sender.quota == 0 {
			ss.kept = append(ss.kept, *it)
			continue
		}
		it.sender.quota--
		*r.items.At(to) = *it
		to++
	}
	for i := range ss.kept {
		*r.items.At(to) = ss.kept[i]
		to++
	}
	clear(ss.kept)
	ss.kept = ss.kept[:0]
}
