package loop

import (
	"slices"
	"sort"
)

// Every stage has a list of systems. FixedUpdate has another list, of the systems that run once
// before its first step. Lists are numbered in the order of running.
const (
	numLists = NumStages + 1
	onceList = int(FixedUpdate) - 1
)

// list returns the number of the stage's list; in FixedUpdate the number of the list of the systems
// that run in every step.
func (s Stage) list() int {
	if s < FixedUpdate {
		return int(s) - 1
	}
	return int(s)
}

// stageOf returns the stage that runs a list.
func stageOf(k int) Stage {
	if k < onceList {
		return Stage(k + 1)
	}
	return max(Stage(k), FixedUpdate)
}

// listSet is a set of lists, one bit each.
type listSet uint8

func (x listSet) has(k int) bool { return x&(1<<k) != 0 }

// list is the order of a stage. Its two parts, always and timed, are run as one in the order of
// pos.
type list[C any] struct {
	always []entry[C] // run in every pass
	timed  []entry[C] // run when they are due
	due    []int32    // indexes in timed of the entries due in this pass, ascending
	slots  []int32    // the index in timed of a system, by its id
	base   int        // the row of pos 0 in Record.Systems
}

// entry is a system in a list.
type entry[C any] struct {
	fn      func(C)
	sys     *System[C]
	cost    *Histogram
	pos     int32
	id      int32 // of sys
	checked bool  // it has a condition or a period
}

// part returns the part of the list for timed or other systems.
func (x *list[C]) part(timed bool) *[]entry[C] {
	if timed {
		return &x.timed
	}
	return &x.always
}

// search returns the index of a system in a part of list k, or the index at which to insert it.
func search[C any](part []entry[C], s *System[C], k int) int {
	return sort.Search(len(part), func(i int) bool { return compare(part[i].sys, s, k) >= 0 })
}

// size returns the number of entries in the list.
func (x *list[C]) size() int { return len(x.always) + len(x.timed) }

// cut removes systems from the lists. The keys and groups that order them must be unchanged since
// they were inserted.
func (l *Loop[C]) cut(systems []*System[C]) {
	var rows []int
	for k := range l.lists {
		x := &l.lists[k]
		var at [2][]int // in always and in timed
		var marks []int
		for _, s := range systems {
			if !s.listed.has(k) {
				continue
			}
			part := *x.part(s.timed)
			i := search(part, s, k)
			if s.timed {
				at[1] = append(at[1], i)
			} else {
				at[0] = append(at[0], i)
			}
			marks = append(marks, int(part[i].pos))
		}
		if len(marks) == 0 {
			continue
		}
		slices.Sort(at[0])
		slices.Sort(at[1])
		slices.Sort(marks)
		x.always, x.timed = without(x.always, at[0]), without(x.timed, at[1])
		renumber(x.always, marks, -1)
		renumber(x.timed, marks, -1)
		x.reslot(at[1])
		for _, pos := range marks {
			rows = append(rows, x.base+pos)
		}
	}
	for _, s := range systems {
		s.listed = 0
	}
	l.rec.Systems = without(l.rec.Systems, rows)
	l.rebase()
}

// put inserts systems into their lists.
func (l *Loop[C]) put(systems []*System[C]) {
	var rows []int
	var costs []SystemCost
	for k := range l.lists {
		var members []*System[C]
		for _, s := range systems {
			if s.member.has(k) && !s.off {
				members = append(members, s)
			}
		}
		if len(members) == 0 {
			continue
		}
		slices.SortFunc(members, func(a, b *System[C]) int { return compare(a, b, k) })
		x, stage := &l.lists[k], stageOf(k)
		for _, pos := range x.insert(members, k, len(l.systems)) {
			rows = append(rows, x.base+pos)
		}
		for _, s := range members {
			costs = append(costs, SystemCost{Name: s.spec.Name, Stage: stage})
		}
	}
	l.rec.Systems = with(l.rec.Systems, rows, costs)
	l.rebase()
}

// insert inserts systems, which are in order, into list k. It returns the old positions before
// which it inserted them.
func (x *list[C]) insert(systems []*System[C], k, ids int) (marks []int) {
	var at [2][]int
	var fresh [2][]entry[C]
	for n, s := range systems {
		i, j := search(x.always, s, k), search(x.timed, s, k)
		pos := x.size()
		if i < len(x.always) {
			pos = int(x.always[i].pos)
		}
		if j < len(x.timed) {
			pos = min(pos, int(x.timed[j].pos))
		}
		marks = append(marks, pos)
		s.listed |= 1 << k
		s.timed = s.spec.Periodic && s.spec.Period > 0
		e := s.entry(stageOf(k), int32(pos+n))
		if s.timed {
			at[1], fresh[1] = append(at[1], j), append(fresh[1], e)
		} else {
			at[0], fresh[0] = append(at[0], i), append(fresh[0], e)
		}
	}
	renumber(x.always, marks, 1)
	renumber(x.timed, marks, 1)
	x.always, x.timed = with(x.always, at[0], fresh[0]), with(x.timed, at[1], fresh[1])
	if len(x.timed) > 0 {
		x.slots = append(x.slots, make([]int32, max(ids-len(x.slots), 0))...)
		x.due = slices.Grow(x.due[:0], len(x.timed))
		x.reslot(at[1])
	}
	return marks
}

// entry returns the list entry of a system.
func (s *System[C]) entry(stage Stage, pos int32) entry[C] {
	cost := &s.costs[stage.index()]
	if *cost == nil {
		*cost = new(Histogram)
	}
	return entry[C]{
		fn: s.fns[stage.index()], sys: s, cost: *cost, pos: pos, id: s.id,
		checked: s.conditional() || s.spec.Periodic,
	}
}

// renumber adds by, which is 1 or -1, to the position of each entry, once for each mark at or
// below it. The marks are positions in ascending order.
func renumber[C any](part []entry[C], marks []int, by int32) {
	n := 0
	for i := sort.Search(len(part), func(i int) bool { return int(part[i].pos) >= marks[0] }); i < len(part); i++ {
		e := &part[i]
		for n < len(marks) && marks[n] <= int(e.pos) {
			n++
		}
		e.pos += by * int32(n)
	}
}

// reslot updates slots after timed entries were inserted or removed at ascending indexes.
func (x *list[C]) reslot(at []int) {
	if len(at) == 0 {
		return
	}
	for i := at[0]; i < len(x.timed); i++ {
		x.slots[x.timed[i].id] = int32(i)
	}
}

// rebase sets each list's base: the index in Record.Systems of its first system.
func (l *Loop[C]) rebase() {
	base := 0
	for k := range l.lists {
		l.lists[k].base = base
		base += l.lists[k].size()
	}
}

// without removes the elements at ascending indexes.
func without[T any](x []T, at []int) []T {
	if len(at) == 0 {
		return x
	}
	to := at[0]
	for n, i := range at {
		end := len(x)
		if n+1 < len(at) {
			end = at[n+1]
		}
		to += copy(x[to:], x[i+1:end])
	}
	clear(x[to:])
	return x[:to]
}

// with inserts elements before those at ascending indexes.
func with[T any](x []T, at []int, elements []T) []T {
	end := len(x)
	x = slices.Grow(x, len(elements))[:end+len(elements)]
	for n := len(elements) - 1; n >= 0; n-- {
		copy(x[at[n]+n+1:], x[at[n]:end])
		x[at[n]+n] = elements[n]
		end = at[n]
	}
	return x
}
