package netlooptest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/bridge"
	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/netvar/replica"
	"github.com/netloop/netloop/internal/schema"
)

// Vectors compares a file with n cases of a step function, from which a page tests its copy of the
// function: state, input and time before a step, and the state after it. The function is the one
// given to client.Predict. The cases are rounded to the wire's precision, as a prediction is.
//
//	netlooptest.Vectors(t, "web/testdata/ship.json", 500, Ships, Controls, (*Ship).Step,
//		func(r *rand.Rand, i int, s *Ship) Control {
//			if i%100 == 0 {
//				*s = Ship{X: r.Float32() * Size} // a new start
//			}
//			return Control{Thrust: i%7 > 0, Turn: int8(r.IntN(3) - 1)}
//		})
//
// Case i, from 0, begins with the result of the case before; draw returns its input, and may change
// the state. Fields with the tag `net:"-"` are not in the file, and protobuf messages are not
// supported. step gets a client's Tick of a room
// without objects, whose fixed steps are numbered from 1. Of the options [Seed] and [Room], with
// rates, have an effect.
//
// The test fails if the file differs: with NETLOOP_REWRITE=1 in the environment it is written. In
// the page runVectors of @netloop/client/testing runs the cases; `schema --ts --step CLASS` writes
// the beginning of the page's function, and with --test the beginning of its test.
func Vectors[S, M any](tb testing.TB, file string, n int, k *netloop.Class[S], in *netloop.Input[M],
	step func(s *S, t *netloop.Tick, in M), draw func(r *rand.Rand, i int, s *S) M, o ...Option,
) {
	tb.Helper()
	SpawnVectors(tb, file, n, k, in, func(s *S, t *netloop.Tick, in M, _ *Spawns) { step(s, t, in) }, draw, o...)
}

// SpawnVectors is [Vectors] for a step that spawns objects: step adds each to spawns by [AddSpawn],
// where the function of client.Predict calls client.Spawn. The step of the page gets a function for
// the same purpose.
func SpawnVectors[S, M any](tb testing.TB, file string, n int, k *netloop.Class[S], in *netloop.Input[M],
	step func(s *S, t *netloop.Tick, in M, spawns *Spawns), draw func(r *rand.Rand, i int, s *S) M, o ...Option,
) {
	tb.Helper()
	opt := options{seed: seedFromEnvironment(tb)}
	for _, one := range o {
		one.apply(&opt)
	}
	class := bridge.Netloop.Class(k)
	inputs, err := schema.NewCodec[M]()
	switch {
	case !class.Predicted:
		tb.Fatalf("netlooptest: Vectors: class %q is not declared as predicted: add netloop.Predicted() to its NewClass", k.Name())
	case err != nil || reflect.TypeFor[M]().Kind() != reflect.Struct:
		tb.Fatalf("netlooptest: Vectors: the input has to be a plain struct: %v", err)
	}
	if fields := class.State.Plan().Layout(); strings.Contains(fields.String(), "proto ") {
		tb.Fatalf("netlooptest: Vectors: class %q has a protobuf message, in %s, and the page's cases support none: use plain fields", k.Name(), fields.String())
	}
	declared := bridge.Netloop.Input(in).Schema
	declared.Freeze()
	v := vectors{tb: tb, plan: class.State.Plan(), inputs: inputs, line: timelineOf(opt.cfg.Room)}
	v.tick = bridge.Netloop.NewTick(bridge.TickConfig{
		Now: &v.now, Store: replica.New(declared.Classes()), Rand: rand.New(rand.NewPCG(opt.seed, 1)), Log: logger(tb, false),
	}).Tick.(*netloop.Tick)
	v.begin(k.Name())
	rng := rand.New(rand.NewPCG(opt.seed, 0))
	var state S
	for i := range n {
		m := draw(rng, i, &state)
		v.round(unsafe.Pointer(&state))
		spawns := &Spawns{v: &v}
		step(&state, v.tick, schema.Open[M](v.before(uint64(i+1), unsafe.Pointer(&state), &m)), spawns)
		v.now.Stage = 0 // The Tick is valid in the step only.
		v.round(unsafe.Pointer(&state))
		v.after(unsafe.Pointer(&state), spawns)
	}
	v.out.WriteString("\n]}\n")
	keepFile(tb, file, v.out.Bytes())
}

// Spawns collects the objects that a step spawns: see [SpawnVectors].
type Spawns struct {
	v    *vectors
	json []byte
}

// AddSpawn adds an object with its first state, in a step of [SpawnVectors].
func AddSpawn[S any](to *Spawns, k *netloop.Class[S], init S) {
	to.v.tb.Helper()
	class := bridge.Netloop.Class(k)
	if !class.Predicted {
		to.v.tb.Fatalf("netlooptest: AddSpawn: class %q is not declared as predicted: add netloop.Predicted() to its NewClass", k.Name())
	}
	if len(to.json) > 0 {
		to.json = append(to.json, ',')
	}
	to.json = fmt.Appendf(to.json, `{"class":%q,"state":%s}`, k.Name(), to.v.json(class.State.Plan(), unsafe.Pointer(&init)))
}

