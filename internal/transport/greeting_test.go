package transport

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// largeTables returns the tables of a large game: 500 methods and 100 classes.
func largeTables() *netloopv1.SchemaTables {
	field := func(n int) *netloopv1.FieldTable {
		return &netloopv1.FieldTable{Name: fmt.Sprintf("FieldNumber%d", n), Type: &netloopv1.Type{
			Kind: netloopv1.TypeKind_TYPE_KIND_FLOAT32, StepNum: 1, StepDen: 256}}
	}
	fields := func(n int) (list []*netloopv1.FieldTable) {
		for i := range n {
			list = append(list, field(i))
		}
		return list
	}
	t := new(netloopv1.SchemaTables)
	for i := range 100 {
		t.Classes = append(t.Classes, &netloopv1.ClassTable{Name: fmt.Sprintf("class.number.%d", i), Fields: fields(20)})
	}
	for i := range 500 {
		t.Methods = append(t.Methods, &netloopv1.MethodTable{
			Name: fmt.Sprintf("method.number.%d", i), Kind: netloopv1.MethodKind_METHOD_KIND_CALL, Reliable: true,
			Stages:  []netloopv1.Stage{netloopv1.Stage_STAGE_UPDATE},
			Message: &netloopv1.Type{Kind: netloopv1.TypeKind_TYPE_KIND_STRUCT, Fields: fields(4)},
			Reply:   &netloopv1.Type{Kind: netloopv1.TypeKind_TYPE_KIND_STRUCT, Fields: fields(2)},
		})
	}
	return t
}

// cutFrames cuts bytes that hold whole frames.
func cutFrames(t *testing.T, b []byte) (frames [][]byte) {
	t.Helper()
	for len(b) > 0 {
		frame, rest, err := CutFrame(b, MaxFrame)
		if err != nil || frame == nil {
			t.Fatalf("%d bytes are no frame: %v", len(b), err)
		}
		frames, b = append(frames, frame), rest
	}
	return frames
}

func TestLargeTablesTravelInFrames(t *testing.T) {
	want := largeTables()
	sent, err := AppendTables(nil, want)
	if err != nil {
		t.Fatal(err)
	}
	frames := cutFrames(t, sent)
	t.Logf("%d bytes in %d frames", len(sent), len(frames))
	if len(sent) > 256<<10 || len(frames) < 2 {
		t.Errorf("%d bytes in %d frames", len(sent), len(frames))
	}
	var got *netloopv1.SchemaTables
	client := Greeting{
		Hello: &netloopv1.Hello{Protocol: ProtocolVersion, Room: "here"},
		Adapt: func(tables *netloopv1.SchemaTables) error { got = tables; return nil },
	}
	server := Reception{Handler: nobodysTables(sent), Stats: new(Stats)}
	hello, err := client.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, admit, err := server.Take(cutFrames(t, hello)[0])
	if err != nil || admit != nil || !server.Waits() || len(answer) != len(sent) {
		t.Fatalf("%v: admits %v, answers with %d bytes", err, admit, len(answer))
	}
	var accepted []byte
	for i, frame := range frames {
		said, w, err := client.Take(frame)
		if err != nil || w != nil || (said != nil) != (i == len(frames)-1) {
			t.Fatalf("part %d: %v, %v, says %x", i, err, w, said)
		}
		accepted = said
	}
	if !proto.Equal(got, want) {
		t.Error("the tables have changed on the way")
	}
	if _, admit, err = server.Take(cutFrames(t, accepted)[0]); err != nil || admit.GetRoom() != "here" {
		t.Fatal(admit, err)
	}
	rate := &netloopv1.Rate{Num: 60, Den: 1}
	welcome := cutFrames(t, mustWelcome(t, &netloopv1.Welcome{ClientId: 3, TickRate: rate, FixedRate: rate}))[0]
	if _, w, err := client.Take(welcome); err != nil || w.GetClientId() != 3 {
		t.Error(w, err)
	}
}

func TestTablesHaveABound(t *testing.T) {
	b, err := AppendTables(nil, new(netloopv1.SchemaTables))
	if err != nil || len(cutFrames(t, b)) != 1 {
		t.Error("no tables at all:", err)
	}
	name := strings.Repeat("n", MaxTables-9)
	fits := &netloopv1.SchemaTables{Classes: []*netloopv1.ClassTable{{Name: name}}}
	if n := proto.Size(fits); n != MaxTables-1 {
		t.Fatal(n)
	}
	if b, err = AppendTables(nil, fits); err != nil || len(b) > 256<<10 || len(cutFrames(t, b)) != maxTableParts {
		t.Errorf("%d bytes: %v", len(b), err)
	}
	fits.Classes[0].Name += "xx"
	if _, err := AppendTables(nil, fits); err == nil {
		t.Error("too large tables are sent")
	}
	if b, err := AppendTables(nil, &netloopv1.SchemaTables{Classes: []*netloopv1.ClassTable{{Name: "\xff"}}}); err == nil || len(b) != 0 {
		t.Errorf("tables whose names are no text are sent: %d bytes", len(b))
	}
}

