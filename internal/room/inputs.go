package room

import (
	"errors"
	"slices"
	"time"

	"github.com/netloop/netloop/internal/input"
	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/metrics"
	"github.com/netloop/netloop/internal/netvar/state"
	"github.com/netloop/netloop/internal/panicguard"
	"github.com/netloop/netloop/internal/schema"
	"github.com/netloop/netloop/internal/transport"
)

// Inputs arrive in packets, which poll takes. Each input waits in the buffer of its client for its
// fixed step. At the start of each step, one input of each client runs, in the order of the
// clients' ids.

// Inputs is a room's processing of client inputs.
type Inputs struct {
	*core
	declared *schema.Input // nil: clients send no inputs
	handler  InputHandler
	reader   *input.Reader
	counts   input.Counts // outcomes of all inputs of all clients so far
	views    [clampReasons]uint64
	margins  []time.Duration // scratch of reportMargins
	stepAt   time.Duration   // game time of the running step
	times    []tickTime      // cache by tick, of length state.Horizon
	orphans  uint64          // packets without a handler
	reports  uint64          // mispredictions that all clients have reported
	running  input.Due       // scratch
	place    panicguard.Func
	due      [16]dueStep // cache by step: the newest inputs of all clients belong to a few steps
}

// dueStep caches the time at which a fixed step is due in an epoch, because the computation takes
// some divisions.
type dueStep struct {
	step  uint64
	epoch loop.Epoch
	at    time.Duration
}

// InputHandler runs the game's handler of an input that is due.
type InputHandler func(from *Client, due *input.Due)

var errInputTwice = errors.New("Input.Handle is called twice in a room")

// Handle sets the handler of client inputs.
func (p *Inputs) Handle(in *schema.Input, fn InputHandler) error {
	if err := in.Belongs(p.schema); err != nil {
		return err
	}
	if p.handler != nil {
		return errInputTwice
	}
	p.handler = fn
	return nil
}

// prepare allocates the reader if the schema declares an input.
func (p *Inputs) prepare() {
	p.place = panicguard.Func{Kind: panicguard.Handler, Name: "input"}
	if p.declared = p.schema.Input(); p.declared != nil {
		p.reader, p.times = input.NewReader(p.declared.Form(), p.repeats()), make([]tickTime, state.Horizon)
	}
}

// repeats returns the maximum number of inputs in one packet of a client: a new input and repeated
// older ones.
func (p *Inputs) repeats() int { return input.Repeats(p.spec.Fixed.Period()) }

// take handles a packet of inputs.
func (p *Inputs) take(c *Client, a *transport.Arrival) {
	if c.kicked != nil || p.handler == nil {
		p.orphans++
		return
	}
	if c.inputs == nil {
		c.inputs, c.margins = input.NewBuffer(input.Window(p.spec.Fixed.Period())), new(margins)
	}
	before, _, ok := c.inputs.Status()
	counts, fresh := c.inputs.Take(p.reader, a.State, p.now.FixedStep)
	p.counts.Add(counts)
	if fresh {
		newest, _, _ := c.inputs.Status()
		c.early = p.stepDue(newest) - a.At
		c.viewCheck.arrived(c.early)
		if ok { // All inputs after it arrived now.
			newest = max(before+1, newest-min(newest, uint64(p.repeats()-1)))
		}
		c.margins.add(a.At, p.stepDue(newest)-a.At)
	}
	c.toTell = true
}

// stepDue returns the time at which the tick of a step is due.
func (p *Inputs) stepDue(step uint64) time.Duration {
	d := &p.due[step%uint64(len(p.due))]
	if d.step != step || d.epoch != p.in.Epoch {
		line := p.Timeline()
		*d = dueStep{step, p.in.Epoch, line.Deadline(p.in.Epoch, line.StepTick(step))}
	}
	return d.at
}

// apply is the system input.apply: it runs one input of each client, at the start of a fixed step.
func (p *Inputs) apply() {
	p.stepAt = p.Timeline().StepTime(p.now.FixedStep)
	for _, c := range p.clients.list {
		if c.inputs == nil || c.kicked != nil {
			continue
		}
		due := &p.running
		if !c.inputs.Next(p.now.FixedStep, due) {
			continue
		}
		if due.Own {
			p.counts.Applied++
		} else {
			p.counts.Missed++
			c.toTell = true
		}
		if string(due.Message) != string(p.Sleep.none) || len(due.Late) > 0 {
			p.Sleep.markActive()
		}
		c.checkView()
		p.applyOne(c, due)
		p.exitIfGivenUp()
	}
	p.from = nil
}

