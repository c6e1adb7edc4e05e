package app

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/golden"
)

// Everything has a field of each kind of type, and each way of drawing.
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
	Born   netloop.Born
	Local  int `net:"-"`
}

// The file is what the tests of the TypeScript client are compiled with, so that tsc reads it too.
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
