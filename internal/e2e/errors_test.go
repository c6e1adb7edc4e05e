package e2e_test

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/client"
	"github.com/netloop/netloop/netlooptest"
)

// An error about a mistake of the game's author is one sentence: one prefix, the called function
// or declared name, the path of the field, the problem, and the right value. It does not contain
// the internal packages that returned it.

var (
	begins = regexp.MustCompile(`^(netloop|client): `)
	passed = regexp.MustCompile(`\b(netloop|client|codec|netvar|rpcqueue|loop|grid|transport|wire|recording|replay|admin|inside|quicnet|memnet): `)
)

// plainWords fails unless a text has that form and contains all of want.
func plainWords(t *testing.T, text string, want ...string) {
	t.Helper()
	if !begins.MatchString(text) || len(passed.FindAllString(text, -1)) != 1 || strings.Contains(text, "\n") {
		t.Errorf("%q is not one sentence with one prefix", text)
	}
	for _, part := range want {
		if !strings.Contains(text, part) {
			t.Errorf("%q does not say %q", text, part)
		}
	}
}

// said returns the message of a function's panic.
func said(fn func()) (text string) {
	defer func() { text = fmt.Sprint(recover()) }()
	fn()
	return ""
}

func declare[S any](o ...netloop.ClassOption) func(*netloop.Schema) {
	return func(s *netloop.Schema) { netloop.NewClass[S](s, "bad", o...) }
}

func declareRPC[M any](o ...netloop.RPCOption) func(*netloop.Schema) {
	return func(s *netloop.Schema) { netloop.NewRPC[M](s, "bad", o...) }
}

type tooLarge struct {
	A int32
	B string `net:"max=16000"`
}

type inner struct {
	Speed float32 `net:"quant=zero"`
}

type outer struct{ Inner inner }

type recursive struct {
	N    int32
	Next []recursive
}

