package rpcqueue

import (
	"cmp"
	"slices"

	"github.com/netloop/netloop/internal/loop"
)

// senders are those that have pushed and not been forgotten.
type senders struct {
	byID  map[uint64]*sender
	order []*sender // by id: nothing may depend on the order of a map
	last  *sender   // of the last push; one packet mostly has several messages
	kept  []Item    // scratch of share
}

func (ss *senders) get(id uint64) *sender {
	if ss.last != nil && ss.last.id == id {
		return ss.last
	}
	s := ss.byID[id]
	if s == nil {
		s = &sender{id: id}
		ss.byID[id] = s
		i, _ := ss.find(id)
		ss.order = slices.Insert(ss.order, i, s)
	}
	ss.last = s
	return s
}

func (ss *senders) find(id uint64) (int, bool) {
	return slices.BinarySearchFunc(ss.order, id, func(s *sender, id uint64) int { return cmp.Compare(s.id, id) })
}

func (ss *senders) forget(id uint64) {
	if i, ok := ss.find(id); ok {
		ss.order = slices.Delete(ss.order, i, i+1)
	}
	delete(ss.byID, id)
	ss.last = nil
}

// share moves to the front of a ring what a drain of so many messages runs: an
// equal number of each sender, the oldest of it; what is left of the budget goes
// round among those who have more. What runs and what waits both keep the order in
// which they came, so that a client's own order holds, and the first to come is
// the first to run. It costs a pass over the ring, and is only called when more
// waits than the budget.
func (ss *senders) share(r *ring, stage loop.Stage, budget int) {
	each := ss.level(stage, budget)
	for _, s := range ss.order {
		s.quota = min(s.waiting[stage], int32(each))
		budget -= int(s.quota)
	}
	next, _ := ss.find(r.cursor + 1)
	for i := 0; budget > 0; i++ {
		s := ss.order[(next+i)%len(ss.order)]
		if s.quota < s.waiting[stage] {
			s.quota++
			budget--
			r.cursor = s.id
		}
	}
	to := r.head
	for i := r.head; i != r.tail; i++ {
		it := r.slot(i)
		if it.sender.quota == 0 {
			ss.kept = append(ss.kept, *it)
			continue
		}
		it.sender.quota--
		*r.slot(to) = *it
		to++
	}
	for i := range ss.kept {
		*r.slot(to) = ss.kept[i]
		to++
	}
	clear(ss.kept)
	ss.kept = ss.kept[:0]
}

// level is the largest number of messages that every sender may run without
// exceeding the budget.
func (ss *senders) level(stage loop.Stage, budget int) int {
	low, high := 0, budget // low fits, high may fit
	for low < high {
		mid, sum := (low+high+1)/2, 0
		for _, s := range ss.order {
			sum += int(min(s.waiting[stage], int32(mid)))
		}
		if sum <= budget {
			low = mid
		} else {
			high = mid - 1
		}
	}
	return low
}
