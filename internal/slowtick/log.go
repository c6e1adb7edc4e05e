package slowtick

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/netloop/netloop/internal/loop"
)

const (
	// LastTicks is the number of newest ticks that are recorded regardless of their duration: ten
	// seconds at 60 Hz, at 3.4 KiB each.
	LastTicks = 600
	// WorstTicks is the number of slowest ticks that are stored for the time WorstFor, which is
	// long enough for an operator to look after a report.
	WorstTicks = 50
	WorstFor   = time.Hour
)

// slot holds one record. A reader locks it; the tick does not wait for the lock.
type slot struct {
	mu     sync.Mutex
	record Record // under mu
}

// Log records the ticks of one room.
type Log struct {
	budget time.Duration
	gc     func() GC // returns the work since its last call

	// The goroutine of the ticks owns all fields outside of slots.
	ended   time.Duration // end of the newest tick
	last    []slot        // a ring; a slot that a reader has locked is skipped
	next    int
	worst   []slot
	kept    [WorstTicks]kept // the entries of the slots of worst
	floor   time.Duration    // ticks up to this duration are not among the worst
	expires time.Duration    // when the oldest of the worst expires
}

// kept holds the sort keys of the record in the slot of worst with the same index.
type kept struct {
	used            bool
	start, duration time.Duration
}

// New returns an empty log for ticks with this budget.
func New(budget time.Duration) *Log {
	return newLog(budget, new(collector).read)
}

func newLog(budget time.Duration, gc func() GC) *Log {
	l := &Log{budget: budget, gc: gc, last: make([]slot, LastTicks), worst: make([]slot, WorstTicks)}
	// The systems of all records share one allocation.
	systems := make([]System, (LastTicks+WorstTicks)*maxSystems)
	for _, slots := range [...][]slot{l.last, l.worst} {
		for i := range slots {
			slots[i].record.Systems = systems[:0:maxSystems]
			systems = systems[maxSystems:]
		}
	}
	l.gc()
	return l
}

// Observe records a tick that has just ended, and returns its slowest system. It does not keep
// rec.
func (l *Log) Observe(rec *loop.Record, f *Facts) (blame System) {
	s := l.last[l.next].lock(l)
	l.next = (l.next + 1) % LastTicks
	s.record.fill(rec, f, l.gc())
	s.record.Cause = causeOf(&s.record, l.budget, l.ended)
	l.ended = rec.Start + rec.Duration
	l.keep(&s.record)
	blame = s.record.Blame
	s.mu.Unlock()
	return blame
}

// lock locks and returns the slot, or the next slot that is not locked by a reader. There are
// fewer readers than slots.
func (s *slot) lock(l *Log) *slot {
	for !s.mu.TryLock() {
		l.next = (l.next + 1) % LastTicks
		s = &l.last[l.next]
	}
	return s
}

// keep copies a tick into worst if it is one of the slowest.
func (l *Log) keep(r *Record) {
	if r.Duration <= l.floor && r.Start < l.expires {
		return
	}
	if i := l.slotFor(r); i >= 0 && l.worst[i].mu.TryLock() {
		l.worst[i].record.copyFrom(r)
		l.worst[i].mu.Unlock()
		l.kept[i] = kept{used: true, start: r.Start, duration: r.Duration}
	}
	l.bounds()
}

// slotFor returns the index in worst at which to store a tick: a free or expired slot, or the slot
// of the fastest stored tick if the new tick is slower. It returns -1 if the tick is not stored.
func (l *Log) slotFor(r *Record) int {
	fastest := 0
	for i := range l.kept {
		if k := &l.kept[i]; !k.used || r.Start-k.start >= WorstFor {
			return i
		} else if k.duration < l.kept[fastest].duration {
			fastest = i
		}
	}
	if r.Duration > l.kept[fastest].duration {
		return fastest
	}
	return -1
}

// bounds updates floor and expires. A tick enters the list of the worst ticks only if it is longer
// than floor, or if it begins at expires or later.
func (l *Log) bounds() {
	l.floor, l.expires = l.kept[0].duration, l.kept[0].start+WorstFor
	for i := range l.kept {
		k := &l.kept[i]
		if !k.used {
			l.floor, l.expires = 0, 0
		}
		l.floor, l.expires = min(l.floor, k.duration), min(l.expires, k.start+WorstFor)
	}
}

// Report lists recorded ticks, for people and programs.
type Report struct {
	Budget time.Duration `json:"budget_ns"` // the tick period
	Ticks  []Record      `json:"ticks"`     // the recorded ticks
}

// Last returns the newest ticks, the oldest of them first. Any goroutine may call it.
func (l *Log) Last() Report { return l.After(0) }

// After returns the recorded ticks with higher numbers, the oldest first. Any goroutine may call
// it.
func (l *Log) After(tick uint64) Report {
	r := l.report(l.last, tick)
	slices.SortFunc(r.Ticks, func(a, b Record) int { return cmp.Compare(a.Tick, b.Tick) })
	return r
}

// Worst returns the slowest ticks of the last WorstFor, the slowest first. Any goroutine may call
// it.
func (l *Log) Worst() Report {
	r := l.report(l.worst, 0)
	var now time.Duration
	for i := range l.last {
		l.last[i].mu.Lock()
		now = max(now, l.last[i].record.Start)
		l.last[i].mu.Unlock()
	}
	r.Ticks = slices.DeleteFunc(r.Ticks, func(t Record) bool { return now-t.Start >= WorstFor })
	slices.SortFunc(r.Ticks, func(a, b Record) int {
		return cmp.Or(cmp.Compare(b.Duration, a.Duration), cmp.Compare(a.Tick, b.Tick))
	})
	return r
}

// report copies the ticks in slots with numbers higher than after.
func (l *Log) report(slots []slot, after uint64) Report {
	ticks := []Record{}
	for i := range slots {
		s := &slots[i]
		s.mu.Lock()
		if s.record.Tick > after {
			ticks = append(ticks, Record{Systems: []System{}})
			ticks[len(ticks)-1].copyFrom(&s.record)
		}
		s.mu.Unlock()
	}
	return Report{Budget: l.budget, Ticks: ticks}
}
