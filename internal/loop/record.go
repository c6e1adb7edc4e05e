package loop

import (
	"fmt"
	"time"
)

// MaxPanics bounds Record.Panics: each holds a stack trace of some kilobytes,
// and a system that panics in every one of many fixed steps says nothing new.
// What does not fit is counted in Record.MorePanics.
const MaxPanics = 64

// Record says what one tick cost. The loop owns it and its slices: they are
// valid until the next Step.
type Record struct {
	Tick uint64
	// Deadline and Start are those of the input; Start - Deadline is the lateness.
	Deadline, Start time.Duration
	// Duration is the whole of Step, by the clock of the loop.
	Duration   time.Duration
	Dropped    uint64
	FixedSteps int
	// Stages holds the duration of each stage, at index Stage-1.
	Stages [NumStages]time.Duration
	// Systems has one row per stage and system in the order of running, also for
	// those that did not run in this tick (Runs is 0).
	Systems []SystemCost
	// Panics were isolated during the tick, at most MaxPanics.
	Panics []Panic
	// MorePanics is the number of those beyond.
	MorePanics int
	// Released names the systems whose quarantine has ended with this tick.
	Released []string
	// Cancelled names the systems that a context has removed with this tick: an
	// outside fact that is no part of the Input.
	Cancelled []string
}

// SystemCost is what a system cost in one stage of one tick.
type SystemCost struct {
	Name  string
	Stage Stage
	Cost  time.Duration
	// Runs is the number of calls: more than one only in FixedUpdate, and of a
	// system that catches up.
	Runs int
	// Missed is the number of calls that a system owed and will never make: it
	// catches up only so many in a tick, and none in quarantine.
	Missed int
}

// Panic is a panic of a system that the loop caught.
type Panic struct {
	System string
	// Stage is the one that ran, or the one that the system was asked about.
	Stage Stage
	Value any
	// First says that the system has not panicked for long. Only then there is a
	// Stack: what goes on panicking says nothing new.
	First bool
	Stack []byte
	// Quarantine is for how many ticks the system does not run now. 0: it does.
	Quarantine uint64
}

// PanicError is the error of a loop that was closed by the panic of a Critical
// system.
type PanicError struct{ Panic Panic }

// Error names the system and the stage.
func (e *PanicError) Error() string {
	return fmt.Sprintf("system %q panicked in %v: %v", e.Panic.System, e.Panic.Stage, e.Panic.Value)
}

// Unwrap returns the value of the panic if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Panic.Value.(error)
	return err
}

// begin resets the record for a tick and keeps its memory.
func (r *Record) begin(in *Input) {
	r.Tick = in.Tick
	r.Deadline, r.Start = in.Deadline, in.Start
	r.Duration = 0
	r.Dropped = in.Dropped
	r.FixedSteps = in.FixedSteps
	r.Stages = [NumStages]time.Duration{}
	for i := range r.Systems {
		r.Systems[i].Cost, r.Systems[i].Runs, r.Systems[i].Missed = 0, 0, 0
	}
	clear(r.Panics) // the stacks are garbage from now on
	r.Panics = r.Panics[:0]
	r.MorePanics = 0
	r.Released, r.Cancelled = r.Released[:0], r.Cancelled[:0]
}

// panicked notes a panic.
func (r *Record) panicked(p Panic) {
	if len(r.Panics) >= MaxPanics {
		r.MorePanics++
		return
	}
	r.Panics = append(r.Panics, p)
}
