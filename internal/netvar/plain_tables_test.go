package netvar

import (
	"math/rand/v2"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/netvar/state"
	"github.com/netloop/netloop/internal/testing/refdecoder"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// With tables that were changed at random both readers accept a class, or neither does.
func TestPlainReaderAgreesOnTables(t *testing.T) {
	m := newPlainModel(t, 1, false, new(plainTally))
	taken, refused := 0, 0
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 9))
		layout := m.table.Classes()[rng.IntN(2)].Layout()
		table := &netloopv1.ClassTable{Name: "c", Fields: plainType(&layout).GetFields()}
		for range 1 + rng.IntN(3) {
			spoilFields(rng, table.GetFields())
		}
		b, err := proto.Marshal(&netloopv1.SchemaTables{Classes: []*netloopv1.ClassTable{table}})
		if err != nil {
			t.Fatal(err)
		}
		spoiled := codecType(&netloopv1.Type{Kind: netloopv1.TypeKind_TYPE_KIND_STRUCT, Fields: table.GetFields()})
		_, realErr := state.BindClass("c", nil, spoiled, new(codec.Budget))
		_, plainErr := refdecoder.ReadTables(b)
		if (realErr == nil) != (plainErr == nil) {
			t.Errorf("seed %d: the real reader says %v, the plain one %v", seed, realErr, plainErr)
		}
		if realErr == nil {
			taken++
		} else {
			refused++
		}
	}
	if taken < 100 || refused < 100 {
		t.Errorf("%d taken, %d refused", taken, refused)
	}
}

// spoilFields changes something of one field.
func spoilFields(rng *rand.Rand, fields []*netloopv1.FieldTable) {
	f := fields[rng.IntN(len(fields))]
	t := f.GetType()
	for rng.IntN(2) == 0 {
		if t.GetElement() != nil {
			t = t.GetElement()
		} else if len(t.GetFields()) > 0 {
			f = t.GetFields()[rng.IntN(len(t.GetFields()))]
			t = f.GetType()
		}
	}
	n := []int64{0, 1, 2, 3, 20, 21, 255, 65536, 65537, 1 << 20, 1<<31 - 1, 1 << 31, 1<<40 - 1, 1 << 40, 1 << 53, 1<<53 + 1}[rng.IntN(16)]
	switch rng.IntN(8) {
	case 0:
		t.Kind = netloopv1.TypeKind(1 + rng.IntN(24))
	case 1:
		t.Max = uint32(min(n, 1<<17))
	case 2:
		t.StepNum = uint64(n)
	case 3:
		t.StepDen = uint64(n)
	case 4:
		t.Low = -n
	case 5:
		t.High = n
	case 6:
		f.Name = []string{"", "a b", "É", "_", "2", "Key", "Name", "Value", "0123456789012345678901234567890123456789012345678901234567890123456789"}[rng.IntN(9)]
	case 7:
		t.Element = []*netloopv1.Type{nil, {Kind: netloopv1.TypeKind_TYPE_KIND_BOOL}, {Kind: netloopv1.TypeKind_TYPE_KIND_STRUCT}}[rng.IntN(3)]
	}
}

// codecType is the inverse of plainType.
func codecType(w *netloopv1.Type) codec.Type {
	t := codec.Type{Num: w.GetStepNum(), Den: w.GetStepDen(), Low: w.GetLow(), High: w.GetHigh(), Proto: w.GetProto(), Max: int(w.GetMax())}
	for k, kind := range plainKinds {
		if kind == w.GetKind() && k.Steps() == (t.Den != 0) {
			t.Kind = k
		}
	}
	if w.GetElement() != nil {
		e := codecType(w.GetElement())
		t.Elem = &e
	}
	for _, f := range w.GetFields() {
		t.Fields = append(t.Fields, codec.Field{Name: f.GetName(), Type: codecType(f.GetType())})
	}
	return t
}
