package app

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/testing/golden"
)

// everything has a field of each kind of type and with each way of drawing.
type everything struct {
	Yes   bool
	Small int8 `net:"lerp=linear"`
	Large uint64
	Exact float32
	Steps float64 `net:"quant=0.1,range=20:90,lerp=none"`
	Turn  float32 `net:"name=Yaw,lerp=degrees"`
	Rot   [4]float32
	Spin  [4]float32 `net:"quat=10"`
	Name  string     `net:"max=16,read=owner"`
	Data  []byte
	Hash  [32]byte
	Legs  [2]struct {
		X, Y float32 `net:"quant=1/8,lerp=none"`
		Hops uint8   `net:"teleport"`
	}
	Bag    []struct{ ID, Count uint16 } `net:"max=20"`
	Ammo   map[string]int32             `net:"max=8"`
	Seen   map[uint16]struct{}
	Target netloop.Ref[everything]
	Until  netloop.Deadline
	Said   *timestamppb.Timestamp
	Born   netloop.SpawnKey
	Local  int `net:"-"`
}

// The tests of the TypeScript client are compiled with the file, so that tsc reads it too.
func TestSchemaAsTypeScript(t *testing.T) {
	type Everything everything
	type Ask struct{ Text string }
	sc := netloop.NewSchema("every-thing", 3, 1)
	netloop.NewClass[everything](sc, "everything")
	netloop.NewClass[Everything](sc, "odd name")
	netloop.NewInput(sc, func(last struct{ Fire bool }, _ int) struct{ Fire bool } { return last })
	netloop.NewRPC[Ask](sc, "tell", netloop.AtStage(netloop.FixedUpdate, netloop.Update))
	netloop.NewRPC[*structpb.Value](sc, "frame", netloop.Unreliable())
	netloop.NewCall[Ask, *timestamppb.Timestamp](sc, "ask")
	r := command(t, &game{schema: sc, config: &settingsStruct{}}, nil, "schema", "--ts", "--import", "../src/index.js")
	if r.exit != 0 || r.stderr != "" {
		t.Fatalf("exit %d: %s", r.exit, r.stderr)
	}
	golden.Check(t, "../clients/ts/test/everything.ts", r.stdout)
}

// A game without classes, messages and inputs has a schema too.
func TestEmptySchemaAsTypeScript(t *testing.T) {
	r := command(t, &game{schema: netloop.NewSchema("nothing", 1, 0), config: &settingsStruct{}}, nil, "schema", "--ts")
	if r.exit != 0 || !strings.Contains(r.stdout, "input: undefined;") {
		t.Errorf("exit %d: %s%s", r.exit, r.stderr, r.stdout)
	}
}

// The schema of a call includes its answer, a class is drawn from its spawn only if it has the tick
// of that, and each Go type is declared once.
func TestSchemaOfCallsAsTypeScript(t *testing.T) {
	type Question struct{ N uint8 }
	type Answer struct {
		Text string `net:"max=12"`
		Odds []float64
	}
	type plain struct {
		Born netloop.SpawnKey
		X    float32
	}
	type still struct{ X float32 }
	sc := netloop.NewSchema("calls", 2, 1)
	netloop.NewClass[plain](sc, "plain")
	netloop.NewClass[still](sc, "still")
	netloop.NewCall[Question, Answer](sc, "ask", netloop.Timeout(1500*time.Millisecond))
	netloop.NewCall[Question, Question](sc, "mirror")
	r := command(t, &game{schema: sc, config: &settingsStruct{}}, nil, "schema", "--ts")
	if r.exit != 0 || r.stderr != "" {
		t.Fatalf("exit %d: %s", r.exit, r.stderr)
	}
	for _, want := range []string{
		"/** The payload of \"ask\". */\nexport interface Question {\n  /** uint8 */\n  N: number;\n}\n",
		"/** The payload of \"ask\". */\nexport interface Answer {\n  /** string max=12 */\n  Text: string;\n  /** []float64 max=64 */\n  Odds: Array<number>;\n}\n",
		`    "ask": { question: Question; answer: Answer };` + "\n",
		`    "mirror": { question: Question; answer: Question };` + "\n",
		`    "ask": { stages: [50], message: "{N uint8;}", answer: "{Text string max=12;Odds []float64 max=64;}", timeoutMs: 1500 },` + "\n",
		`      born: "Born",` + "\n", "  name: \"calls\",\n  major: 2,\n  minor: 1,\n", "  input: undefined;\n",
	} {
		if n := strings.Count(r.stdout, want); n != 1 {
			t.Errorf("%d times in the schema, want it once:\n%s", n, want)
		}
	}
	for _, never := range []string{"protobuf", `born: "X"`, "lerp:", "teleport:", "input: \""} {
		if strings.Contains(r.stdout, never) {
			t.Errorf("the schema has %s:\n%s", never, r.stdout)
		}
	}
}