func TestDeclarationErrorsAreOneSentence(t *testing.T) {
	for want, fn := range map[string]func(*netloop.Schema){
		`class "bad": field outer.Inner.Speed: quant=zero is not a positive step; write for instance quant=1/256`: declare[outer](),
		`class "bad": field struct.A: quant=1/2000000000000 is no fraction of 1 to 1048575 over 1 to 1099511627775`: declare[struct {
			A float32 `net:"quant=1/2000000000000"`
		}](),
		`field struct.A: range=5:1 is not two numbers, the smaller one first`: declare[struct {
			A float32 `net:"quant=1,range=5:1"`
		}](),
		`field struct.A: range reaches beyond 2147483647 steps of its quant from 0; make the step larger`: declare[struct {
			A float32 `net:"quant=1/1000,range=0:1e7"`
		}](),
		`field struct.A: range without a step; add quant`: declare[struct {
			A float32 `net:"range=0:1"`
		}](),
		`field struct.A: quant or range on a field without floats`: declare[struct {
			A int32 `net:"quant=1"`
		}](),
		`field struct.A: quat=40 is not a number of bits from `: declare[struct {
			A [4]float32 `net:"quat=40"`
		}](),
		`field struct.A: max=0 is not a number from 1 to 65536`: declare[struct {
			A string `net:"max=0"`
		}](),
		`field struct.A: each=many is not a number from 1 to 65536`: declare[struct {
			A []string `net:"each=many"`
		}](),
		`field struct.A: max on a int32; it belongs on a string, []byte or slice`: declare[struct {
			A int32 `net:"max=4"`
		}](),
		`field struct.A: key=X is not a field of its elements that is an integer`: declare[struct {
			A []struct{ B int8 } `net:"key=X"`
		}](),
		`field struct.A: interval=2m is not a time above 0 and of at most 1m0s`: declare[struct {
			A int32 `net:"interval=2m"`
		}](),
		`field struct.A: threshold=-1 is not a positive number`: declare[struct {
			A int32 `net:"threshold=-1"`
		}](),
		`field struct.A: threshold of 300, which is further than the field can change, 255`: declare[struct {
			A uint8 `net:"threshold=300"`
		}](),
		`field struct.A: weight=100 is not a number from 1/64 to 64; write for instance weight=4`: declare[struct {
			A float32 `net:"weight=100"`
		}](),
		`field struct.A: lerp=cubic is not none, linear, angle or degrees`: declare[struct {
			A float32 `net:"lerp=cubic"`
		}](),
		`field struct.A: read=a-b is not all, owner or the name of a rule, of letters, digits and underscores with at most 64 bytes`: declare[struct {
			A float32 `net:"read=a-b"`
		}](),
		`field struct.A: unknown tag key "quan"; the keys are quant, range, quat`: declare[struct {
			A float32 `net:"quan=1"`
		}](),
		`field struct.B: it is named A on the wire, as A is`: declare[struct {
			A int8
			B int8 `net:"name=A"`
		}](),
		`field struct.a: unexported field; export it`:                            declare[struct{ a int8 }](),
		`field struct.A: chan int cannot be sent; use a plain struct`:            declare[struct{ A chan int }](),
		`field struct.A: time.Time cannot be sent; use a Deadline`:               declare[struct{ A time.Time }](),
		`contains itself; refer to other objects by Ref or by index`:             declare[recursive](),
		`class "bad": int is not a struct`:                                       declare[int](),
		`there is room for 15307; the largest field is B: give it a smaller max`: declare[tooLarge](),
		`field A[].B is in a slice or map`: declare[struct {
			A []struct {
				B int8 `net:"interval=1s"`
			}
		}](),
		`field struct.A[256]: more than 256 values in one struct; use a slice for a long array`: declare[struct{ A [300]int32 }](),
		`Weight(0): use 1/64 to 64`:                                                      func(*netloop.Schema) { netloop.Weight(0) },
		`Weight(NaN): use 1/64 to 64`:                                                    func(*netloop.Schema) { netloop.Weight(math.NaN()) },
		`MinRate(5000): use 0.01 to 1000 a second`:                                       func(*netloop.Schema) { netloop.MinRate(5000) },
		`NewSchema("", 1, 0): it needs a name, and versions of 0 or more`:                func(*netloop.Schema) { netloop.NewSchema("", 1, 0) },
		`NewSchema("x", -1, 0): it needs`:                                                func(*netloop.Schema) { netloop.NewSchema("x", -1, 0) },
		`a class of schema "words" needs a name of 1 to 64 bytes, not ""`:                func(s *netloop.Schema) { netloop.NewClass[outer](s, "") },
		`method "bad": message type e2e_test.outer: field outer.Inner.Speed: quant=zero`: declareRPC[outer](),
		`message type int: use a struct or a pointer to a protobuf message`:              declareRPC[int](),
		`has read=owner, but a message has no read rules`: declareRPC[struct {
			A int8 `net:"read=owner"`
		}](),
		`method "bad": AtStage(9): use the seven stages, Initialization to PostLateUpdate`: declareRPC[sum](netloop.AtStage(9)),
		`method "bad": AtStage names Update twice`:                                         declareRPC[sum](netloop.AtStage(netloop.Update, netloop.Update)),
		`method "bad": LimitPerTick(0): use 1 to 65536`:                                    declareRPC[sum](netloop.LimitPerTick(0)),
		`method "bad": LimitPerTick(70000): use 1 to 65536`:                                declareRPC[sum](netloop.LimitPerTick(70000)),
		`method "bad": Limit: a burst of 0: use 1 to 65536`:                                declareRPC[sum](netloop.Limit(1, 0)),
		`method "bad": Timeout(0s): use 1ms to 1h0m0s`:                                     declareRPC[sum](netloop.Timeout(0)),
		`method "bad": Timeout is for calls`:                                               declareRPC[sum](netloop.Timeout(time.Second)),
		`method "bad": a call is always reliable`:                                          func(s *netloop.Schema) { netloop.NewCall[pair, sum](s, "bad", netloop.Unreliable()) },
		`method "bad": message type e2e_test.outer: field outer.Inner.Speed: `:             func(s *netloop.Schema) { netloop.NewCall[pair, outer](s, "bad") },
	} {
		plainWords(t, said(func() { fn(netloop.NewSchema("words", 1, 0)) }), want)
	}
}

