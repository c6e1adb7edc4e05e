// Package loop is the deterministic core of a room and of a client: seven stages, the systems that
// run in them, and the arithmetic of ticks.
//
// # The flow of one tick
//
//	Pacer.Next(now)      reports that tick n is due and fills an Input
//	Loop.Step(in)        runs it: synchronous, one goroutine, no I/O wait
//	  Initialization     1. systems with an ended context are removed, and
//	                        systems run again after their quarantine
//	                     2. requests since the last tick take effect:
//	                        additions (Spec.Ask is called for each stage), changes,
//	                        a tree that was Set; the lists are brought up to date
//	                     3. the timers that are due are taken from a heap
//	                     4. the systems of the stage run
//	  EarlyUpdate        ...
//	  FixedUpdate        with at least one step: the Once systems, once;
//	                     then every step runs the other systems in order
//	  PreUpdate, Update, PreLateUpdate, PostLateUpdate
//	returns the Record   the cost of each stage and system, and the panics
//
// Run is the short loop around it: ask the Pacer, wait or step, until the context ends.
//
// # Lists
//
// A running stage iterates over a frozen list. Removal marks the system, and the mark is read
// before every call, so a system removed earlier in a stage does not run later in it. Additions and
// changes wait for the next Initialization, before any list is iterated. Hence no change made
// during a stage can skip or repeat a system.
//
// The cost of a request is proportional to its changes: only the affected systems and groups are
// removed and inserted at their new positions, by binary search; the others only move in memory. If
// an anchor, or a system at one of its ends, is added or removed, the positions of all anchored
// systems are computed again, and after a Set the positions of all systems.
//
// A list has two parts, which have one common order: systems that always run, and systems with a
// period, of which a pass visits only the due ones. The registry holds the requested state, the
// lists hold the state in effect: they differ only within a tick.
//
// # Order within a stage
//
//  1. Explicit anchors (Spec.Before, Spec.After) always hold between systems that are both in the
//     stage.
//  2. Place: Head, then Body, then Tail. No priority passes a built-in of Head or Tail; only an
//     explicit anchor does.
//  3. Priority, lower first.
//  4. Order of registration.
//
// The system with the anchor moves: with "before x" it takes the position of x in the order if that
// is earlier, and the systems that must run before it move too; with "after x" it waits for x. A
// group is ordered as one system, and has the same order inside; an anchor across its border
// applies to the group.
//
// # Time of periods
//
// A period is measured in game time, which includes dropped ticks; in FixedUpdate it is measured in
// the time of the fixed steps. Both times are functions of a number, so no drift accumulates. A
// timer keeps its phase.
//
// Both times have a second clock, scaled time (Scale), which runs at the requested speed from the
// next tick on. A system selects the clock of its period, and gets its delta by both clocks.
//
// # Failures
//
// A panic ends one call. After several panics in a row the system is quarantined for a number of
// ticks, which doubles while the episode lasts. A panic of a Critical system closes the loop, and
// so does runtime.Goexit in any system.
//
// # Time
//
// The package reads no clock. Every outside fact is part of Input, and the clock that is passed to
// New is used only for the Record. All arithmetic of ticks uses integers with 128-bit products, so
// it neither drifts nor depends on the platform.
package loop
