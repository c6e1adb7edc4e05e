package transport

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// A malformed body of any accepted kind of frame closes the session, and so does any kind for the
// other side; unknown kinds are skipped.
func TestFramesBreakTheStreamWhenTheyMakeNoSense(t *testing.T) {
	takes := map[bool][]protowire.Number{
		true:  {frameEpoch, frameOverload, frameTimeScale, frameClose, frameAccepted, frameReceived, frameClosing},
		false: {frameDigest, frameStateApplied, frameClose, frameReceived},
	}
	for _, client := range []bool{true, false} {
		for kind := frameHello; kind <= frameUnknown+1; kind++ {
			for name, body := range map[string][]byte{"empty": {}, "malformed": {8}} {
				e := newEnd(client, SessionConfig{})
				frame := append(appendFrameHead(nil, kind, len(body)), body...)
				err := e.ReceiveStream(0, frame)
				var broken *Closed
				got := errors.As(err, &broken) && !broken.Remote
				mine := kind == frameMessage || kind == frameState && client || slices.Contains(takes[client], kind) || kind >= frameUnknown
				// Their bodies cannot break it.
				free := kind == frameMessage || kind == frameState || kind >= frameUnknown
				ticket := kind == frameMove || kind == frameMoved // It may not be empty.
				want := !mine || name == "malformed" && !free || ticket
				if got != want {
					t.Errorf("kind %d, %s, to a client: %v: %v", kind, name, client, err)
				}
				c, closing := e.Cause()
				if n := e.stats.Dropped(DropStream); closing != want || want && (c.Code != CodeProtocol || n != 1) || !want && n != 0 {
					t.Errorf("kind %d, %s, to a client: %v: closing %v with %v, counted %d", kind, name, client, closing, c.Code, n)
				}
			}
		}
	}
}

// Known numbers with another wire type, and unknown numbers, are skipped in all positions; the
// other values are read.
func TestFieldsFromTomorrowAreSkippedEverywhere(t *testing.T) {
	with := func(good []byte) []byte {
		b := []byte{}
		for num := protowire.Number(1); num < 9; num++ { // No body has a field of this type.
			b = protowire.AppendFixed32(protowire.AppendTag(b, num, protowire.Fixed32Type), 7)
		}
		b = append(b, good...)
		for num := protowire.Number(9); num < 20; num++ {
			b = appendField(b, num, 7)
			b = append(appendHead(b, num, 1), 'x')
		}
		return b
	}
	numbers := appendField(appendField(appendField(nil, 1, 3), 2, 10), 3, 5)
	if got, err := parseTimes(append(with(numbers), appendField(nil, 4, 9)...)); err != nil || got != [3]time.Duration{3, 10, 5} {
		t.Error("times", got, err)
	}
	if got, err := parseEpoch(with(numbers)); err != nil || got != (Epoch{3, 10}) {
		t.Error("epoch", got, err)
	}
	if n, full, err := parseDigest(with(numbers)); err != nil || n != 3 || !full {
		t.Error("digest", n, full, err)
	}
	if got, err := parseCount(with(numbers)); err != nil || got != 3 {
		t.Error("count", got, err)
	}
	if got, err := parseClose(with(append(appendField(nil, 1, 3), 2<<3|2, 1, 'b'))); err != nil || got != (Closed{3, "b", true}) {
		t.Error("close", got, err)
	}
	if got, err := parseOverload(with(numbers)); err != nil || got != (Overload{2, 10}) {
		t.Error("overload", got, err)
	}
	if got, err := parseMessage(with(append(numbers, 6<<3|2, 1, 'b', 7<<3|2, 1, 'p', 8<<3, 9))); err != nil || got.Method != 3 ||
		got.Stage != 1 || got.Call != 5 || got.Text != "b" || string(got.Payload) != "p" || got.Tick != 9 {
		t.Errorf("message %+v, %v", got, err)
	}
	acks := append(appendField(nil, 1, 9), 2<<3|2, 1, 4)
	if got, err := parseAcks(with(acks)[5:10], nil); err == nil {
		t.Error("runs of another type:", got)
	}
	if got, err := parseAcks(append(acks, appendField(nil, 3, 1)...), nil); err != nil || !slices.Equal(got, []Range{{6, 9}}) {
		t.Error("acks", got, err)
	}
	if _, err := parseAcks(append(acks, 2<<3|2, 1, 4), nil); err == nil {
		t.Error("runs in two pieces")
	}
}