// part is a frame with a part of tables.
func part(t *testing.T, size int, data string) []byte {
	return marshal(t, &netloopv1.Frame{Kind: &netloopv1.Frame_SchemaPart{
		SchemaPart: &netloopv1.SchemaPart{Size: uint32(size), Data: []byte(data)}}})
}

func TestHostileTablesEndTheHandshake(t *testing.T) {
	rate := &netloopv1.Rate{Num: 60, Den: 1}
	welcome := cutFrames(t, mustWelcome(t, &netloopv1.Welcome{TickRate: rate, FixedRate: rate}))[0]
	twice := protowire.AppendBytes(protowire.AppendTag(append([]byte(nil), welcome...), frameRefused, protowire.BytesType), nil)
	endless := [][]byte{}
	for range maxTableParts + 1 {
		endless = append(endless, part(t, 100, ""))
	}
	for name, frames := range map[string][][]byte{
		"too large":            {part(t, MaxTables+1, "x")},
		"more than announced":  {part(t, 2, "xyz")},
		"another size":         {part(t, 3, "x"), part(t, 4, "x")},
		"without end":          endless,
		"malformed":            {part(t, 2, "\xff\xff")},
		"after the tables":     {part(t, 0, ""), part(t, 0, "")},
		"a welcome in between": {part(t, 3, "x"), welcome},
		"a frame too large":    {part(t, MaxTables, strings.Repeat("x", MaxFrame))},
		"two kinds":            {twice},
		"a hello":              {cutFrames(t, frameOf(t, &netloopv1.Frame{Kind: &netloopv1.Frame_Hello{Hello: &netloopv1.Hello{}}}))[0]},
	} {
		g := Greeting{Adapt: func(*netloopv1.SchemaTables) error { return nil }}
		var err error
		for _, f := range frames {
			if _, _, err = g.Take(f); err != nil {
				break
			}
		}
		var closed *Closed
		if !errors.As(err, &closed) || closed.Code != CodeProtocol {
			t.Errorf("%s: %v", name, err)
		}
		if bye := g.Goodbye(err); bye.Code != CodeProtocol || bye.Text == "" {
			t.Errorf("%s: the server is told %v", name, bye)
		}
	}
}

func TestGoodbyeSaysWhoseFaultItIs(t *testing.T) {
	g := Greeting{Adapt: func(*netloopv1.SchemaTables) error {
		return &Refusal{Code: CodeSchemaMismatch, Text: strings.Repeat("x", 2*MaxText)}
	}}
	_, _, err := g.Take(part(t, 0, ""))
	if bye := g.Goodbye(err); bye.Code != CodeSchemaMismatch || len(bye.Text) != MaxText {
		t.Errorf("a schema that does not fit: %v", bye)
	}
	old := new(Greeting)
	if _, _, err := old.Take(part(t, 0, "")); old.Goodbye(err).Code != CodeSchemaMismatch {
		t.Error("a client that cannot adapt:", err)
	}
	for _, err := range []error{&Refusal{Code: CodeSchemaMismatch, Text: "the server's"}, &Refusal{Code: CodeFull, Text: ""}, errors.New("away")} {
		if bye := new(Greeting).Goodbye(err); bye.Code != CodeLeft {
			t.Errorf("%v: %v", err, bye)
		}
	}
	if bye := new(Greeting).Goodbye(ErrFrameTooLarge); bye.Code != CodeProtocol {
		t.Error(bye)
	}
}

func TestAReceptionRefusesOtherFrames(t *testing.T) {
	hello := cutFrames(t, frameOf(t, &netloopv1.Frame{Kind: &netloopv1.Frame_Hello{Hello: &netloopv1.Hello{Protocol: ProtocolVersion}}}))[0]
	both := append(append([]byte(nil), hello...), frameOf(t, &netloopv1.Frame{Kind: &netloopv1.Frame_Close{Close: &netloopv1.Close{}}})[1:]...)
	for name, frames := range map[string][][]byte{
		"two kinds":      {both},
		"another hello":  {hello, hello},
		"an empty frame": {hello, {}},
		"garbage":        {hello, {0xff}},
	} {
		r := Reception{Handler: nobodysTables{1}, Stats: new(Stats)}
		var err error
		for _, f := range frames {
			_, _, err = r.Take(f)
		}
		var refusal *Refusal
		if !errors.As(err, &refusal) || refusal.Code != CodeProtocol || r.Stats.Dropped(DropHello) != 1 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestHostileTablesCostLittle decodes the tables that take the most memory for their bytes.
func TestHostileTablesCostLittle(t *testing.T) {
	empty := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), nil)
	var tables []byte
	for len(tables)+len(empty) <= MaxTables {
		tables = append(tables, empty...)
	}
	g := Greeting{Adapt: func(*netloopv1.SchemaTables) error { return nil }, tables: tables, size: len(tables)}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := g.adapt(); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 32<<20 {
		t.Errorf("%d bytes of tables take %d bytes of memory", len(tables), n)
	}
}
