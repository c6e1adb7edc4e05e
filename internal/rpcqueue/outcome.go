package rpcqueue

// Outcome is what became of a message. It is a metric label.
type Outcome uint8

const (
	// Accepted: queued for a stage that has yet to run.
	Accepted Outcome = iota
	// Late: queued, but its stage has already run this tick.
	Late
	// LateDropped: its stage has already run this tick and the method drops such.
	LateDropped
	// UnknownMethod: no such method in the table.
	UnknownMethod
	// UnknownStage: the stage is none.
	UnknownStage
	// StageNotAllowed: the method does not allow the stage.
	StageNotAllowed
	// NoHandler: nobody handles the method here.
	NoHandler
	// Full: the queue of the stage is full.
	Full
	// ClientGone: its sender left while it was queued.
	ClientGone
	// Ran: its handler returned nil.
	Ran
	// Failed: its handler returned an error.
	Failed
	// Panicked: its handler panicked.
	Panicked

	// NumOutcomes is the number of outcomes.
	NumOutcomes = iota
)
