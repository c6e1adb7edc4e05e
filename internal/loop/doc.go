// Package loop is the deterministic core of a room and of a client: seven
// stages, the systems that run in them, and the arithmetic of ticks.
//
// # The flow of one tick
//
//	Pacer.Next(now)      says that tick n is due and fills an Input
//	Loop.Step(in)        runs it: synchronous, one goroutine, no I/O wait
//	  Initialization     1. systems whose context has ended are removed, and those
//	                        whose quarantine has ended run again
//	                     2. what was asked for since the last tick takes effect:
//	                        additions (Spec.Ask is asked stage by stage), changes,
//	                        a tree that was Set; the lists are brought up to date
//	                     3. the timers that are due are taken from a heap
//	                     4. the systems of the stage run
//	  EarlyUpdate        ...
//	  FixedUpdate        with at least one step: the Once systems, once;
//	                     then every step runs the other systems in order
//	  PreUpdate, Update, PreLateUpdate, PostLateUpdate
//	returns the Record   what each stage and system cost, and who panicked
//
// Run is the short loop around it: ask the Pacer, wait or step, until the
// context ends.
//
// # Lists
//
// A running stage walks a frozen list. Removal marks the system, and the mark
// is read before every call, so a system removed earlier in a stage does not
// run later in it. Additions and changes wait for the next Initialization, before
// any list is walked. Hence no change made during a stage can skip or repeat
// anybody.
//
// What is asked for costs by what changes: only the systems and groups concerned
// are taken out and put in where they stand now, by binary search; the others move
// on in memory. An anchor that comes or goes, or whose ends do, lets the places of
// all that anchors speak of be found again, and a tree that was Set those of all.
//
// A list has two parts, ordered as one: who always runs, and who has a period.
// Of the latter a pass sees only those that are due. The registry is what was
// asked for, the lists are what is in effect: they differ only within a tick.
//
// # Order within a stage
//
//  1. Explicit anchors (Spec.Before, Spec.After) always hold between systems
//     that are both in the stage.
//  2. Place: Head, then Body, then Tail. No priority passes a built-in of Head
//     or Tail; only an explicit anchor goes beyond one.
//  3. Priority, lower first.
//  4. Order of registration.
//
// The system that names the anchor is the one that moves: "before x" takes the
// place of x in the order if that is earlier, and brings along what must come
// before it; "after x" waits for x. A group stands in this order as one, and has
// the same order inside; an anchor across its border speaks for the group.
//
// # Time of periods
//
// A period is measured in game time: of the ticks that ran and of those that
// were dropped, in FixedUpdate of the fixed steps. Both are functions of a
// number, so nothing adds up to a drift. A timer keeps its phase.
//
// Each of the two has a second clock, scaled time (Scale), which runs at the speed
// that the loop was told, from the next tick on. A system chooses the clock of its
// period; its deltas it sees by both.
//
// # Failures
//
// A panic costs one call. After a row of them the system is quarantined for a
// number of ticks, which doubles while the episode lasts. A Critical system
// closes the loop instead, and so does runtime.Goexit in whatever system.
//
// # Time
//
// The package reads no clock. Every outside fact enters through Input, and the
// clock handed to New fills the Record and nothing else. All arithmetic of
// ticks is integer with 128-bit products, so it neither drifts nor depends on
// the platform.
package loop
