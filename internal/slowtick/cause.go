package slowtick

import "time"

// Cause is why a tick was late or took longer than its period.
type Cause string

// The causes, in the order in which they are looked for.
const (
	CauseNone   Cause = ""       // it was neither
	CauseSystem Cause = "system" // one system took at least half of it
	CauseGC     Cause = "gc"     // the garbage collector took at least half as much CPU time
	CauseStage  Cause = "stage"  // systems that together took at least half of it
	CauseBehind Cause = "behind" // the tick before had not ended at the deadline
	CauseHost   Cause = "host"   // the process did not run
)

// lateShare is the part of a period by which a tick must be late to have a cause.
const lateShare = 4

// causeOf returns the cause of a tick. ended is the end of the tick before.
func causeOf(r *Record, budget, ended time.Duration) Cause {
	switch {
	case r.Duration > budget:
		return r.slowness()
	case r.Lateness < budget/lateShare || budget == 0:
		return CauseNone
	case ended > r.Start-r.Lateness:
		return CauseBehind
	case r.GC.Pauses >= r.Lateness/2:
		return CauseGC
	}
	return CauseHost
}

// slowness returns the cause of a tick longer than its period.
func (r *Record) slowness() Cause {
	systems := r.Others.Cost
	for i := range r.Systems {
		systems += r.Systems[i].Cost
	}
	switch {
	case r.Blame.Cost >= r.Duration/2:
		return CauseSystem
	case r.GC.CPU >= r.Duration/2:
		return CauseGC
	case systems >= r.Duration/2:
		return CauseStage
	}
	return CauseHost
}