// Values are read up to their bounds, and not beyond.
func TestValuesReachTheirEnds(t *testing.T) {
	last, beyond := appendField(nil, 2, math.MaxInt64), appendField(nil, 2, math.MaxInt64+1)
	if e, err := parseEpoch(last); err != nil || e.At != math.MaxInt64 {
		t.Error(e, err)
	}
	if _, err := parseEpoch(beyond); !errors.Is(err, errTime) {
		t.Error(err)
	}
	if o, err := parseOverload(appendField(nil, 2, math.MaxUint32+7)); err != nil || o.SendEvery != math.MaxUint32 {
		t.Error(o, err)
	}
	for n, fits := range map[int]bool{MaxText: true, MaxText + 1: false} {
		c := Closed{Text: strings.Repeat("x", n)}
		_, body, err := parseFrame(appendCloseFrame(nil, c)[2:]) // After the length.
		if err != nil {
			t.Fatal(err)
		}
		if got, err := parseClose(body); (err == nil) != fits || fits && got.Text != c.Text {
			t.Errorf("a text of %d bytes: %v", n, err)
		}
	}
	for num, fits := range map[protowire.Number]bool{protowire.MaxValidNumber: true, protowire.MaxValidNumber + 1: false} {
		field := append(protowire.AppendVarint(nil, uint64(num)<<3), 1)
		if _, err := parseCount(field); (err == nil) != fits {
			t.Errorf("a field of number %d: %v", num, err)
		}
	}
	if got, err := parseAcks(append(appendField(nil, 1, AckWindow-1), 2<<3|2, 2, 0x80, 8), nil); err != nil || !slices.Equal(got, []Range{{0, AckWindow - 1}}) {
		t.Error("a whole window:", got, err)
	}
}

// The first malformed field ends the reading, even if valid fields follow.
func TestTheFirstMalformedFieldDecides(t *testing.T) {
	if m, err := parseMessage(appendField(appendField(nil, 2, 5), 2, 10)); !errors.Is(err, errStage) {
		t.Errorf("a wrong stage before a right one: %+v, %v", m, err)
	}
	times := appendField(nil, 1, math.MaxUint64)
	b := append(appendHead(appendNumber(nil, 1), fieldTimeRequest, len(times)), times...)
	if _, err := parseDatagram(appendTimeReply(b, 1, 2, 3)); !errors.Is(err, errTime) {
		t.Error("a wrong request before a right reply:", err)
	}
}

// A message that fits its transport to the byte is sent and arrives; with one byte more it is
// refused.
func TestMessagesFitToTheByte(t *testing.T) {
	for _, reliable := range []bool{true, false} {
		limit := maxDatagramMessage
		if reliable {
			limit = maxFrameMessage
		}
		server, client := pair(SessionConfig{})
		m := Message{Method: 1, Reliable: reliable, Payload: make([]byte, limit)}
		for sizeMessage(&m) > limit {
			m.Payload = m.Payload[1:]
		}
		if size := sizeMessage(&m); size != limit || !server.Send(m) {
			t.Errorf("%d bytes of %d are refused", size, limit)
		}
		server.Flush(0)
		carry(t, server, client, 0)
		if as := client.arrivals(); len(as) != 1 || len(as[0].Message.Payload) != len(m.Payload) {
			t.Errorf("reliable: %v: arrivals %v", reliable, kinds(as))
		}
		m.Payload = make([]byte, len(m.Payload)+1)
		if server.Send(m) || server.stats.Dropped(DropOversize) != 1 {
			t.Errorf("reliable: %v: one byte more is taken", reliable)
		}
	}
}