func TestRegistrationErrorsAreOneSentence(t *testing.T) {
	nothing := func(*netloop.Tick) {}
	elsewhere := netloop.NewClass[thing](netloop.NewSchema("elsewhere", 1, 0), "thing")
	for want, open := range map[string]func(*netloop.Room){
		`a system needs a name`:                                     func(r *netloop.Room) { r.On(netloop.Update, "", nothing) },
		`the name "transport.poll" is in use`:                       func(r *netloop.Room) { r.On(netloop.Update, "transport.poll", nothing) },
		`system "a" is to run before "b", which is not registered`:  func(r *netloop.Room) { r.On(netloop.Update, "a", nothing, netloop.Before("b")) },
		`system "a" is to be in group "g", which is not registered`: func(r *netloop.Room) { r.On(netloop.Update, "a", nothing, netloop.InSystemGroup("g")) },
		`RPC.Handle of "echo" needs a function, not nil`:            func(r *netloop.Room) { echo.Handle(r, nil) },
		`system "a": there is no function to run`:                   func(r *netloop.Room) { r.On(netloop.Update, "a", nil) },
		`method "echo" has a handler already`: func(r *netloop.Room) {
			fn := func(*netloop.Tick, *netloop.Client, text) error { return nil }
			echo.Handle(r, fn)
			echo.Handle(r, fn)
		},
		`NewGrid: a radius of 0: use a positive distance`: func(r *netloop.Room) { netloop.NewGrid(r, netloop.GridSpec{}) },
		`NewGrid: 16 grids are the most that a room has`: func(r *netloop.Room) {
			for range 17 {
				netloop.NewGrid(r, netloop.GridSpec{Radius: 1})
			}
		},
		`Class.PlaceOn: class "thing" is on a grid already`: func(r *netloop.Room) {
			for range 2 {
				things.PlaceOn(netloop.NewGrid(r, netloop.GridSpec{Radius: 1}), func(*thing) (x, y, z float64) { return })
			}
		},
		`Class.WeightFor: class "thing" belongs to schema "elsewhere", but the room runs schema "test"`: func(r *netloop.Room) {
			elsewhere.WeightFor(r, func(*netloop.Client, *netloop.Object[thing]) float64 { return 1 })
		},
		`class "thing": Reads("team"): no field is tagged read=team`: func(r *netloop.Room) {
			things.Reads(r, "team", func(*netloop.Object[thing]) netloop.Target { return netloop.Everyone() })
		},
	} {
		_, err := netloop.New(netloop.Config{}, script(open))
		plainWords(t, fmt.Sprint(err), "netloop: the game's Open: ", want)
	}
	_, err := netloop.New(netloop.Config{Room: netloop.RoomSpec{SendEvery: 1000}}, script(func(*netloop.Room) {}))
	plainWords(t, fmt.Sprint(err), "SendEvery: 1000 cannot be used: use 1 to 60")
	_, err = netloop.NewReplay(netloop.Config{}, script(func(*netloop.Room) {}), strings.NewReader("anything else"))
	if text := fmt.Sprint(err); strings.Count(text, ": ") != 2 || !strings.HasPrefix(text, "netloop: replay: not a recording") {
		t.Error(err)
	}
}

