package client

import (
	"fmt"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/bridge"
	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/input"
	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/panicguard"
	"github.com/netloop/netloop/internal/schema"
	"github.com/netloop/netloop/internal/transport"
)

// inputs holds the player's inputs by step. Only Step's goroutine uses it.
type inputs struct {
	// sample requests the next input from the game, and reports whether there is one; nil: the
	// client makes no inputs.
	sample func(t *netloop.Tick) bool
	// store converts the result of sample to wire precision.
	store  func(c *schema.InputCodec, to *codec.Values) error
	codec  *schema.InputCodec // of the server's layout; nil: the server reads none
	ring   *input.Ring
	packet []byte // scratch
	told   transport.InputStatus
	made   uint64
	backs  uint64 // times that the ring has followed steps that were set back
	bytes  uint64 // of packets sent
	sent   uint64 // packets
}

// Inputs lets the client make an input in each of its fixed steps: sample returns the player's
// input at this moment. It runs first in FixedUpdate; its result is rounded to wire precision, and
// sent with the next flush. [netloop.Tick.FixedStep] is the server's step for the input, which is
// ahead of the server state that the client has: see [netloop.Input]. Each step is sampled once.
// When the server was stopped for long, the steps are set back: the inputs for the time that it has
// left out are discarded, and the same steps are sampled again. Without a connection sample is not
// called. A sample that panics makes no input for its step.
//
// Inputs panics when it is called twice, and with an input of another schema.
func Inputs[M any](c *Client, of *netloop.Input[M], sample func(*netloop.Tick) M) {
	switch {
	case bridge.Netloop.Input(of) != c.schema.Input():
		panic("client: Inputs: the input belongs to another schema than Config.Schema")
	case c.inputs.sample != nil:
		panic("client: Inputs is called twice")
	}
	next := new(M)
	c.inputs.sample = func(t *netloop.Tick) (made bool) {
		defer c.guard.Recover(&samplePlace, nil)
		*next = sample(t)
		return true
	}
	c.inputs.store = func(in *schema.InputCodec, to *codec.Values) error {
		return schema.CaptureInput(in, next, to)
	}
	_, err := c.loop.Add(loop.Spec[*netloop.Tick]{
		Name: "input.sample", Place: loop.Head, BuiltIn: "the player would do nothing",
		Ask: func(s netloop.Stage) func(*netloop.Tick) {
			if s != netloop.FixedUpdate {
				return nil
			}
			return c.makeInput
		},
	})
	if err != nil {
		panic(fmt.Sprintf("client: Inputs: %v", err))
	}
}

var samplePlace = panicguard.Func{Name: "Inputs"}

// makeInput is the system input.sample. A frame in which the steps were set back runs steps that
// are no longer due: they get no input.
func (c *Client) makeInput(t *netloop.Tick) {
	in, step := &c.inputs, c.now.FixedStep
	if !c.live() || !c.time.lead.on || !c.adaptInputs() || step > c.time.steps.done {
		return
	}
	in.ring.Done(c.time.timeline.FixedSteps(c.replica.Tick()))
	if step < c.time.lead.first || !in.ring.Wants(step) || !in.sample(t) {
		return
	}
	if err := in.store(in.codec, in.ring.Add(step, c.inputView())); err != nil {
		in.ring.Withdraw(step)
		c.stats.Unsent++
		return
	}
	in.made++
	c.time.lead.made(c.clock.Now(), step)
}

// adaptInputs selects the layout in which the server reads inputs. It reports false if it reads
// none.
func (c *Client) adaptInputs() bool {
	in := &c.inputs
	now := (*schema.InputCodec)(nil)
	switch own := c.schema.Input(); {
	case c.served != nil:
		now = c.served.Input()
	case own != nil:
		now = &own.InputCodec
	}
	if in.ring == nil && now != nil {
		in.ring, in.backs = input.NewRing(now.Form(), c.time.timeline.Fixed.Period()), c.time.lead.backs
	}
	if l := &c.time.lead; in.backs != l.backs {
		in.backs, in.told.Newest = l.backs, 0
		in.ring.SetBack(l.back)
	}
	in.codec = now
	return now != nil
}

// flushEarly returns by how much before its time a flush may happen. A new input is sent in the
// frame that made it, and the frames around that one wait for it.
func (c *Client) flushEarly() time.Duration {
	in := &c.inputs
	switch {
	case in.ring == nil || !c.time.lead.on:
		return c.pace.period / 4
	case in.ring.Newest() > c.time.lead.left:
		return c.pace.period / 2
	}
	return -c.pace.period / 2
}

// flushInputs passes the inputs that the server may lack to the session.
func (c *Client) flushInputs() {
	in := &c.inputs
	if in.ring == nil {
		return
	}
	in.packet = in.ring.AppendPacket(in.packet[:0], transport.MaxInputs)
	in.bytes += uint64(len(in.packet))
	in.sent++
	c.session.Inputs(in.packet)
	c.time.lead.flush(c.clock.Now(), in.ring.Newest())
}

// inputsTold handles the server's status of inputs. A reordered older status is ignored.
func (c *Client) inputsTold(s *transport.InputStatus) {
	in := &c.inputs
	if in.ring == nil || !in.ring.Confirm(s.Newest, s.Before, s.Generation) {
		return
	}
	c.time.lead.take(c.clock.Now(), c.time.timeline, s.Newest, s.Early)
	if s.Newest >= in.told.Newest && s.Missed >= in.told.Missed {
		in.told = *s
	}
}

// forgetInputs resets the inputs for another room, or another client id.
func (c *Client) forgetInputs() {
	c.inputs.told, c.inputs.ring = transport.InputStatus{}, nil
}