// Both ends count the same frames.
func TestFramesAreCountedAtBothEnds(t *testing.T) {
	server, client := pair(SessionConfig{})
	server.PublishEpoch(Epoch{1, 2})
	server.PublishOverload(Overload{1, 2})
	server.PublishTimeScale(TimeScale{Num: 1, Den: 1})
	server.SendRecord([]byte{1})
	server.Send(Message{Method: 1, Reliable: true})
	server.Flush(0)
	carry(t, server, client, 0)
	client.AckRecord(1)
	client.RequestDigest(1)
	client.RequestFullState()
	client.Close(CodeLeft, "")
	carry(t, client, server, 0)
	for name, ends := range map[string][2]*end{"server": {server, client}, "client": {client, server}} {
		out, in := ends[0].stats, ends[1].stats
		want := map[string]uint64{"server": 5, "client": 4}[name]
		if n, m := out.FramesOut.Load(), in.FramesIn.Load(); n != want || m != want {
			t.Errorf("the %s sent %d frames, of which %d arrived, want %d", name, n, m, want)
		}
		if n, m := out.StreamBytesOut.Load(), in.StreamBytesIn.Load(); n == 0 || n != m {
			t.Errorf("the %s sent %d bytes, of which %d arrived", name, n, m)
		}
	}
}

// After the close each send is refused and counted.
func TestNothingIsTakenAfterTheClose(t *testing.T) {
	server, client := pair(SessionConfig{})
	for _, e := range []*end{server, client} {
		e.Close(CodeLeft, "")
		if e.Slot() != nil {
			t.Error("the slot is free")
		}
		e.SendRecord([]byte{1})
		e.RequestDigest(1)
		e.RequestFullState()
		e.Send(Message{Method: 1})
		if n := e.stats.Dropped(DropClosed); n != 4 {
			t.Error(n, "counted")
		}
		e.RequestTime()
		e.Flush(0)
		if b, ok := e.appendDatagram(nil, 0); ok {
			t.Errorf("% x leaves after the close", b)
		}
	}
	server, client = pair(SessionConfig{})
	client.End(Closed{Code: CodeLost})
	for name, e := range map[string]*end{"a server": server, "who has gone": client} {
		woken := false
		e.OnWake(func() { woken = true }, func() {})
		e.RequestTime()
		if _, ok := e.appendDatagram(nil, 0); ok || woken {
			t.Errorf("%s asks for the time: %v, and wakes the link for it: %v", name, ok, woken)
		}
	}
}

// Disconnects are counted by code; the game's codes and unknown ones share one counter.
func TestEndsAreCountedByCode(t *testing.T) {
	var s Stats
	for _, c := range []Code{0, CodeLost, Code(numCodes - 2), Code(numCodes - 1), Code(numCodes), Code(numCodes + 1), CodeGame, CodeGame + 3, math.MaxUint32} {
		s.Disconnect(c)
	}
	got := map[string]uint64{}
	s.Disconnects(func(code string, n uint64) { got[code] = n })
	if len(got) != numCodes || got[codeTexts[0]] != 1 || got[codeTexts[CodeLost]] != 1 || got[codeTexts[numCodes-2]] != 1 || got["game"] != 6 {
		t.Errorf("counted %v", got)
	}
}

// A text is cut between characters, and made valid UTF-8 before.
func TestTextsAreCutAtACharacter(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{strings.Repeat("x", MaxText), strings.Repeat("x", MaxText)},
		{strings.Repeat("x", MaxText+1), strings.Repeat("x", MaxText)},
		{strings.Repeat("x", MaxText-1) + "é", strings.Repeat("x", MaxText-1)},
		{strings.Repeat("x", MaxText-2) + "é", strings.Repeat("x", MaxText-2) + "é"},
		{strings.Repeat("x", MaxText-3) + "𝄞", strings.Repeat("x", MaxText-3)},
		{"a\x80\x80b", "a?b"},
	} {
		if got := clip(c.text); got != c.want {
			t.Errorf("%d bytes become %d: …%q", len(c.text), len(got), got[max(0, len(got)-4):])
		}
	}
}