func TestUsageErrorsAreOneSentence(t *testing.T) {
	w := open(t, func(*netloop.Room) {}, netlooptest.AllowPanics())
	c := play(t, w, perfect)
	group, grid := netloop.NewClientGroup(), (*netloop.Grid)(nil)
	elsewhere := netloop.NewClass[thing](netloop.NewSchema("elsewhere", 1, 0), "thing")
	words := netloop.NewRPC[text](netloop.NewSchema("elsewhere", 1, 0), "words")
	var kept *netloop.Tick
	w.Tick(func(tick *netloop.Tick) { kept = tick })
	w.Tick(func(tick *netloop.Tick) {
		o := things.Spawn(tick, thing{})
		system := tick.Room().On(netloop.Update, "words.late", func(*netloop.Tick) {})
		for want, fn := range map[string]func(){
			`RPC.Send: method "told" does not run at Update: its declaration allows [PreUpdate PostLateUpdate]`: func() {
				told.Send(tick, netloop.Everyone(), text{}, netloop.RunAt(netloop.Update))
			},
			`sending "echo": field text.S: longer than its max of 64; raise max in its tag, or send less`: func() {
				echo.Send(tick, netloop.Everyone(), text{S: strings.Repeat("x", 65)})
			},
			`sending "bulk": 15`: func() { bulk.Send(tick, netloop.Everyone(), parcel{B: make([]byte, 15_900)}) },
			`RPC.Send: method "words" belongs to schema "elsewhere", but the room runs schema "test"`:   func() { words.Send(tick, netloop.Everyone(), text{}) },
			`Class.Spawn: class "thing" belongs to schema "elsewhere", but the room runs schema "test"`: func() { elsewhere.Spawn(tick, thing{}) },
			`Object.Explain: the client is nil`:                               func() { _, _ = o.Explain(tick, nil, "N") },
			`ClientGroup.Add: the client is nil`:                              func() { group.Add(tick, nil) },
			`ClientGroup.Remove: the client is nil`:                           func() { group.Remove(tick, nil) },
			`PerClient.Of: the client is nil`:                                 func() { new(netloop.PerClient[int]).Of(nil) },
			`System.Remove(9) of "words.late": use the seven stages`:          func() { system.Remove(9) },
			`NewPerClient belongs in the game's Open`:                         func() { netloop.NewPerClient[int](tick.Room()) },
			`Class.PlaceOn: class "thing" needs a grid, made by NewGrid, and`: func() { things.PlaceOn(grid, nil) },
		} {
			plainWords(t, said(fn), want)
		}
		if group.Has(nil) {
			t.Error("a nil client is in a group")
		}
		_, err := o.Explain(tick, server(t, tick, c), "Y")
		plainWords(t, fmt.Sprint(err), `class "thing" has no field "Y"; it has (owner), N, X, Tags, Other, Until`)
		plainWords(t, fmt.Sprint(words.Post(tick.Room(), text{})), `RPC.Post: method "words" belongs to schema "elsewhere"`)
		system = tick.Room().On(netloop.Update, "transport.poll", func(*netloop.Tick) {})
		plainWords(t, fmt.Sprint(system.Err()), `the name "transport.poll" is in use`)
		tree := tick.Room().Loop()
		tree.Remove("nobody")
		plainWords(t, fmt.Sprint(tree.Set()), `the tree cannot be set: remove "nobody": the loop has no such system`)
	})
	plainWords(t, fmt.Sprint(client.Send(c, echo, text{S: strings.Repeat("x", 65)})), `sending "echo": the message does not fit: field text.S: longer than its max of 64`)
	plainWords(t, said(func() { things.All(kept) }), `Class.All: this *Tick outlived its call`)
	for want, fn := range map[string]func(){
		`sending "told": it does not run at Update: its declaration allows`: func() { client.Send(c, told, text{}, netloop.RunAt(netloop.Update)) },
		`sending "words": it belongs to another schema than Config.Schema`:  func() { client.Send(c, words, text{}) },
		`handling "words": it belongs to another schema than Config.Schema`: func() { client.Handle(c, words, func(*netloop.Tick, text) {}) },
		`Watch: class "thing" belongs to another schema than Config.Schema`: func() { client.Watch(c, elsewhere, client.Watcher[thing]{}) },
		`sending "echo": WithState is for the server`:                       func() { client.Send(c, echo, text{}, netloop.WithState()) },
		`Handle: method "told" has a handler already`: func() {
			for range 2 {
				client.Handle(c, told, func(*netloop.Tick, text) {})
			}
		},
	} {
		plainWords(t, said(fn), want)
	}
}

// A room has 65 536 slots. A game must limit its objects, and the panic says so.
func TestSpawningTooManyObjectsPanicsInOneSentence(t *testing.T) {
	w := open(t, func(*netloop.Room) {}, netlooptest.AllowPanics())
	w.Tick(func(tick *netloop.Tick) {
		for range 1 << 16 {
			notes.Spawn(tick, note{})
		}
		plainWords(t, said(func() { notes.Spawn(tick, note{}) }), `Class.Spawn: a room holds at most 65536 objects: despawn some before spawning a "note"`)
	})
}
