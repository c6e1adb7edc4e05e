package room

import (
	"errors"
	"time"

	"github.com/netloop/netloop/internal/input"
	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/metrics"
	"github.com/netloop/netloop/internal/netvar"
	"github.com/netloop/netloop/internal/panicguard"
	"github.com/netloop/netloop/internal/schema"
	"github.com/netloop/netloop/internal/transport"
)

// Inputs arrive in packets, which poll takes. Each input waits in the buffer of its client for its
// fixed step. At the begin of each step, one input of each client runs, in the order of the
// clients' ids.

// inputs is a room's processing of client inputs.
type inputs struct {
	declared *schema.Input // nil: clients send none
	apply    InputHandler
	reader   *input.Reader
	counts   input.Counts // outcomes of all inputs of all clients so far
	views    [clampReasons]uint64
	stepAt   time.Duration // game time of the running step
	times    []tickTime    // cache by tick, of length netvar.Horizon
	orphans  uint64        // packets without a handler
	running  input.Due     // scratch
	place    panicguard.Place
	due      [16]dueStep // cache by step: the newest inputs of all clients are for a few steps
}

// dueStep caches when a step is due in an epoch, because the conversion takes some divisions.
type dueStep struct {
	step  uint64
	epoch loop.Epoch
	at    time.Duration
}

// InputHandler runs the game's handler of an input that is due.
type InputHandler func(from *Client, due *input.Due)

var errInputTwice = errors.New("Input.Handle is called twice in a room")

// HandleInput sets the handler of client inputs.
func (r *Room) HandleInput(in *schema.Input, fn InputHandler) error {
	if err := in.Belongs(r.schema); err != nil {
		return err
	}
	if r.inputs.apply != nil {
		return errInputTwice
	}
	r.inputs.apply = fn
	return nil
}

// prepareInputs allocates the reader if the schema declares an input.
func (r *Room) prepareInputs() {
	in := &r.inputs
	in.place = panicguard.Place{Kind: panicguard.Handler, Name: "input"}
	if in.declared = r.schema.Input(); in.declared != nil {
		in.reader, in.times = input.NewReader(in.declared.Form(), r.inputRepeats()), make([]tickTime, netvar.Horizon)
	}
}

// inputRepeats is the most inputs in a packet of this room's clients.
func (r *Room) inputRepeats() int { return input.Repeats(r.spec.Fixed.Period()) }

// takeInputs handles a packet of inputs.
func (r *Room) takeInputs(c *Client, a *transport.Arrival) {
	if c.kicked != nil || r.inputs.apply == nil {
		r.inputs.orphans++
		return
	}
	if c.inputs == nil {
		c.inputs, c.margins = input.NewBuffer(input.Window(r.spec.Fixed.Period())), new(margins)
	}
	before, _, ok := c.inputs.Status()
	counts, fresh := c.inputs.Take(r.inputs.reader, a.State, r.now.FixedStep)
	r.inputs.counts.Add(counts)
	if fresh {
		newest, _, _ := c.inputs.Status()
		c.early = r.stepDue(newest) - a.At
		c.viewCheck.arrived(c.early)
		if ok { // All inputs since then arrived now.
			newest = max(before+1, newest-min(newest, uint64(r.inputRepeats()-1)))
		}
		c.margins.add(a.At, r.stepDue(newest)-a.At)
	}
	c.toTell = true
}

// stepDue returns when the tick of a step is due.
func (r *Room) stepDue(step uint64) time.Duration {
	d := &r.inputs.due[step%uint64(len(r.inputs.due))]
	if d.step != step || d.epoch != r.in.Epoch {
		line := r.Timeline()
		*d = dueStep{step, r.in.Epoch, line.Deadline(r.in.Epoch, line.StepTick(step))}
	}
	return d.at
}

// applyInputs is the system input.apply: it runs one input of each client, at the begin of a fixed
// step.
func (r *Room) applyInputs() {
	r.inputs.stepAt = r.Timeline().StepTime(r.now.FixedStep)
	for _, c := range r.clients.list {
		if c.inputs == nil || c.kicked != nil {
			continue
		}
		due := &r.inputs.running
		if !c.inputs.Next(r.now.FixedStep, due) {
			continue
		}
		if due.Own {
			r.inputs.counts.Applied++
		} else {
			r.inputs.counts.Missed++
			c.toTell = true
		}
		if string(due.Message) != string(r.sleep.none) || len(due.Late) > 0 {
			r.markActive()
		}
		c.checkView()
		r.applyInput(c, due)
		r.exitIfGivenUp()
	}
	r.from = nil
}

// applyInput runs one input. A panic affects only this input.
func (r *Room) applyInput(c *Client, due *input.Due) {
	defer r.guard.Recover(&r.inputs.place, nil)
	r.from = c
	r.inputs.apply(c, due)
}

// tellInputs sends a client the status of its inputs, if that has changed.
func (c *Client) tellInputs() {
	if !c.toTell {
		return
	}
	c.toTell = false
	newest, before, ok := c.inputs.Status()
	if !ok {
		return
	}
	st := transport.InputStatus{Newest: newest, Before: before, Early: c.early, Missed: c.inputs.Missed(), Generation: c.inputs.Generation()}
	c.session.TellInputs(st)
	c.room.sent.inputStatus(c.id, &st)
}

// InputStats returns the outcome of a client's inputs, and how long before its deadline the newest
// one arrived.
func (c *Client) InputStats() (counts input.Counts, early time.Duration) {
	if c.inputs == nil {
		return input.Counts{}, 0
	}
	return c.inputs.Counts(), c.early
}

// inputSystem returns the system that runs inputs, in rooms with client inputs.
func (r *Room) inputSystem() []System {
	if r.inputs.declared == nil {
		return nil
	}
	return []System{{"input.apply", loop.FixedUpdate, loop.Head, func(loop.Stage) { r.applyInputs() }, "inputs of clients would do nothing"}}
}

// Inputs implements metrics.Room.
func (m measured) Inputs(f metrics.Part) {
	c := &m.inputs.counts
	f.Set(c.Applied, "applied")
	f.Set(c.Missed, "missed")
	f.Set(c.Late, "late")
	f.Set(c.Duplicate, "duplicate")
	f.Set(c.Ahead, "ahead")
	f.Set(c.Malformed, "malformed")
	f.Set(m.inputs.orphans, "unhandled")
}