// timelineOf returns the rates of a room.
func timelineOf(r netloop.RoomSpec) loop.Timeline {
	line := loop.Timeline{Rate: loop.Hz(60)}
	if r.Rate != (netloop.Rate{}) {
		line.Rate = loop.Rate(r.Rate)
	}
	line.Fixed = line.Rate
	if r.FixedRate != (netloop.Rate{}) {
		line.Fixed = loop.Rate(r.FixedRate)
	}
	return line
}

// vectors writes the cases.
type vectors struct {
	tb     testing.TB
	plan   *codec.Plan
	inputs schema.Codec
	line   loop.Timeline
	now    loop.Now
	tick   *netloop.Tick
	out    bytes.Buffer
	last   []byte // the state after the last case
}

func (v *vectors) begin(class string) {
	layout := v.plan.Layout()
	fmt.Fprintf(&v.out, `{"class":%q,"fields":%q,"rate":[%d,%d],"fixedRate":[%d,%d],"cases":[`,
		class, layout.String(), v.line.Rate.Num, v.line.Rate.Den, v.line.Fixed.Num, v.line.Fixed.Den)
}

// round rounds a state to the wire's precision, except its local fields.
func (v *vectors) round(s unsafe.Pointer) {
	values := v.plan.Zero()
	v.plan.Capture(s, &values)
	v.plan.Restore(s, &values, nil)
}

// before begins a case: it writes its step, its state unless it is that of the last case, and its
// input. It returns the input as the server receives it.
func (v *vectors) before(step uint64, s unsafe.Pointer, m any) (received any) {
	v.tb.Helper()
	tick := v.line.StepTick(step)
	at, delta := v.line.GameTime(tick), v.line.Fixed.Period()
	v.now = loop.Now{
		Tick: tick, Stage: netloop.FixedUpdate, System: "state.predict", GameTime: at, Delta: delta,
		ScaledTime: at, ScaledDelta: delta, ScaleNum: 1, ScaleDen: 1, FixedStep: step,
	}
	message, err := v.inputs.Append(nil, m)
	if err != nil {
		v.tb.Fatalf("netlooptest: Vectors: input of case %d: %v", step-1, err)
	}
	input, err := v.inputs.JSON(message)
	if err == nil {
		received, err = v.inputs.Decode(message)
	}
	if err != nil {
		v.tb.Fatalf("netlooptest: Vectors: input of case %d: %v", step-1, err)
	}
	v.out.WriteString([]string{"\n", ",\n"}[min(step-1, 1)])
	v.out.WriteString(`{"step":` + strconv.FormatUint(step, 10))
	if state := v.json(v.plan, s); !bytes.Equal(state, v.last) {
		fmt.Fprintf(&v.out, `,"state":%s`, state)
	}
	fmt.Fprintf(&v.out, `,"input":%s`, input)
	return received
}

// after ends a case with its result.
func (v *vectors) after(s unsafe.Pointer, spawns *Spawns) {
	v.tb.Helper()
	v.last = v.json(v.plan, s)
	fmt.Fprintf(&v.out, `,"want":%s`, v.last)
	if len(spawns.json) > 0 {
		fmt.Fprintf(&v.out, `,"spawns":[%s]`, spawns.json)
	}
	v.out.WriteString("}")
}

func (v *vectors) json(plan *codec.Plan, s unsafe.Pointer) []byte {
	v.tb.Helper()
	message, err := plan.Append(nil, s)
	if err != nil {
		v.tb.Fatalf("netlooptest: Vectors: a state cannot be sent: %v", err)
	}
	text, err := plan.AppendMessageJSON(nil, message)
	if err != nil {
		v.tb.Fatalf("netlooptest: Vectors: %v", err)
	}
	return text
}

// keepFile compares a file with its content, or writes it.
func keepFile(tb testing.TB, file string, want []byte) {
	tb.Helper()
	if os.Getenv("NETLOOP_REWRITE") != "" {
		err := os.MkdirAll(filepath.Dir(file), 0o750)
		if err == nil {
			err = os.WriteFile(file, want, 0o600)
		}
		if err != nil {
			tb.Fatalf("netlooptest: Vectors: %v", err)
		}
	}
	got, err := os.ReadFile(file)
	how := fmt.Sprintf("NETLOOP_REWRITE=1 go test -run '^%s$' writes it", tb.Name())
	switch {
	case err != nil:
		tb.Errorf("netlooptest: Vectors: %v: %s", err, how)
	case !bytes.Equal(got, want):
		tb.Errorf("netlooptest: Vectors: the step function or its cases have changed, and %s has others: %s; then run the tests of the page", file, how)
	}
}
