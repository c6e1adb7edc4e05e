package e2e_test

import (
	"testing"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	arenav1 "github.com/netloop/netloop/examples/arena/proto/arena/v1"
	"github.com/netloop/netloop/netlooptest"
)

// pilot is a game with inputs of one type, which stores the last one.
func pilot[M any](s *netloop.Schema, last *M) (game, *netloop.Input[M]) {
	in := netloop.NewInput[M](s, nil)
	return game{schema: s, script: func(r *netloop.Room) {
		in.Handle(r, func(_ *netloop.Tick, _ *netloop.Client, m M) { *last = m })
	}}, in
}

// A client of another build makes inputs in the server's layout: fields are matched by name. A
// field that the client lacks is zero; a field that the server lacks is not sent.
func TestInputsOfAnotherBuildAreMatchedByName(t *testing.T) {
	type newer struct {
		Boost bool
		Turn  int8
		Aim   float32 `net:"quant=1/64"`
		Item  uint16
	}
	type older struct {
		Aim  float32 `net:"quant=1/64"`
		Horn bool
		Turn int8
	}
	var last newer
	g, _ := pilot(netloop.NewSchema("pilots", 1, 1), &last)
	w := netlooptest.New(t, g)
	old := netloop.NewSchema("pilots", 1, 0)
	controls := netloop.NewInput[older](old, nil)
	c := w.JoinAs(client.Config{Schema: old}, perfect)
	client.Inputs(c, controls, func(*netloop.Tick) older { return older{Aim: 0.501, Horn: true, Turn: -3} })
	w.Until(60, func() bool { return last.Turn != 0 })
	if want := (newer{Turn: -3, Aim: 0.5}); last != want {
		t.Errorf("the server runs %+v, want %+v", last, want)
	}
}

// If the client's or server's schema has no input, the client makes none. An input of an
// incompatible type is refused with a plain error.
func TestInputsMissingOnOneSideOrOfAnotherType(t *testing.T) {
	schema := netloop.NewSchema("pilots", 1, 1)
	var last struct{ Turn int8 }
	g, _ := pilot(schema, &last)
	w := netlooptest.New(t, g)
	none := w.JoinAs(client.Config{Schema: netloop.NewSchema("pilots", 1, 0)}, perfect)
	other := netloop.NewSchema("pilots", 1, 0)
	netloop.NewInput[struct{ Turn int16 }](other, nil)
	refused := w.JoinAs(client.Config{Schema: other}, perfect)
	proto := netloop.NewSchema("pilots", 1, 0)
	netloop.NewInput[*arenav1.Say](proto, nil)
	refusedToo := w.JoinAs(client.Config{Schema: proto}, perfect)
	w.Step(30)
	if none.State().Phase != client.Playing {
		t.Errorf("a client without inputs is %v", none.State().Phase)
	}
	for c, want := range map[*client.Client]string{
		refused:    "field Turn of the input is int8 on the server, but int16 on the client",
		refusedToo: "the input is {Turn int8} on the server, but proto arena.v1.Say on the client",
	} {
		if got := c.Closed(); got == nil || got.Code != netloop.CodeSchemaMismatch || got.Text != want {
			t.Errorf("got %v\nwant %s", got, want)
		}
	}

	w = netlooptest.New(t, game{schema: netloop.NewSchema("pilots", 1, 0)})
	old := netloop.NewSchema("pilots", 1, 1)
	controls := netloop.NewInput[struct{ Turn int8 }](old, nil)
	c := w.JoinAs(client.Config{Schema: old}, perfect)
	client.Inputs(c, controls, func(*netloop.Tick) struct{ Turn int8 } {
		t.Error("an input is made for a server that takes none")
		return struct{ Turn int8 }{}
	})
	w.Step(30)
	if c.State().Phase != client.Playing || c.Stats().Inputs != 0 {
		t.Errorf("%v, %+v", c.State().Phase, c.Stats())
	}
}

// A protobuf message can be an input. A message beyond the limit of inputs is not sent.
func TestAnInputMayBeAProtobufMessage(t *testing.T) {
	schema := netloop.NewSchema("pilots", 1, 1)
	var last *arenav1.Say
	g, controls := pilot(schema, &last)
	w := netlooptest.New(t, g)
	c := w.Join("", nil, perfect)
	text := "left"
	client.Inputs(c, controls, func(*netloop.Tick) *arenav1.Say { return &arenav1.Say{Text: text} })
	for _, text = range []string{"left", "right", ""} {
		w.Until(60, func() bool { return last != nil && last.GetText() == text })
	}
	before := c.Stats()
	text = "this is a text, and not what an input of a player is in one of sixty steps a second"
	w.Step(20)
	if after := c.Stats(); after.Inputs != before.Inputs || after.Unsent != before.Unsent+20 || last.GetText() != "" {
		t.Errorf("%+v, then %+v, and %q ran", before, after, last.GetText())
	}
}

// Errors of declarations and calls are plain sentences.
func TestInputErrorsAreOneSentenceWithTheRemedy(t *testing.T) {
	for want, fn := range map[string]func(*netloop.Schema){
		`NewInput: message type int: use a struct`: func(s *netloop.Schema) { netloop.NewInput[int](s, nil) },
		`NewInput: schema "s" already has an input`: func(s *netloop.Schema) {
			netloop.NewInput[struct{}](s, nil)
			netloop.NewInput[struct{}](s, nil)
		},
		`NewInput: input has up to 141 bytes, most of them in Name, more than 48: a datagram repeats up to 16 inputs: use quant, range and max, or an RPC for rare actions`: func(s *netloop.Schema) {
			netloop.NewInput[struct {
				Name string `net:"max=120"`
				A, B float64
			}](s, nil)
		},
		`belongs to another schema than Config.Schema`: func(s *netloop.Schema) {
			w := netlooptest.New(t, game{schema: netloop.NewSchema("other", 1, 0)})
			client.Inputs(w.Join("", nil, perfect), netloop.NewInput[struct{}](s, nil), nil)
		},
		`client: Inputs is called twice`: func(s *netloop.Schema) {
			in := netloop.NewInput[struct{}](s, nil)
			c := netlooptest.New(t, game{schema: s}).Join("", nil, perfect)
			client.Inputs(c, in, func(*netloop.Tick) struct{} { return struct{}{} })
			client.Inputs(c, in, func(*netloop.Tick) struct{} { return struct{}{} })
		},
	} {
		plainWords(t, said(func() { fn(netloop.NewSchema("s", 1, 0)) }), want)
	}
	for want, open := range map[string]func(*netloop.Room, *netloop.Input[struct{}]){
		`Input.Handle: the input belongs to schema "s", but the room runs schema "other"`: func(r *netloop.Room, in *netloop.Input[struct{}]) { in.Handle(r, nil) },
	} {
		in := netloop.NewInput[struct{}](netloop.NewSchema("s", 1, 0), nil)
		_, err := netloop.New(netloop.Config{}, game{netloop.NewSchema("other", 1, 0), func(r *netloop.Room) { open(r, in) }})
		if err == nil {
			t.Fatalf("no error contains %s", want)
		}
		plainWords(t, err.Error(), want)
	}
	schema := netloop.NewSchema("s", 1, 0)
	in := netloop.NewInput[struct{}](schema, nil)
	handle := func(r *netloop.Room) { in.Handle(r, func(*netloop.Tick, *netloop.Client, struct{}) {}) }
	_, err := netloop.New(netloop.Config{}, game{schema, func(r *netloop.Room) { handle(r); handle(r) }})
	plainWords(t, err.Error(), "Input.Handle is called twice in a room")
}
