package loop

import (
	"fmt"
	"time"
)

// MaxPanics limits Record.Panics: each has a stack trace of some kilobytes, and a system that
// panics in each of many fixed steps repeats the same trace. Further panics are counted in
// Record.MorePanics.
const MaxPanics = 64

// Record holds the costs of one tick. The loop owns it and its slices: they are valid until the
// next Step.
type Record struct {
	Tick uint64
	// Deadline and Start are copied from the input; Start - Deadline is the lateness.
	Deadline, Start time.Duration
	// Duration is the time of the whole Step, by the clock of the loop.
	Duration   time.Duration
	Dropped    uint64
	FixedSteps int
	// Stages holds the duration of each stage, at index Stage-1.
	Stages [NumStages]time.Duration
	// Systems has one row per stage and system in the order of running, including systems that did
	// not run in this tick (Runs is 0).
	Systems []SystemCost
	// Panics are the panics that were isolated during the tick, at most MaxPanics.
	Panics []Panic
	// MorePanics is the number of further panics.
	MorePanics int
	// Released names the systems with a quarantine that ended with this tick.
	Released []string
	// Cancelled names the systems that a context has removed with this tick. This is an outside
	// fact that is not part of the Input.
	Cancelled []string
}

// SystemCost is the cost of a system in one stage of one tick.
type SystemCost struct {
	Name  string
	Stage Stage
	Cost  time.Duration
	// Runs is the number of calls: more than one only in FixedUpdate, and of a
	// system that catches up.
	Runs int
	// Missed is the number of due calls that will never be made: a system catches up only a limited
	// number of calls in a tick, and none in quarantine.
	Missed int
}

// Panic is a panic of a system that the loop caught.
type Panic struct {
	System string
	// Stage is the running stage, or the stage passed to Ask.
	Stage Stage
	Value any
	// First is true if the system has not panicked for a long time, and always for a panic in Ask,
	// of a critical system or of a built-in. Only then the panic has a Stack, because repeated
	// panics have the same stack.
	First bool
	Stack []byte
	// Quarantine is the number of ticks for which the system is stopped; 0: it is not stopped.
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
	clear(r.Panics) // release the stacks
	r.Panics = r.Panics[:0]
	r.MorePanics = 0
	r.Released, r.Cancelled = r.Released[:0], r.Cancelled[:0]
}

// panicked records a panic.
func (r *Record) panicked(p Panic) {
	if len(r.Panics) >= MaxPanics {
		r.MorePanics++
		return
	}
	r.Panics = append(r.Panics, p)
}
