package slowtick

import "time"

// Cause is the reason why a tick was late or took longer than its period.
type Cause string

// The causes, in the order of their checks.
const (
	CauseNone   Cause = ""       // the tick was neither late nor too long
	CauseSystem Cause = "system" // one system took at least half of the tick
	CauseGC     Cause = "gc"     // CPU time or pauses of the garbage collector took at least half
	CauseStage  Cause = "stage"  // all systems together took at least half of the tick
	CauseBehind Cause = "behind" // the previous tick had not ended at the deadline
	CauseHost   Cause = "host"   // none of these: the operating system did not run the process
)

// lateShare is the divisor of the period: a tick that is late by more than a quarter of its period
// has a cause.
const lateShare = 4

// causeOf returns the cause of a tick. ended is the end of the previous tick.
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