// Hellos, frames and tables fit to the byte.
func TestHandshakesFitToTheByte(t *testing.T) {
	for n, fits := range map[int]bool{maxHandshakeText: true, maxHandshakeText + 1: false} {
		s := strings.Repeat("x", n)
		for name, h := range map[string]*netloopv1.Hello{
			"room": {Room: s}, "schema": {Schema: s}, "build": {Build: s},
		} {
			h.Protocol = ProtocolVersion
			_, err := DecodeHello(marshal(t, &netloopv1.Frame{Kind: &netloopv1.Frame_Hello{Hello: h}}))
			if (err == nil) != fits {
				t.Errorf("a %s of %d bytes: %v", name, n, err)
			}
		}
	}
	h := &netloopv1.Hello{Protocol: ProtocolVersion, Params: make([]byte, MaxHandshake)}
	f := &netloopv1.Frame{Kind: &netloopv1.Frame_Hello{Hello: h}}
	for proto.Size(f) > MaxHandshake {
		h.Params = h.Params[1:]
	}
	largest := frameOf(t, f)
	frame, rest, err := CutFrame(append(largest, 5), MaxHandshake)
	if err != nil || len(frame) != MaxHandshake || len(rest) != 1 {
		t.Fatal(len(frame), len(rest), err)
	}
	if _, err := DecodeHello(frame); err != nil {
		t.Error("the largest hello:", err)
	}
	for limit, fits := range map[int]bool{MaxHandshake: true, MaxHandshake - 1: false} {
		if got, err := ReadFrame(bytes.NewReader(largest), limit); (err == nil) != fits || fits && len(got) != limit || !fits && !errors.Is(err, ErrFrameTooLarge) {
			t.Errorf("%d bytes are read of a frame of at most %d: %v", len(got), limit, err)
		}
	}
	if _, _, err := CutFrame(largest, MaxHandshake-1); !errors.Is(err, ErrFrameTooLarge) {
		t.Error("a byte more than the limit:", err)
	}
	if _, err := DecodeHello(append(frame, 0x98, 6, 0)); err == nil { // An unknown field.
		t.Error("a hello beyond the limit is decoded")
	}
	h.Params = append(h.Params, 0)
	if _, err := AppendFrame(nil, f); !errors.Is(err, ErrFrameTooLarge) {
		t.Error("a frame beyond the limit:", err)
	}
}

// A welcome with a rate of zero, in any of its numbers, is refused.
func TestRatesOfZeroAreNoWelcome(t *testing.T) {
	for i := range 5 {
		n := []uint64{1, 1, 1, 1, 1}
		n[i] = 0
		w := &netloopv1.Welcome{TickRate: &netloopv1.Rate{Num: n[0], Den: n[1]}, FixedRate: &netloopv1.Rate{Num: n[2], Den: n[3]}}
		if _, _, err := new(Greeting).Take(mustWelcome(t, w)[1:]); (err == nil) != (i == 4) {
			t.Errorf("%v: %v", w, err)
		}
	}
}

// The largest tables are taken by the client, part for part.
func TestTheLargestTablesAreTaken(t *testing.T) {
	tables := &netloopv1.SchemaTables{Classes: []*netloopv1.ClassTable{{Name: strings.Repeat("n", MaxTables-8)}}}
	if n := proto.Size(tables); n != MaxTables {
		t.Fatal(n)
	}
	sent, err := AppendTables(nil, tables)
	if err != nil {
		t.Fatal(err)
	}
	adapted := 0
	g := Greeting{Adapt: func(got *netloopv1.SchemaTables) error {
		if adapted++; !proto.Equal(got, tables) {
			t.Error("the tables have changed on the way")
		}
		return nil
	}}
	for i, f := range cutFrames(t, sent) {
		if g.Reads() != (i > 0) {
			t.Errorf("before part %d the client reads: %v", i, g.Reads())
		}
		if _, _, err := g.Take(f); err != nil {
			t.Fatal(i, err)
		}
	}
	if adapted != 1 || g.Reads() {
		t.Errorf("adapted %d times; reads on: %v", adapted, g.Reads())
	}
	if bye := g.Goodbye(&Closed{Code: CodeKicked, Remote: true}); bye != (Closed{Code: CodeLeft}) {
		t.Error("who was closed by the server says", bye)
	}
}
