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
	*core
	conn  *connection
	time  *serverTime
	views *views

	// sample requests the next input from the game, and reports whether there is one; nil: the
	// client makes no inputs.
	sample func(t *netloop.Tick) bool
	// store converts the result of sample to wire precision.
	store    func(c *schema.InputCodec, to *codec.Values) error
	codec    *schema.InputCodec // for the server's layout; nil: the server reads no inputs
	ring     *input.Ring
	packet   []byte                // scratch
	status   transport.InputStatus // the newest status that the server has reported
	setBacks uint64                // the value of lead.setBacks that the ring has followed
}

// Inputs makes the client send an input for each of its fixed steps: sample returns the player's
// current input. It runs first in FixedUpdate; its result is rounded to wire precision, and sent
// with the next flush. [netloop.Tick.FixedStep] is the server's step for the input, which is ahead
// of the server state that the client has: see [netloop.Input]. sample is called once for each
// step. After a long stop of the server, the steps are set back: the inputs for the time that the
// server has skipped are discarded, and sample is called again for the same steps. Without a
// connection sample is not called. If sample panics, the step gets no input.
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
		Name: "input.sample", Place: loop.Head, BuiltIn: "the player would have no input",
		Ask: at(netloop.FixedUpdate, c.inputs.make),
	})
	if err != nil {
		panic(fmt.Sprintf("client: Inputs: %v", err))
	}
}

var samplePlace = panicguard.Func{Name: "Inputs"}

// make is the system input.sample: it makes the input of the running fixed step. A frame in which
// the steps were set back runs steps that are no longer due: they get no input.
func (in *inputs) make(t *netloop.Tick) {
	step, lead := in.now.FixedStep, &in.time.lead
	if !in.conn.live() || !lead.on || !in.adapt() || step > in.time.steps.done {
		return
	}
	in.ring.Done(in.time.timeline.FixedSteps(in.replica.Tick()))
	if step < lead.first || !in.ring.Wants(step) || !in.sample(t) {
		return
	}
	v := in.views.viewed()
	if err := in.store(in.codec, in.ring.Add(step, input.View{From: v.From, To: v.To, Alpha: float32(v.Alpha)})); err != nil {
		in.ring.Withdraw(step)
		in.stats.Unsent++
		return
	}
	in.stats.Inputs++
	lead.made(in.clock.Now(), step)
}

// adapt selects the layout in which the server reads inputs, and reports false if the server reads
// no inputs. It makes the ring at the first call, and sets the ring back when the steps were set
// back.
func (in *inputs) adapt() bool {
	in.codec = nil
	switch own := in.schema.Input(); {
	case in.conn.served != nil:
		in.codec = in.conn.served.Input()
	case own != nil:
		in.codec = &own.InputCodec
	}
	lead := &in.time.lead
	if in.ring == nil && in.codec != nil {
		in.ring, in.setBacks = input.NewRing(in.codec.Form(), in.time.timeline.Fixed.Period()), lead.setBacks
	}
	if in.setBacks != lead.setBacks {
		in.setBacks, in.status.Newest = lead.setBacks, 0
		in.ring.SetBack(lead.backTo)
	}
	return in.codec != nil
}

// early returns the time by which a flush may happen before it is due or, if negative, the time by
// which it is delayed. period is the time between flushes. So a new input is sent in the frame that
// made it, and frames without a new input wait for the next input.
func (in *inputs) early(period time.Duration) time.Duration {
	switch {
	case in.ring == nil || !in.time.lead.on:
		return period / 4
	case in.ring.Newest() > in.time.lead.sent:
		return period / 2
	}
	return -period / 2
}

// flush passes the inputs that the server may lack to the session.
func (in *inputs) flush() {
	if in.ring == nil {
		return
	}
	in.packet = in.ring.AppendPacket(in.packet[:0], transport.MaxInputs)
	in.stats.InputBytes += uint64(len(in.packet))
	in.stats.InputPackets++
	in.conn.session.Inputs(in.packet)
	in.time.lead.flush(in.clock.Now(), in.ring.Newest())
}

// reported handles the server's status of inputs. A reordered older status is ignored.
func (in *inputs) reported(s *transport.InputStatus) {
	if in.ring == nil || !in.ring.Confirm(s.Newest, s.Before, s.Generation) {
		return
	}
	in.time.lead.reported(in.clock.Now(), in.time.timeline, s.Newest, s.Early)
	if s.Newest >= in.status.Newest && s.Missed >= in.status.Missed {
		in.status = *s
	}
}

// reset drops the inputs, for another room or another client id.
func (in *inputs) reset() { in.status, in.ring = transport.InputStatus{}, nil }
