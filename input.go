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

// press returns the input m with the presses of a late input: the fields that repeat changes in it,
// such as a Fire that repeat resets. A field in which m has a press of its own keeps its value.
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

// pressFields copies each field from pressed to m that differs between pressed and after, and in
// which m equals after.
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
			return // It is unexported, and not sent.
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

// SpawnKey identifies the client's input that spawned an object. A client that has spawned the
// object at once (client.Spawn) finds the server's object by it. It is a field of the state, which
// the game sets when it spawns, and which only the owner should read:
//
//	type Shot struct {
//		Pos, Vel Vec
//		Key      netloop.SpawnKey `net:"read=owner"`
//	}
//
//	Shots.Spawn(t, Shot{…, Key: t.SpawnKey(from)}, netloop.OwnedBy(from.ID()))
//
// The zero SpawnKey is that of an object that was not spawned by an input.
type SpawnKey struct {
	Step uint64 // the fixed step of the input
	N    uint8  // the number of objects that it had spawned before
}

// SpawnKey returns the key of the next object that an input of a client spawns in this fixed
// step. It is for [Input.Handle]. The client counts in the same way, so it must be called for each
// object that the client spawns, in the same order, and for no other. It panics on a client.
func (t *Tick) SpawnKey(from *Client) SpawnKey {
	t.server("Tick.SpawnKey")
	if step := t.now.FixedStep; from.spawns.Step != step {
		from.spawns = SpawnKey{Step: step}
	}
	k := from.spawns
	from.spawns.N++
	return k
}
