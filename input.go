package netloop

import (
	"fmt"

	"github.com/netloop/netloop/internal/input"
	"github.com/netloop/netloop/internal/panicguard"
	"github.com/netloop/netloop/internal/room"
	"github.com/netloop/netloop/internal/schema"
)

// Input declares a player's actions in a fixed step: turn, thrust, fire. The client makes one for
// each of its fixed steps and numbers it with the intended step, and the server passes to the game
// exactly one per client and step, however bad the network. M is a plain struct, with fields tagged
// as those of a [Class], or a pointer to a protobuf message.
//
//	var Controls = netloop.NewInput(Schema, func(last Control, missed int) Control {
//		last.Fire = false // A held key continues; a press is not repeated.
//		return last
//	})
//
//	Controls.Handle(r, func(t *netloop.Tick, from *netloop.Client, in Control) { … }) // server
//	client.Inputs(c, Controls, func(t *netloop.Tick) Control { … })                   // client
//
// Each datagram repeats the inputs that the server has not confirmed yet, those of the last quarter
// of a second (at least 16), as differences: a key that is held costs bits. So an input takes at
// most 48 bytes, and other actions (chat, orders, purchases) are an [RPC].
type Input[M any] struct {
	in     *schema.Input
	repeat func(last M, missed int) M
}

// NewInput declares the input of a schema, which has one at most. repeat returns the input of a
// step for which none has arrived: last is the input that ran last, and missed counts the steps
// since, from 1. Nil repeats the last one as it is.
//
// An input that arrives too late for its step is not lost. The newest late input runs as it is in
// the next step without an input of its own. Of older ones the presses count: a field that repeat
// changes is a press, such as Fire above, and the next input that runs gets its value if it has
// none of its own. So presses are late on a slow path, but each runs.
//
// NewInput panics if M cannot be sent or takes more than 48 bytes, and when it is called twice for
// a schema.
func NewInput[M any](sc *Schema, repeat func(last M, missed int) M) *Input[M] {
	c, err := schema.NewCodec[M]()
	if err != nil {
		panic(fmt.Sprintf("netloop: NewInput: %v", err))
	}
	return &Input[M]{sc.s.AddInput(c), repeat}
}

func (i *Input[M]) input() *schema.Input { return i.in }

// repeatPlace is the name under which panics of repeat are counted.
var repeatPlace = panicguard.Func{Name: "NewInput.repeat"}

// Handle sets the function that runs for the inputs of clients: at the start of each fixed step, in
// the order of the clients' ids, once for each client after its first input has arrived. A client
// that has lost its connection and may return gets the result of repeat, until another program
// takes it over ([DuplicateTakeOver]) and sends its own first input. The handler owns the input. A
// panic is isolated, and costs the one input. Call Handle in [Game] Open; a second handler fails
// it.
func (i *Input[M]) Handle(r *Room, fn func(t *Tick, from *Client, in M)) {
	scratch := new(M)
	r.handled(r.e.Inputs.Handle(i.in, func(from *room.Client, due *input.Due) {
		m, err := schema.ReadInput(&i.in.InputCodec, due.Message, scratch)
		if err != nil {
			r.e.Log().Debug("an input cannot be read", "error", err)
			return
		}
		if due.Missed > 0 && i.repeat != nil {
			m = i.repeated(r, m, due.Missed)
		}
		for _, late := range due.Late {
			m = i.press(r, m, late)
		}
		if !r.e.GivenUp() { // While repeat ran.
			fn(&r.tick, clientOf(from), m)
		}
	}))
}

// again implements repeat for package bridge.
func (i *Input[M]) again(last any, missed int) any {
	if i.repeat == nil {
		return last
	}
	return i.repeat(last.(M), missed)
}

// repeated returns the result of repeat, or the last input if repeat panics.
func (i *Input[M]) repeated(r *Room, last M, missed int) (m M) {
	defer r.e.Guard().Recover(&repeatPlace, func(error) { m = last })
	return i.repeat(last, missed)
}