// applyOne runs one input. A panic affects only this input.
func (p *Inputs) applyOne(c *Client, due *input.Due) {
	defer p.guard.Recover(&p.place, nil)
	p.from = c
	p.handler(c, due)
}

// tellInputs sends the client the status of its inputs, if the status has changed.
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

// InputStats returns the counts of the client's inputs by outcome, and the time between the arrival
// of the newest input and the deadline of its step.
func (c *Client) InputStats() (counts input.Counts, early time.Duration) {
	if c.inputs == nil {
		return input.Counts{}, 0
	}
	return c.inputs.Counts(), c.early
}

// system returns the system input.apply, or an empty list if the schema declares no input.
func (p *Inputs) system() []System {
	if p.declared == nil {
		return nil
	}
	return []System{{"input.apply", loop.FixedUpdate, loop.Head, func(loop.Stage) { p.apply() }, "inputs of clients would do nothing"}}
}

// Inputs implements metrics.Room.
func (m measured) Inputs(f metrics.Part) {
	c := &m.r.Inputs.counts
	f.Set(c.Applied, "applied")
	f.Set(c.Missed, "missed")
	f.Set(c.Late, "late")
	f.Set(c.Duplicate, "duplicate")
	f.Set(c.Ahead, "ahead")
	f.Set(c.Malformed, "malformed")
	f.Set(m.r.Inputs.orphans, "unhandled")
}

// maxReported is the number of mispredictions of one report that are counted for all clients
// together, so that a hostile client cannot hide the others. A client with 16 predicted objects,
// all of them wrong at 60 Hz, reports 960 a second.
const maxReported = 1000

// mispredicted handles a client's report of its mispredictions since it joined. A number that is
// not larger than the last one is an old report.
func (p *Inputs) mispredicted(c *Client, n uint64) {
	if n > c.wrong {
		p.reports += min(n-c.wrong, maxReported)
		c.wrong = n
	}
}

// Mispredictions implements metrics.Room.
func (m measured) Mispredictions(f metrics.Part) { f.Set(m.r.Inputs.reports) }

// margins holds the input margins of one client in the last second. A margin is the time between
// the arrival of an input and the time at which its step is due. Each packet with new inputs has
// one margin: the margin of the oldest new input, which is due first.
type margins struct {
	all [marginsKept]margin // ring buffer
	n   uint64              // number of margins so far
}

type margin struct{ at, early time.Duration }

const (
	marginsKept = 64
	marginsSpan = time.Second
)

func (m *margins) add(at, early time.Duration) {
	m.all[m.n%marginsKept] = margin{at, early}
	m.n++
}

// least returns the 5th percentile of the margins of the last second: 95 of 100 margins are at
// least as large. It reports false if there are no margins.
func (m *margins) least(now time.Duration) (time.Duration, bool) {
	if m == nil {
		return 0, false
	}
	var early [marginsKept]time.Duration
	n := 0
	for i := range min(m.n, marginsKept) {
		if x := &m.all[i]; now-x.at <= marginsSpan {
			early[n] = x.early
			n++
		}
	}
	slices.Sort(early[:n])
	return early[n*5/100], n > 0
}

// InputMargin returns the time by which inputs of the client arrive before their steps are due: the
// 5th percentile over the last second, or 0 without inputs.
func (c *Client) InputMargin() time.Duration {
	m, _ := c.margins.least(c.room.in.Start)
	return m
}

// reportMargins sets the smallest and the median [Client.InputMargin] of the room's clients in the
// metrics.
func (p *Inputs) reportMargins() {
	if p.declared == nil {
		return
	}
	all := p.margins[:0]
	for _, c := range p.clients.list {
		if x, ok := c.margins.least(p.in.Start); ok {
			all = append(all, x)
		}
	}
	if p.margins = all; len(all) == 0 {
		p.tally.SetInputMargins(0, 0, false)
		return
	}
	slices.Sort(all)
	p.tally.SetInputMargins(all[0], all[len(all)/2], true)
}
