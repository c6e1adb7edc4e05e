package netloop

import (
	"fmt"
	"reflect"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/netloop/netloop/internal/input"
	"github.com/netloop/netloop/internal/panicguard"
	"github.com/netloop/netloop/internal/room"
	"github.com/netloop/netloop/internal/schema"
)

// Input declares a player's actions in a fixed step: turn, thrust, fire. The client makes an input
// for each of its fixed steps, with the number of the step. The server passes exactly one input per
// client and step to the game, even if the network loses or delays inputs. M is a plain struct,
// with the tags that [Class] lists, or a pointer to a protobuf message.
//
//	var Controls = netloop.NewInput(Schema, func(last Control, missed int) Control {
//		last.Fire = false // A held key continues; a press is not repeated.
//		return last
//	})
//
//	Controls.Handle(r, func(t *netloop.Tick, from *netloop.Client, in Control) { … }) // server
//	client.Inputs(c, Controls, func(t *netloop.Tick) Control { … })                   // client
//
// Each datagram repeats the unconfirmed inputs of the last quarter of a second (at least 16), as
// differences: a held key costs a few bits. So an input takes at most 48 bytes, and other actions
// (chat, orders, purchases) should be an [RPC].
type Input[M any] struct {
	in     *schema.Input
	repeat func(last M, missed int) M
}

// NewInput declares the input of a schema. A schema has at most one. repeat returns the input for a
// step whose input has not arrived: last is the input that ran last, and missed is the number of
// steps since then, from 1. If repeat is nil, last runs again unchanged.
//
// An input that arrives too late for its step is not lost. The newest late input runs unchanged in
// the next step without its own input. Of older late inputs only the presses are used. A press is a
// field that repeat changes, such as Fire above: the next input that runs gets the value of the
// press, unless it has its own press in that field. So on a slow path presses run late, but each
// runs.
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

// repeatPlace is the name for counting panics of repeat.
var repeatPlace = panicguard.Func{Name: "NewInput.repeat"}

// Handle sets the function that runs for the inputs of clients: at the start of each fixed step, in
// the order of the clients' ids, once for each client after its first input has arrived. For a
// client that has lost its connection and may return, the function gets the result of repeat, until
// another program takes the client over ([DuplicateTakeOver]) and sends its own first input. The
// handler owns the input. A panic is isolated: only that input is lost. Call Handle in [Game] Open;
// Open fails with a second handler.
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
		if !r.e.GivenUp() { // The room may have been given up while repeat ran.
			fn(&r.tick, clientOf(from), m)
		}
	}))
}

// repeatAny implements repeat for package bridge.
func (i *Input[M]) repeatAny(last any, missed int) any {
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

// press returns the input m with the presses of a late input: the fields that repeat changes, such
// as a Fire that repeat resets. A field in which m already has a press keeps its value.
func (i *Input[M]) press(r *Room, m M, late []byte) M {
	if i.repeat == nil {
		return m
	}
	read := func() M { // Decodes each time, because repeat may write through pointers and slices.
		in, err := schema.ReadInput(&i.in.InputCodec, late, new(M))
		if err != nil {
			return m
		}
		return in
	}
	pressed, after := read(), i.repeated(r, read(), 1)
	if _, ok := any(m).(proto.Message); ok {
		pressMessage(any(m).(proto.Message).ProtoReflect(), any(pressed).(proto.Message).ProtoReflect(), any(after).(proto.Message).ProtoReflect())
		return m
	}
	pressFields(reflect.ValueOf(&m).Elem(), reflect.ValueOf(&pressed).Elem(), reflect.ValueOf(&after).Elem())
	return m
}

// pressFields copies a field from pressed to m if it differs between pressed and after, and is
// equal in m and after.
func pressFields(m, pressed, after reflect.Value) {
	switch m.Kind() {
	case reflect.Struct:
		for i := range m.NumField() {
			pressFields(m.Field(i), pressed.Field(i), after.Field(i))
		}
	case reflect.Array:
		for i := range m.Len() {
			pressFields(m.Index(i), pressed.Index(i), after.Index(i))
		}
	default:
		if !m.CanSet() {
			return // An unexported field is not sent.
		}
		same := func(a, b reflect.Value) bool { return reflect.DeepEqual(a.Interface(), b.Interface()) }
		if !same(pressed, after) && same(m, after) {
			m.Set(pressed)
		}
	}
}

// pressMessage is pressFields for a protobuf message.
func pressMessage(m, pressed, after protoreflect.Message) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		same := func(a, b protoreflect.Message) bool { return a.Has(f) == b.Has(f) && a.Get(f).Equal(b.Get(f)) }
		switch {
		case same(pressed, after) || !same(m, after):
		case pressed.Has(f):
			m.Set(f, pressed.Get(f))
		default:
			m.Clear(f)
		}
	}
}

// SpawnKey identifies the client's input that spawned an object. A client that has already spawned
// the object itself (client.Spawn) finds the server's object by the key. The key is a field of the
// state. The game sets it at the spawn, and only the owner should read it:
//
//	type Shot struct {
//		Pos, Vel Vec
//		Key      netloop.SpawnKey `net:"read=owner"`
//	}
//
//	Shots.Spawn(t, Shot{…, Key: t.SpawnKey(from)}, netloop.OwnedBy(from.ID()))
//
// The zero SpawnKey is for objects that were not spawned by an input.
type SpawnKey struct {
	Step uint64 // the fixed step of the input
	N    uint8  // number of objects that the input had spawned before
}

// SpawnKey returns the key of the next object that an input of a client spawns in this fixed step.
// It is for [Input.Handle]. The client counts its spawns too, so call SpawnKey for exactly the
// objects that the client spawns, and in the same order. It panics on a client.
func (t *Tick) SpawnKey(from *Client) SpawnKey {
	t.server("Tick.SpawnKey")
	if step := t.now.FixedStep; from.spawns.Step != step {
		from.spawns = SpawnKey{Step: step}
	}
	k := from.spawns
	from.spawns.N++
	return k
}
