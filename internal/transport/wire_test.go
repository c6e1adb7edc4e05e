package transport

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// protoMessage converts m to the generated type.
func protoMessage(m *Message) *netloopv1.Message {
	return &netloopv1.Message{
		Method: m.Method, Stage: netloopv1.Stage(m.Stage * stageStep), Call: m.Call, Reply: m.Reply,
		Code: netloopv1.Code(m.Code), Text: m.Text, Payload: m.Payload, Tick: m.Tick,
	}
}

func marshal(t testing.TB, m proto.Message) []byte {
	t.Helper()
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// frameOf returns a frame as encoded by the generated code, with its length.
func frameOf(t testing.TB, f *netloopv1.Frame) []byte {
	t.Helper()
	b, err := AppendFrame(nil, f)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func randomMessage(rng *rand.Rand) Message {
	pick := func(v uint64) uint64 { return v & (1<<rng.IntN(64) - 1) * uint64(rng.IntN(2)) }
	return Message{
		Method: uint32(pick(rng.Uint64())), Stage: uint8(rng.IntN(8)), Call: pick(rng.Uint64()),
		Reply: rng.IntN(2) == 0, Code: uint32(pick(rng.Uint64())), Tick: pick(rng.Uint64()),
		Text: strings.Repeat("é", rng.IntN(3)*rng.IntN(100)), Payload: make([]byte, rng.IntN(2)*rng.IntN(300)),
	}
}

func TestEnvelopesEqualProtoMarshal(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		m := randomMessage(rng)
		want := marshal(t, protoMessage(&m))
		if got := appendMessage(nil, &m); !bytes.Equal(got, want) || len(got) != sizeMessage(&m) {
			t.Fatalf("%+v:\n% x\n% x", m, got, want)
		}
		got, err := parseMessage(want)
		if len(m.Payload) == 0 {
			m.Payload = nil
		}
		if err != nil || !reflect.DeepEqual(got, m) {
			t.Fatalf("%+v came back as %+v: %v", m, got, err)
		}
		f := &netloopv1.Frame{Kind: &netloopv1.Frame_Message{Message: protoMessage(&m)}}
		if got, want := appendMessageFrame(nil, &m, sizeMessage(&m)), frameOf(t, f); !bytes.Equal(got, want) {
			t.Fatalf("frame\n% x\n% x", got, want)
		}
	}
	epoch := &netloopv1.Epoch{Tick: 1 << 40, ServerNs: 5}
	for name, c := range map[string]struct {
		got  []byte
		want *netloopv1.Frame
	}{
		"epoch":      {appendEpochFrame(nil, Epoch{1 << 40, 5}), &netloopv1.Frame{Kind: &netloopv1.Frame_Epoch{Epoch: epoch}}},
		"zero epoch": {appendEpochFrame(nil, Epoch{0, -1}), &netloopv1.Frame{Kind: &netloopv1.Frame_Epoch{Epoch: &netloopv1.Epoch{}}}},
		"overload": {appendOverloadFrame(nil, Overload{3, 120}), &netloopv1.Frame{Kind: &netloopv1.Frame_Overload{
			Overload: &netloopv1.Overload{Level: netloopv1.OverloadLevel_OVERLOAD_LEVEL_REFUSING, SendEvery: 120}}}},
		"time scale": {appendTimeScaleFrame(nil, TimeScale{16, 1e6, 1 << 40, math.MaxInt64, math.MaxUint64}), &netloopv1.Frame{Kind: &netloopv1.Frame_TimeScale{
			TimeScale: &netloopv1.TimeScale{Num: 16, Den: 1e6, Tick: 1 << 40, ScaledNs: math.MaxInt64, Fraction: math.MaxUint64}}}},
		"a pause at the start": {appendTimeScaleFrame(nil, TimeScale{Den: 1}), &netloopv1.Frame{Kind: &netloopv1.Frame_TimeScale{TimeScale: &netloopv1.TimeScale{Den: 1}}}},
		"state":                {appendStateFrame(nil, []byte{1, 2, 3}), &netloopv1.Frame{Kind: &netloopv1.Frame_State{State: []byte{1, 2, 3}}}},
		"state applied": {appendCountFrame(nil, frameStateApplied, 300), &netloopv1.Frame{Kind: &netloopv1.Frame_StateApplied{
			StateApplied: &netloopv1.StateApplied{Record: 300}}}},
		"accepted": {appendCountFrame(nil, frameAccepted, 300), &netloopv1.Frame{Kind: &netloopv1.Frame_Accepted{
			Accepted: &netloopv1.Accepted{Received: 300}}}},
		"messages received": {appendCountFrame(nil, frameReceived, 300), &netloopv1.Frame{Kind: &netloopv1.Frame_MessagesReceived{
			MessagesReceived: &netloopv1.MessagesReceived{Messages: 300}}}},
		"digest": {appendDigestFrame(nil, 300, true), &netloopv1.Frame{Kind: &netloopv1.Frame_DigestRequest{
			DigestRequest: &netloopv1.DigestRequest{Snapshots: 300, FullState: true}}}},
		"a text of one letter": {appendMessageFrame(nil, &Message{Text: "x", Payload: []byte{1}}, 6), &netloopv1.Frame{Kind: &netloopv1.Frame_Message{
			Message: &netloopv1.Message{Text: "x", Payload: []byte{1}}}}},
		"a close in one letter": {appendCloseFrame(nil, Closed{Text: "x"}), &netloopv1.Frame{Kind: &netloopv1.Frame_Close{Close: &netloopv1.Close{Text: "x"}}}},
		"close": {appendCloseFrame(nil, Closed{Code: 1<<31 + 5, Text: "bye"}), &netloopv1.Frame{Kind: &netloopv1.Frame_Close{
			Close: &netloopv1.Close{Code: -1<<31 + 5, Text: "bye"}}}},
	} {
		if want := frameOf(t, c.want); !bytes.Equal(c.got, want) {
			t.Errorf("%s:\n% x\n% x", name, c.got, want)
		}
	}
}

func TestDatagramEqualsProtoMarshal(t *testing.T) {
	server, client := pair(SessionConfig{})
	client.AckState(7)
	client.AckState(9)
	client.RequestTime()
	m := Message{Method: 3, Stage: 5, Payload: []byte("hi")}
	client.Send(m)
	client.Send(m)
	client.Flush(0)
	b, _ := client.appendDatagram(nil, 1000)
	want := marshal(t, &netloopv1.Datagram{
		Number: 1, Acks: &netloopv1.AckRanges{Newest: 9, Runs: []uint32{1, 1, 1}},
		TimeRequest: &netloopv1.TimeRequest{SentNs: 1000},
		Messages:    []*netloopv1.Message{protoMessage(&m), protoMessage(&m)},
	})
	if !bytes.Equal(b, want) {
		t.Errorf("client\n% x\n% x", b, want)
	}
	server.ReceiveDatagram(2000, b)
	server.Slot().Packets = [][]byte{{1, 2, 3}}
	server.Send(m)
	server.Flush(0)
	b, _ = server.appendDatagram(nil, 3000)
	want = marshal(t, &netloopv1.Datagram{
		Number:    1,
		TimeReply: &netloopv1.TimeReply{RequestNs: 1000, ReceivedNs: 2000, SentNs: 3000},
		State:     []byte{1, 2, 3},
		Messages:  []*netloopv1.Message{protoMessage(&m)},
	})
	if !bytes.Equal(b, want) {
		t.Errorf("server\n% x\n% x", b, want)
	}
}

func TestLargestMessagesFit(t *testing.T) {
	server, client := pair(SessionConfig{})
	full := Message{Method: 1<<32 - 1, Stage: 7, Call: 1<<64 - 1, Reply: true, Code: 1<<32 - 1}
	// Answers are not held.
	held := Message{Method: 1<<32 - 1, Stage: 7, Tick: 1<<64 - 1, Payload: make([]byte, MaxDatagramPayload)}
	large := full
	large.Reliable, large.Text, large.Payload = true, strings.Repeat("x", MaxText+10), make([]byte, MaxPayload)
	small := full
	small.Payload = make([]byte, MaxDatagramPayload)
	if !server.Send(large) || !server.Send(small) || !server.Send(held) {
		t.Fatal("refused")
	}
	server.Flush(0)
	carry(t, server, client, 0)
	if as := client.arrivals(); len(as) != 3 || len(as[2].Message.Text) != MaxText || as[1].Message.Tick != held.Tick {
		t.Errorf("%d arrivals", len(as))
	}
	large.Payload = make([]byte, MaxFrame)
	small.Payload = make([]byte, MaxDatagram)
	if server.Send(large) || server.Send(small) || server.Send(Message{Stage: 8}) {
		t.Error("a message that can never leave was taken")
	}
	if n := server.stats.Dropped(DropOversize); n != 3 {
		t.Error("counted", n)
	}
}

func TestDatagramWithABrokenEnvelopeIsDroppedWhole(t *testing.T) {
	number := appendNumber(nil, 1)
	with := func(b ...byte) []byte { return append(bytes.Clone(number), b...) }
	acks := func(newest uint64, runs ...uint32) []byte {
		return marshal(t, &netloopv1.Datagram{Number: 1, Acks: &netloopv1.AckRanges{Newest: newest, Runs: runs}})
	}
	many := make([]uint32, maxAckRuns+2)
	for i := range many {
		many[i] = 1
	}
	for name, b := range map[string][]byte{
		"empty":            {},
		"no number":        with()[:0:0],
		"number zero":      {8, 0},
		"two numbers":      with(8, 2),
		"two acks":         with(2<<3|2, 5, 8, 9, 18, 1, 4, 2<<3|2, 5, 8, 9, 18, 1, 4),
		"two requests":     with(3<<3|2, 0, 3<<3|2, 0),
		"two replies":      with(4<<3|2, 0, 4<<3|2, 0),
		"two packets":      with(5<<3|2, 1, 1, 5<<3|2, 1, 1),
		"two inputs":       with(8<<3|2, 1, 1, 8<<3|2, 1, 1),
		"two statuses":     with(9<<3|2, 0, 9<<3|2, 0),
		"a broken status":  with(9<<3|2, 1, 8),
		"truncated":        with(5<<3|2, 9, 1),
		"a bad tag":        with(0xff),
		"field zero":       with(0, 0),
		"an open group":    with(20<<3 | 3&0x7f),
		"a time too large": with(3<<3|2, 11, 8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1),
		"acks: no run":     acks(5),
		"acks: even":       acks(5, 1, 1),
		"acks: zero":       acks(5, 1, 0, 1),
		"acks: below 0":    acks(5, 7),
		"acks: too wide":   acks(5000, AckWindow+1),
		"acks: too wide 2": acks(5000, 1, AckWindow-1, 1),
		"acks: too many":   acks(5000, many...),
		"acks: unpacked":   with(2<<3|2, 4, 8, 5, 16, 1),
		"acks: both":       with(2<<3|2, 7, 8, 5, 18, 1, 1, 16, 1),
	} {
		server, _ := pair(SessionConfig{})
		server.ReceiveDatagram(0, b)
		as := server.arrivals()
		if n := server.stats.Dropped(DropDatagram); n != 1 || len(as) != 1 || as[0].Kind != Discarded || as[0].Value != 1 {
			t.Errorf("%s: counted %d, arrivals %v", name, n, as)
		}
	}
}

func TestUnknownFieldsAreSkipped(t *testing.T) {
	server, _ := pair(SessionConfig{})
	b := protowire.AppendTag(nil, 100, protowire.StartGroupType)
	b = appendField(b, 3, 5)
	b = protowire.AppendTag(b, 100, protowire.EndGroupType)
	b = appendField(b, 99, 1)
	b = append(appendHead(b, 101, 3), "new"...)
	b = protowire.AppendFixed64(protowire.AppendTag(b, 102, protowire.Fixed64Type), 1)
	// another wire type
	b = protowire.AppendFixed32(protowire.AppendTag(b, fieldState, protowire.Fixed32Type), 1)
	b = appendNumber(b, 1)
	m := Message{Method: 9}
	b = appendDatagramMessage(b, &m, sizeMessage(&m))
	server.ReceiveDatagram(0, b)
	if as := server.arrivals(); len(as) != 1 || as[0].Message.Method != 9 {
		t.Errorf("arrivals %+v", as)
	}
}

func TestFieldsOfTheOtherDirectionAreCounted(t *testing.T) {
	acks := &netloopv1.AckRanges{Newest: 1, Runs: []uint32{1}}
	for name, c := range map[string]struct {
		d              *netloopv1.Datagram
		server, client uint64 // the charge at each of them
	}{
		"state":                {&netloopv1.Datagram{State: []byte{1}}, 1, 0},
		"a time reply":         {&netloopv1.Datagram{TimeReply: &netloopv1.TimeReply{}}, 1, 0},
		"the status of inputs": {&netloopv1.Datagram{InputStatus: &netloopv1.InputStatus{}}, 1, 0},
		"a time request":       {&netloopv1.Datagram{TimeRequest: &netloopv1.TimeRequest{}}, 0, 1},
		"acknowledgements":     {&netloopv1.Datagram{Acks: acks}, 0, 1},
		"inputs":               {&netloopv1.Datagram{Inputs: []byte{1}}, 0, 1},
		"mispredictions":       {&netloopv1.Datagram{Mispredicted: 1}, 0, 1},
		"more than a KiB":      {&netloopv1.Datagram{State: make([]byte, 1000), Inputs: make([]byte, 60)}, 2, 1},
	} {
		server, client := pair(SessionConfig{})
		c.d.Number = 1
		server.ReceiveDatagram(5, marshal(t, c.d))
		client.ReceiveDatagram(5, marshal(t, c.d))
		if s, k := server.stats.Dropped(DropRole), client.stats.Dropped(DropRole); s != min(c.server, 1) || k != c.client {
			t.Errorf("%s: the server has counted %d, the client %d", name, s, k)
		}
		held := uint64(0)
		for _, a := range server.arrivals() {
			if a.Kind == Discarded {
				held += a.Value
			}
		}
		if held != c.server {
			t.Errorf("%s: counts as %d messages, want %d", name, held, c.server)
		}
	}
}

func TestATimeThatIsStillToComeIsNone(t *testing.T) {
	_, client := pair(SessionConfig{})
	client.ReceiveDatagram(5, marshal(t, &netloopv1.Datagram{Number: 1, TimeReply: &netloopv1.TimeReply{RequestNs: 6}}))
	if n := client.stats.Dropped(DropTime); n != 1 || len(client.arrivals()) != 0 {
		t.Errorf("counted %d", n)
	}
}

func TestHandshake(t *testing.T) {
	h := &netloopv1.Hello{Protocol: ProtocolVersion, Schema: "arena", Params: []byte("{}")}
	b, err := AppendHello(nil, h)
	if err != nil {
		t.Fatal(err)
	}
	frame, err := ReadFrame(bytes.NewReader(append(b, 1, 2, 3)), MaxHandshake)
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeHello(frame)
	if err != nil || !proto.Equal(got, h) {
		t.Fatal(got, err)
	}
	for name, c := range map[string]struct {
		hello *netloopv1.Hello
		code  Code
	}{
		"version": {&netloopv1.Hello{Protocol: 2}, CodeBadVersion},
		"room":    {&netloopv1.Hello{Protocol: ProtocolVersion, Room: strings.Repeat("r", 1000)}, CodeProtocol},
	} {
		f := marshal(t, &netloopv1.Frame{Kind: &netloopv1.Frame_Hello{Hello: c.hello}})
		var r *Refusal
		if _, err := DecodeHello(f); !errors.As(err, &r) || r.Code != c.code {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := AppendHello(nil, &netloopv1.Hello{Params: make([]byte, MaxHandshake)}); !errors.Is(err, ErrFrameTooLarge) {
		t.Error(err)
	}

	frame, _, _ = CutFrame(AppendRefused(nil, &Refusal{Code: CodeFull, Text: "come back \xff later"}), MaxHandshake)
	var r *Refusal
	if _, _, err := new(Greeting).Take(frame); !errors.As(err, &r) || r.Code != CodeFull || r.Text != "come back ? later" {
		t.Error(err)
	}
	for _, f := range [][]byte{frameOf(t, &netloopv1.Frame{}), mustWelcome(t, &netloopv1.Welcome{}), {1, 0xff}} {
		var c *Closed
		frame, _, _ := CutFrame(f, MaxHandshake)
		if _, _, err := new(Greeting).Take(frame); !errors.As(err, &c) || c.Code != CodeProtocol {
			t.Error(err)
		}
	}
}

// mustWelcome is AppendWelcome for a test.
func mustWelcome(t *testing.T, w *netloopv1.Welcome) []byte {
	t.Helper()
	b, err := AppendWelcome(nil, w)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestCodesHaveTextsAndMirrorTheSchema(t *testing.T) {
	for n := range netloopv1.Code_name {
		c := Code(n)
		if c < CodeGame && (int(c) >= numCodes-1 || codeTexts[c] == "") {
			t.Errorf("code %d has no text", n)
		}
	}
	for d, n := range dropNames {
		if n[0] == "" || n[1] == "" {
			t.Errorf("drop %d has no name", d)
		}
	}
	if s := (CodeGame + 3).String(); s != "game code 1003" {
		t.Error(s)
	}
	if s := clip(strings.Repeat("é", MaxText)); len(s) != MaxText {
		t.Error(len(s))
	}
}

func TestStageNumbersMirrorTheSchema(t *testing.T) {
	for n := range netloopv1.Stage_name {
		m, err := parseMessage(appendField(nil, 2, uint64(n)))
		if err != nil || int32(m.Stage)*stageStep != n {
			t.Error(n, m.Stage, err)
		}
	}
	for _, n := range []uint64{5, 80, 1 << 40, 1<<64 - 10} {
		if m, err := parseMessage(appendField(nil, 2, n)); !errors.Is(err, errStage) && int32(n) != 0 {
			t.Error(n, m.Stage, err)
		}
	}
}