// For a predicted class the command writes the beginning of the page's step function and of its
// test, with the names of the schema's module.
func TestSchemaWritesTheStepOfAPage(t *testing.T) {
	type Pull struct{ By float32 }
	type Cart struct {
		X, V  float32 `net:"quant=1/8"`
		Loads uint8
		Coal  uint64
		Ready netloop.Deadline
		Name  string
	}
	sc := netloop.NewSchema("mine", 1, 0)
	netloop.NewClass[Cart](sc, "mine cart", netloop.Predicted())
	netloop.NewClass[struct{ X float32 }](sc, "rail")
	schema := func(s *netloop.Schema, args ...string) result {
		return command(t, &game{schema: s, config: &settingsStruct{}}, nil, append([]string{"schema", "--ts"}, args...)...)
	}
	if r := schema(sc, "--step", "mine cart"); r.exit == 0 || !strings.Contains(r.stderr, `schema "mine" has no input: declare it with netloop.NewInput`) {
		t.Errorf("without an input: exit %d: %s", r.exit, r.stderr)
	}
	sc = netloop.NewSchema("mine", 1, 0)
	netloop.NewClass[Cart](sc, "mine cart", netloop.Predicted())
	netloop.NewClass[struct{ X float32 }](sc, "rail")
	netloop.NewInput(sc, func(last Pull, _ int) Pull { return last })
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"--step", "mine cart"}, []string{
			"import type { Frame } from \"@netloop/client\";\n", "import type { Pull, Cart } from \"./schema.js\";\n",
			"export function stepMineCart(cart: Cart, input: Pull, frame: Frame): void {\n", "  // X, V: float32 in Go: f(…) around each operation, cart.X = f(cart.X + f(…))\n",
			"  // Loads: an integer, which wraps as in Go: cart.Loads += 1\n", "  // Coal: a bigint", "  // Ready: a deadline: cart.Ready = frame.in(ms), and frame.left(cart.Ready) > 0 until it has passed\n",
		}},
		{[]string{"--step", "mine cart", "--test", "--import", "./netloop.js"}, []string{
			"//	netlooptest.Vectors(t, \"web/testdata/minecart.json\", 500,", "import { runVectors } from \"./testing.js\";\n", "import { stepMineCart } from \"./minecart.js\";\n",
			"test(\"mine cart steps in the page as on the server\", () => runVectors(schema, \"mine cart\", vectors, stepMineCart));\n",
		}},
	} {
		r := schema(sc, c.args...)
		for _, want := range c.want {
			if r.exit != 0 || !strings.Contains(r.stdout, want) {
				t.Errorf("%v: exit %d, want %s:\n%s%s", c.args, r.exit, want, r.stdout, r.stderr)
			}
		}
	}
	for want, args := range map[string][]string{
		`no predicted class "rail": there are mine cart`: {"--step", "rail"},
		`--test needs --step CLASS`:                      {"--test"},
	} {
		if r := schema(sc, args...); r.exit == 0 || !strings.Contains(r.stderr, want) {
			t.Errorf("%v: exit %d: %s", args, r.exit, r.stderr)
		}
	}
}
