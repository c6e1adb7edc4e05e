// Package phase runs the phases of a match, such as turns, countdowns and rounds: one at a time,
// each with a time limit that clients see count down.
//
//	type Table struct {
//		Phase phase.State // replicated: clients draw the bar from it
//	}
//
//	turns := phase.New(func(t *netloop.Tick) *phase.State { return &table.Edit(t).Phase })
//	turns.Begin(t, phase.Phase{For: 20 * time.Second, ForAbsent: 3 * time.Second, End: draw})
//
// A room that sleeps wakes for the end of a phase. A pause of the room
// ([netloop.Room.SetTimeScale]) stops a phase that is Scaled. Use a Timer only in the ticks of its
// room.
package phase

import (
	"time"

	"github.com/netloop/netloop"
)

// State is the replicated part of a [Timer]: a field of a class.
type State struct {
	Until  netloop.Deadline // zero without a time limit
	Length uint32           // milliseconds from the start of the phase to Until, to draw a bar
}

// Left returns the time until the end of the phase, at least 0. Server and client may call it.
func (s State) Left(t *netloop.Tick) time.Duration { return s.Until.Left(t) }

// Fraction returns the part of the phase that is left, from 1 to 0, and 0 without a time limit.
// Server and client may call it.
func (s State) Fraction(t *netloop.Tick) float64 {
	if s.Length == 0 {
		return 0
	}
	return min(float64(s.Left(t))/float64(time.Duration(s.Length)*time.Millisecond), 1)
}

// Phase describes a phase.
type Phase struct {
	// For is the time limit; zero is none, and the largest is 49 days.
	For time.Duration
	// Scaled measures the time limits in scaled time, which a paused room stops.
	Scaled bool
	// ForAbsent is the shorter time limit while [Timer.SetAbsent] reports that the player is
	// absent, from the moment of that report on; zero means that absence changes nothing. A player
	// who returns gets the rest of the full time.
	ForAbsent time.Duration
	// End is called when the time limit has passed. It may begin the next phase.
	End func(*netloop.Tick)
}

// Timer runs the phases of a room. It belongs to the room's goroutine.
type Timer struct {
	edit   func(*netloop.Tick) *State
	phase  Phase
	full   netloop.Deadline // for a player who is present
	until  netloop.Deadline // of timer
	timer  netloop.Timer
	absent bool
}

// New returns a Timer without a phase. edit returns the State to change, by [netloop.Object.Edit].
func New(edit func(*netloop.Tick) *State) *Timer { return &Timer{edit: edit} }

// Begin ends the phase, without its End, and begins another one, with the player present.
func (p *Timer) Begin(t *netloop.Tick, next Phase) {
	p.timer.Stop()
	p.phase, p.absent = next, false
	if next.For <= 0 {
		*p.edit(t) = State{}
		return
	}
	p.full = p.deadline(t, next.For)
	p.until = p.full
	*p.edit(t) = State{Until: p.full, Length: uint32(next.For.Milliseconds())}
	p.timer = t.At(p.full, p.end)
}

// end ends the phase: a later report of an absence does not end it again.
func (p *Timer) end(t *netloop.Tick) {
	end := p.phase.End
	p.phase = Phase{}
	end(t)
}

// Stop ends the phase without its End.
func (p *Timer) Stop(t *netloop.Tick) { p.Begin(t, Phase{}) }

// SetAbsent reports whether the player of the phase is absent. Repeated reports change nothing.
func (p *Timer) SetAbsent(t *netloop.Tick, absent bool) {
	if absent == p.absent || p.phase.For <= 0 || p.phase.ForAbsent <= 0 {
		return
	}
	p.absent = absent
	until := p.full
	if absent {
		if early := p.deadline(t, p.phase.ForAbsent); early.Left(t) < until.Left(t) {
			until = early
		}
	}
	if until == p.until {
		return // The timer may be due in this tick, and a new one would be due in the next.
	}
	p.timer.Stop()
	p.until = until
	p.edit(t).Until = until
	p.timer = t.At(until, p.end)
}

// deadline returns the deadline d after this tick, by the clock of the phase.
func (p *Timer) deadline(t *netloop.Tick, d time.Duration) netloop.Deadline {
	if p.phase.Scaled {
		return t.InScaled(d)
	}
	return t.In(d)
}
