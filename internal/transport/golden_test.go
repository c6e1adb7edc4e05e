package transport

import (
	"testing"
	"time"

	"github.com/netloop/netloop/internal/testing/golden"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// goldens are the examples of docs/WIRE.md, by name.
func goldens(t *testing.T) map[string][]byte {
	server, client := pair(SessionConfig{})
	question := Message{Method: 3, Stage: 3, Call: 9, Payload: []byte("hi")}
	answer := Message{Method: 3, Call: 9, Reply: true, Code: uint32(CodeRefused), Text: "no"}
	hash := make([]byte, 32)
	hash[0], hash[31] = 0xca, 0xfe
	away := MovedTo{Ticket: "a@box", To: Destination{
		{Carrier: "quic", Addr: "[::1]:7777", Name: "b.example"},
		{Carrier: "websocket", Addr: "wss://b.example/netloop"},
		{Carrier: "webtransport", Addr: "[::1]:7777", Hashes: [][]byte{hash}},
	}}
	vectors := map[string][]byte{
		"frame-message":  appendMessageFrame(nil, &question, sizeMessage(&question)),
		"frame-reply":    appendMessageFrame(nil, &answer, sizeMessage(&answer)),
		"frame-epoch":    appendEpochFrame(nil, Epoch{Tick: 300, At: 5 * time.Second}),
		"frame-overload": appendOverloadFrame(nil, Overload{Level: 1, SendEvery: 2}),
		"frame-time-scale": appendTimeScaleFrame(nil, TimeScale{
			Num: 1, Den: 3, Tick: 300, At: 5 * time.Second, Fraction: 1 << 63}),
		"frame-state":         appendStateFrame(nil, []byte{0xde, 0xad, 0xbe, 0xef}),
		"frame-applied":       appendCountFrame(nil, frameStateApplied, 9),
		"frame-accepted":      appendCountFrame(nil, frameAccepted, 12),
		"frame-received":      appendCountFrame(nil, frameReceived, 16),
		"frame-closing":       appendCountFrame(nil, frameClosing, 30_000_000_000),
		"frame-move":          appendMoveFrame(nil, frameMove, "a@box"),
		"frame-moved":         appendMoveFrame(nil, frameMoved, "a@box"),
		"frame-moved-away":    frameOf(t, &netloopv1.Frame{Kind: &netloopv1.Frame_Moved{Moved: away.message()}}),
		"frame-refused-moved": AppendRefused(nil, &Refusal{Code: CodeMoved, Text: "on b", Moved: &away}),
		"frame-digest":        appendDigestFrame(nil, 120, false),
		"frame-full":          appendDigestFrame(nil, 0, true),
		"frame-close":         appendCloseFrame(nil, Closed{Code: CodeKicked, Text: "cheated"}),
		"frame-refused":       AppendRefused(nil, &Refusal{Code: CodeFull, Text: "8 of 8"}),
		"frame-hello": frameOf(t, &netloopv1.Frame{Kind: &netloopv1.Frame_Hello{Hello: &netloopv1.Hello{
			Protocol: 1, Schema: "arena", Major: 1, Minor: 2, Fingerprint: []byte{0xca, 0xfe}}}}),
		"frame-welcome": mustWelcome(t, &netloopv1.Welcome{
			Protocol: 1, Minor: 2, ClientId: 7, InstanceId: []byte{0x01, 0x02},
			TickRate: &netloopv1.Rate{Num: 60, Den: 1}, FixedRate: &netloopv1.Rate{Num: 60, Den: 1}, SendEvery: 1,
			Epoch: &netloopv1.Epoch{Tick: 300, ServerNs: 5_000_000_000}, ServerNs: 5_000_100_000, Fingerprint: []byte{0xca, 0xfe}}),
	}
	number := func(kind netloopv1.TypeKind, step uint64) *netloopv1.Type {
		if step == 0 {
			return &netloopv1.Type{Kind: kind}
		}
		return &netloopv1.Type{Kind: kind, StepNum: 1, StepDen: step}
	}
	tables, err := AppendTables(nil, &netloopv1.SchemaTables{
		Classes: []*netloopv1.ClassTable{{Name: "pos", Fields: []*netloopv1.FieldTable{
			{Name: "X", Type: number(netloopv1.TypeKind_TYPE_KIND_FLOAT32, 256)}}}},
		Methods: []*netloopv1.MethodTable{{Name: "hop", Kind: netloopv1.MethodKind_METHOD_KIND_RPC, Reliable: true,
			Stages: []netloopv1.Stage{netloopv1.Stage_STAGE_UPDATE},
			Message: &netloopv1.Type{Kind: netloopv1.TypeKind_TYPE_KIND_STRUCT, Fields: []*netloopv1.FieldTable{
				{Name: "N", Type: number(netloopv1.TypeKind_TYPE_KIND_UINT8, 0)}}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	vectors["frame-schema-part"] = tables
	vectors["frame-schema-accepted"] = frameOf(t, &netloopv1.Frame{Kind: &netloopv1.Frame_SchemaAccepted{SchemaAccepted: &netloopv1.SchemaAccepted{}}})
	for _, id := range []uint64{94, 95, 97, 98, 99, 100} {
		client.AckState(id)
	}
	client.RequestTime()
	client.Flush(0)
	vectors["datagram-client"], _ = client.appendDatagram(nil, 1_000_000)
	server.ReceiveDatagram(2_000_000, vectors["datagram-client"])
	server.Slot().Packets = [][]byte{{0xde, 0xad, 0xbe, 0xef}}
	event := Message{Method: 5, Stage: 5, Payload: []byte{0x2a}}
	server.Send(event)
	server.Flush(0)
	vectors["datagram-server"], _ = server.appendDatagram(nil, 2_000_300)
	server.datagramSent(0, 0, nil)
	server.TellInputs(InputStatus{Newest: 300, Before: 0b101, Early: -1500 * time.Microsecond, Missed: 7, Generation: 1})
	server.Slot().Packets = [][]byte{{0xde, 0xad, 0xbe, 0xef}}
	server.Flush(0)
	vectors["datagram-input-status"], _ = server.appendDatagram(nil, 0)
	client.TellMispredicted(300)
	client.Inputs([]byte{0xca, 0xfe})
	client.Flush(0)
	vectors["datagram-mispredicted"], _ = client.appendDatagram(nil, 1_000_000)
	return vectors
}

// TestGoldenVectorsOfTheDescription compares the examples in docs/ with the code's output: a block
// of hex after a line "<!-- golden: name -->", comments after #.
func TestGoldenVectorsOfTheDescription(t *testing.T) {
	for name, want := range goldens(t) {
		if got := golden.Example(t, "../../docs/WIRE.md", name); string(got) != string(want) {
			t.Errorf("docs/WIRE.md: %s\nthere % x\nhere  % x", name, got, want)
		}
	}
}
