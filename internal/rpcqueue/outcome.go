package rpcqueue

import (
	"errors"

	"github.com/netloop/netloop/internal/loop"
)

// Outcome is the result of a message. It is a metric label.
type Outcome uint8

// The outcomes of Push: the first two queue the message, all others drop it.
const (
	// Accepted: the message is queued for a stage that has not run yet, or is running.
	Accepted Outcome = iota
	// Late: the message is queued for the next tick, because its stage has already run.
	Late
	// LateDropped: the stage of the message has already run, and the method has LateDrop.
	LateDropped
	// UnknownMethod: the method is not in the table.
	UnknownMethod
	// UnknownStage: the stage does not exist.
	UnknownStage
	// StageNotAllowed: the method does not allow the stage.
	StageNotAllowed
	// NoHandler: the method has no handler here.
	NoHandler
	// Full: the queue of the stage holds StageCapacity messages or more, SenderShare of them or
	// more from the sender, or Item.NoRoom is set.
	Full
	// ClientLimited: the sender of the message exceeds Limits.Sender.
	ClientLimited
	// MethodLimited: the sender of the message exceeds Method.Limit.
	MethodLimited
	// TickLimited: the sender of the message has used up Method.PerTick in this tick.
	TickLimited
)

// The outcomes of a queued message.
const (
	// ClientGone: the sender left while the message was queued, or the handler returned a Rejection
	// with this reason.
	ClientGone = TickLimited + 1 + iota
	// Forbidden, Invalid, NotOwner: the handler returned a Rejection with this reason.
	Forbidden
	Invalid
	NotOwner
	// Ran: the handler returned nil.
	Ran
	// Failed: the handler returned an error.
	Failed
	// Panicked: the handler panicked.
	Panicked

	// NumOutcomes is the number of outcomes.
	NumOutcomes = int(iota + TickLimited + 1)
)

var outcomeNames = [NumOutcomes]string{
	"accepted", "late", "late_dropped", "unknown_method", "unknown_stage",
	"stage_not_allowed", "no_handler", "full", "client_limited", "method_limited", "tick_limited",
	"client_gone", "forbidden", "invalid", "not_owner", "ran", "failed", "panicked",
}

// String returns the outcome as a metric label, such as "late_dropped".
func (o Outcome) String() string {
	if int(o) >= NumOutcomes {
		return "invalid"
	}
	return outcomeNames[o]
}

// Queued reports whether Push kept the message.
func (o Outcome) Queued() bool { return o == Accepted || o == Late }

// Dropped reports whether the message will never run.
func (o Outcome) Dropped() bool { return o >= LateDropped && o <= NotOwner }

// Rejection is the error that a handler returns for a message that it has checked and does not run.
// Why is ClientGone, Forbidden, Invalid or NotOwner.
type Rejection struct {
	Why Outcome
	Err error
}

// Error implements error.
func (r *Rejection) Error() string { return r.Why.String() + ": " + r.Err.Error() }

// Unwrap returns Err, the reason as a text.
func (r *Rejection) Unwrap() error { return r.Err }

// Ended returns the outcome of a message after its handler has returned.
func Ended(err error) Outcome {
	if err == nil {
		return Ran
	}
	var r *Rejection
	if errors.As(err, &r) && r.Why >= ClientGone && r.Why <= NotOwner {
		return r.Why
	}
	return Failed
}

// tally holds the counts of one method.
type tally [loop.NumStages + 1][NumOutcomes]uint64

// counts counts outcomes per method and stage. The time to iterate over it depends on the number of
// used counts, and not on the number of methods.
type counts struct {
	unknown Method   // represents methods that are not in the table
	methods []*tally // by id; the last is for unknown
	used    []cell
}

// UnknownName is the name in Counts for messages of methods that are not in the table.
const UnknownName = "(unknown)"

type cell struct {
	method *Method
	stage  loop.Stage
	o      Outcome
	n      *uint64
}

// newCounts returns the counts for methods with ids below n.
func newCounts(n int) counts {
	return counts{unknown: Method{Name: UnknownName, ID: uint32(n)}, methods: append(make([]*tally, n), new(tally))}
}

// add counts an outcome. m is nil, and s is 0, if the message has none. The first use of a count
// allocates.
func (c *counts) add(m *Method, s loop.Stage, o Outcome) {
	if m == nil {
		m = &c.unknown
	}
	if c.methods[m.ID] == nil {
		c.methods[m.ID] = new(tally)
	}
	p := &c.methods[m.ID][s][o]
	if *p == 0 {
		c.used = append(c.used, cell{method: m, stage: s, o: o, n: p})
	}
	*p++
}
