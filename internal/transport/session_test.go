package transport

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// end is one end of a test's connection.
type end struct {
	*Session
	*Link
	*conn // Otherwise its fields would be ambiguous.
	inbox *Inbox
	stats *Stats
	woken *woken
	batch []Arrival
}

// woken records which of a driver's writers were woken since they had no data.
type woken struct{ datagrams, stream bool }

func newEnd(client bool, cfg SessionConfig) *end {
	e := &end{stats: new(Stats), woken: new(woken)}
	e.inbox = NewInbox(0, e.stats)
	cfg.ID, cfg.Client, cfg.Inbox, cfg.Stats = 7, client, e.inbox, e.stats
	e.Session, e.Link = NewSession(cfg)
	e.conn = e.Session.conn
	e.OnWake(func() { e.woken.datagrams = true }, func() { e.woken.stream = true })
	return e
}

// Methods of both sides, and methods of the link's current session.

func (e *end) Cause() (Closed, bool)    { return e.Session.Cause() }
func (e *end) Closing() <-chan struct{} { return e.Session.Closing() }

func (e *end) appendDatagram(dst []byte, at time.Duration) ([]byte, bool) {
	return e.Link.leg.Load().appendDatagram(dst, at)
}

func (e *end) datagramSent(started, ended time.Duration, err error) {
	e.Link.leg.Load().datagramSent(started, ended, err)
}

func pair(cfg SessionConfig) (server, client *end) { return newEnd(false, cfg), newEnd(true, cfg) }

// arrivals swaps the inbox.
func (e *end) arrivals() []Arrival {
	e.batch = e.inbox.Swap(e.batch)
	return e.batch
}

// kinds are the kinds of the arrivals, in order.
func kinds(as []Arrival) (k []ArrivalKind) {
	for _, a := range as {
		k = append(k, a.Kind)
	}
	return k
}

// carry delivers all data that from has to send, at a time. The driver must have been woken for it.
func carry(t *testing.T, from, to *end, at time.Duration) (datagrams int) {
	t.Helper()
	for {
		b, ok := from.appendDatagram(nil, at)
		if !ok {
			break
		}
		if len(b) > MaxDatagram || !from.woken.datagrams {
			t.Fatalf("a datagram of %d bytes, of which the driver was told: %v", len(b), from.woken.datagrams)
		}
		from.datagramSent(at, at, nil)
		to.ReceiveDatagram(at, b)
		datagrams++
	}
	for b := from.AppendStream(nil, 1000); len(b) > 0; b = from.AppendStream(nil, 1000) {
		if !from.woken.stream {
			t.Fatal("the driver was not told of the stream")
		}
		var closed *Closed
		if errors.As(to.ReceiveStream(at, b), &closed) {
			to.End(*closed)
			break
		}
	}
	*from.woken = woken{}
	return datagrams
}

// An owner cannot call a driver's methods, nor a driver an owner's: Closing and Cause are the only
// common ones.
func TestOwnerAndDriverShareOnlyTheCause(t *testing.T) {
	owner, driver := reflect.TypeFor[*Session](), reflect.TypeFor[*Link]()
	for i := range owner.NumMethod() {
		name := owner.Method(i).Name
		if _, both := driver.MethodByName(name); both != (name == "Cause" || name == "Closing") {
			t.Errorf("%s is a method of both sides: %v", name, both)
		}
	}
}

func TestMessagesArriveInOrderBothWays(t *testing.T) {
	server, client := pair(SessionConfig{})
	for _, ends := range [][2]*end{{server, client}, {client, server}} {
		from, to := ends[0], ends[1]
		var want []Message
		for i := range 50 {
			m := Message{Method: uint32(i), Stage: uint8(i % 8), Call: uint64(i / 2), Reply: i%3 == 0,
				Code: uint32(i % 5), Reliable: i%2 == 0, Payload: bytes.Repeat([]byte{byte(i)}, i*7)}
			if m.Reply {
				m.Text = "why not"
			}
			want = append(want, m)
			if !from.Send(m) {
				t.Fatal("not sent", i)
			}
		}
		from.Flush(0)
		carry(t, from, to, time.Second)
		arrived := to.arrivals()
		for _, reliable := range []bool{true, false} {
			var got, sent []string
			for _, a := range arrived {
				if a.Kind == MessageArrived && a.Message.Reliable == reliable {
					got = append(got, fmt.Sprint(a.Message))
				}
			}
			for _, m := range want {
				if m.Reliable == reliable {
					sent = append(sent, fmt.Sprint(m))
				}
			}
			if strings.Join(got, "\n") != strings.Join(sent, "\n") {
				t.Errorf("reliable=%v: got\n%v\nwant\n%v", reliable, got, sent)
			}
		}
	}
}

func TestSnapshotOccupiesTheSlotUntilItLeft(t *testing.T) {
	server, client := pair(SessionConfig{})
	slot := server.Slot()
	for i := range MaxStatePackets {
		slot.Packets = append(slot.Packets, bytes.Repeat([]byte{byte(i + 1)}, MaxStatePacket))
	}
	server.Flush(0)
	if server.Slot() != nil || server.LinkFacts().SlotFree {
		t.Fatal("the slot is free before anything left")
	}
	for i := range MaxStatePackets {
		b, ok := server.appendDatagram(nil, 0)
		if !ok || len(b) > MaxDatagram {
			t.Fatal("packet", i, ok, len(b))
		}
		client.ReceiveDatagram(0, b)
		if server.Slot() != nil {
			t.Fatal("the slot is free before the link took packet", i)
		}
		server.datagramSent(0, 0, nil)
	}
	if server.Slot() == nil || len(server.Slot().Packets) != 0 {
		t.Fatal("the slot is not free, or not empty")
	}
	server.Flush(0)
	if _, ok := server.appendDatagram(nil, 0); ok {
		t.Fatal("an empty slot sent something")
	}
	for i, a := range client.arrivals() {
		if a.Kind != State || len(a.State) != MaxStatePacket || a.State[0] != byte(i+1) {
			t.Fatal("arrival", i, a.Kind, len(a.State))
		}
	}
}

func TestMessagesAndAcksFillTheSpaceThatStateLeaves(t *testing.T) {
	server, client := pair(SessionConfig{})
	server.Slot().Packets = [][]byte{make([]byte, 100), make([]byte, 100)}
	for range 10 {
		server.Send(Message{Method: 1, Payload: make([]byte, 150)})
	}
	server.Flush(0)
	if n := carry(t, server, client, 0); n != 2 {
		t.Errorf("%d datagrams, want 2: the messages fit beside the state", n)
	}
	client.arrivals()
	client.AckState(5)
	client.AckState(6)
	client.AckState(9)
	client.Send(Message{Method: 1})
	client.Flush(0)
	if n := carry(t, client, server, 0); n != 1 {
		t.Errorf("%d datagrams, want 1", n)
	}
	as := server.arrivals()
	if len(as) != 2 || fmt.Sprint(as[0].Acks) != "[{9 9} {5 6}]" {
		t.Errorf("arrivals %v %v", kinds(as), as)
	}
	client.Flush(0)
	if n := carry(t, client, server, 0); n != 1 {
		t.Errorf("%d datagrams, want 1: every flush of a client repeats its acknowledgements", n)
	}
	if as := server.arrivals(); len(as) != 1 || as[0].Kind != Acks {
		t.Errorf("arrivals %v", kinds(as))
	}
}

// TestDelayedAcksShareALaterDatagram: after AckLater a flush sends no datagram for
// acknowledgements alone, and the next flush repeats them.
func TestDelayedAcksShareALaterDatagram(t *testing.T) {
	for name, c := range map[string]struct {
		say       func(client *end)
		datagrams int
	}{
		"nothing":        {func(*end) {}, 0},
		"a message":      {func(client *end) { client.Send(Message{Method: 1}) }, 1},
		"inputs":         {func(client *end) { client.Inputs([]byte{1, 2, 3}) }, 1},
		"a time request": {func(client *end) { client.RequestTime() }, 1},
		"another flush":  {func(client *end) { client.Flush(0) }, 1},
	} {
		server, client := pair(SessionConfig{})
		client.AckState(5)
		c.say(client)
		client.AckLater()
		client.Flush(0)
		if n := carry(t, client, server, 0); n != c.datagrams {
			t.Errorf("%s: %d datagrams, want %d", name, n, c.datagrams)
		}
		acks := func() (n int) {
			for _, a := range server.arrivals() {
				if a.Kind == Acks {
					n++
				}
			}
			return n
		}
		if n := acks(); n != c.datagrams {
			t.Errorf("%s: acknowledgements came %d times, want %d", name, n, c.datagrams)
		}
		client.Flush(0)
		if n := carry(t, client, server, 0); n != 1 || acks() != 1 {
			t.Errorf("%s: the next flush has %d datagrams", name, n)
		}
	}
}

func TestTimeIsAnsweredWithoutTheOwner(t *testing.T) {
	server, client := pair(SessionConfig{})
	client.RequestTime()
	b, ok := client.appendDatagram(nil, 100)
	if !ok {
		t.Fatal("no request")
	}
	server.ReceiveDatagram(1000, b)
	b, ok = server.appendDatagram(nil, 1010)
	if !ok {
		t.Fatal("no reply")
	}
	client.ReceiveDatagram(150, b)
	as := client.arrivals()
	if len(as) != 1 || as[0].Kind != TimeSample || as[0].T != [4]time.Duration{100, 1000, 1010, 150} {
		t.Fatalf("arrivals %+v", as)
	}
}

// TestTimeGoesByTheArrival, also if a datagram has waited to be read; its inputs have the time of
// reading.
func TestTimeGoesByTheArrival(t *testing.T) {
	server, client := pair(SessionConfig{})
	client.RequestTime()
	client.Inputs([]byte("inputs"))
	client.Flush(0)
	b, _ := client.appendDatagram(nil, 100)
	server.ReceiveWaited(1000, 30, b)
	if as := server.arrivals(); len(as) == 0 || as[0].Kind != Inputs || as[0].At != 1000 {
		t.Errorf("the inputs came as %+v", as)
	}
	b, _ = server.appendDatagram(nil, 1010)
	client.ReceiveWaited(150, 20, b)
	if as := client.arrivals(); len(as) == 0 || as[0].Kind != TimeSample || as[0].T != [4]time.Duration{100, 970, 1010, 130} {
		t.Errorf("the sample is %+v", as)
	}
}

func TestEpochAndRequestsTravel(t *testing.T) {
	server, client := pair(SessionConfig{})
	server.PublishEpoch(Epoch{1, 2})
	server.PublishEpoch(Epoch{3, 4})
	server.Flush(0)
	carry(t, server, client, 0)
	if as := client.arrivals(); len(as) != 1 || as[0].Epoch != (Epoch{3, 4}) {
		t.Fatalf("arrivals %+v", as)
	}
	client.RequestDigest(60)
	client.RequestFullState()
	client.Flush(0)
	carry(t, client, server, 0)
	as := server.arrivals()
	if !slices.Equal(kinds(as), []ArrivalKind{DigestRequest, FullStateRequest}) || as[0].Value != 60 {
		t.Fatalf("arrivals %+v", as)
	}
}

func TestTimeScaleTravels(t *testing.T) {
	server, client := pair(SessionConfig{})
	want := TimeScale{Num: 2, Den: 3, Tick: 4, At: 5, Fraction: 6}
	server.PublishTimeScale(TimeScale{Num: 1, Den: 1})
	server.PublishTimeScale(want)
	server.Flush(0)
	server.Flush(0)
	carry(t, server, client, 0)
	if as := client.arrivals(); len(as) != 1 || as[0].Kind != TimeScaleChanged || as[0].TimeScale != want {
		t.Fatalf("arrivals %+v", as)
	}
	for name, body := range map[string][]byte{
		"a time beyond the end":     append([]byte{32}, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1),
		"a number that breaks off":  {8, 0xff},
		"a field of number 0":       {0, 1},
		"a length beyond the frame": {10, 9},
	} {
		if _, err := parseTimeScale(body); err == nil {
			t.Errorf("%s is accepted", name)
		}
		frame := append(appendFrameHead(nil, frameTimeScale, len(body)), body...)
		_, client := pair(SessionConfig{})
		if err := client.ReceiveStream(0, frame); err == nil {
			t.Errorf("%s: the client goes on", name)
		}
	}
	// Another wire type, or an unknown number: skipped.
	if got, err := parseTimeScale([]byte{10, 1, 7, 48, 9, 16, 3}); err != nil || got != (TimeScale{Den: 3}) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestOverloadTravels(t *testing.T) {
	server, client := pair(SessionConfig{})
	server.PublishOverload(Overload{2, 4})
	server.PublishOverload(Overload{3, 2})
	server.Flush(0)
	server.Flush(0)
	carry(t, server, client, 0)
	if as := client.arrivals(); len(as) != 1 || as[0].Kind != OverloadChanged || as[0].Overload != (Overload{3, 2}) {
		t.Fatalf("arrivals %+v", as)
	}
	for name, c := range map[string]struct {
		body []byte
		want Overload
	}{
		"nothing":       {nil, Overload{}},
		"unset":         {[]byte{8, 0, 16, 3}, Overload{0, 3}},
		"normal":        {[]byte{8, 1, 16, 3}, Overload{0, 3}},
		"from tomorrow": {[]byte{8, 0xff, 0xff, 3, 24, 9}, Overload{255, 0}},
	} {
		if got, err := parseOverload(c.body); err != nil || got != c.want {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if _, err := parseOverload([]byte{8}); err == nil {
		t.Error("a cut field was read")
	}
}

// A too large packet is counted and not sent; the other packets are sent.
func TestAPacketThatIsTooLargeIsLeftOut(t *testing.T) {
	server, client := pair(SessionConfig{})
	server.Slot().Packets = [][]byte{{1}, make([]byte, MaxStatePacket+1), {2}}
	server.Flush(0)
	carry(t, server, client, 0)
	as := client.arrivals()
	if !slices.Equal(kinds(as), []ArrivalKind{State, State}) || as[0].State[0] != 1 || as[1].State[0] != 2 || server.stats.Dropped(DropOversize) != 1 {
		t.Errorf("%v arrived, %d counted", kinds(as), server.stats.Dropped(DropOversize))
	}
	if !server.LinkFacts().SlotFree {
		t.Error("the slot is still taken")
	}
}

func TestFlushLagIsTakenOnce(t *testing.T) {
	server, _ := pair(SessionConfig{})
	if lag, ok := server.TakeFlushLag(); ok {
		t.Errorf("%v before any flush", lag)
	}
	slot := server.Slot()
	slot.Packets = append(slot.Packets, []byte("a packet"))
	server.Flush(5 * time.Millisecond)
	if _, ok := server.appendDatagram(nil, 0); !ok {
		t.Fatal("nothing to send")
	}
	server.datagramSent(6*time.Millisecond, 6500*time.Microsecond, nil)
	if lag, ok := server.TakeFlushLag(); !ok || lag != 1500*time.Microsecond {
		t.Errorf("%v, %v", lag, ok)
	}
	if lag, ok := server.TakeFlushLag(); ok {
		t.Errorf("%v a second time", lag)
	}
	server.Send(Message{Method: 1})
	server.Flush(7 * time.Millisecond)
	if _, ok := server.appendDatagram(nil, 0); !ok {
		t.Fatal("nothing to send")
	}
	server.datagramSent(7*time.Millisecond, 7*time.Millisecond, nil)
	if lag, ok := server.TakeFlushLag(); !ok || lag != 1 { // 0 would mean that no flush was sent.
		t.Errorf("of a datagram that leaves at once %v, %v", lag, ok)
	}
}

func TestDuplicatesAndStaleDatagramsAreDiscarded(t *testing.T) {
	server, client := pair(SessionConfig{})
	var sent [][]byte
	for range DuplicateWindow + 10 {
		client.Flush(0)
		b, _ := client.appendDatagram(nil, 0)
		sent = append(sent, b)
	}
	server.ReceiveDatagram(0, sent[5])
	server.ReceiveDatagram(0, sent[5])
	server.ReceiveDatagram(0, sent[4])
	server.ReceiveDatagram(0, sent[len(sent)-1])
	server.ReceiveDatagram(0, sent[3])
	server.ReceiveDatagram(0, sent[100])
	if d, s := server.stats.Dropped(DropDuplicate), server.stats.Dropped(DropStale); d != 1 || s != 1 {
		t.Errorf("%d duplicates, %d stale, want 1 and 1", d, s)
	}
}

func TestMalformedMessageHarmsNoNeighbour(t *testing.T) {
	server, _ := pair(SessionConfig{Decode: func(m *Message) (any, any, error) {
		switch m.Method {
		case 3:
			return nil, nil, errors.New("no")
		case 4:
			panic("a bug in a decoder")
		}
		return nil, m.Method, nil
	}})
	b := appendNumber(nil, 1)
	add := func(raw []byte) { b = append(appendHead(b, fieldMessages, len(raw)), raw...) }
	add(appendMessage(nil, &Message{Method: 1}))
	add([]byte{0xff, 0xff, 0xff})                                      // malformed
	add([]byte{2 << 3, 55})                                            // unknown stage
	add([]byte{6<<3 | 2, 1, 0xff})                                     // not UTF-8
	add(appendMessage(nil, &Message{Method: 3}))                       // Decode refuses it
	add(appendMessage(nil, &Message{Method: 4}))                       // Decode panics
	add(append([]byte{15 << 3, 1}, 8, 2))                              // unknown field first
	add(appendMessage(nil, &Message{Method: 5, Payload: []byte("x")})) // the last one
	server.ReceiveDatagram(0, b)
	var got []any
	discarded := uint64(0)
	for _, a := range server.arrivals() {
		if discarded += a.Value; a.Kind == MessageArrived {
			got = append(got, a.Decoded)
		}
	}
	if fmt.Sprint(got) != "[1 2 5]" || discarded != 5 {
		t.Errorf("methods %v arrived, and %d messages count as meaningless", got, discarded)
	}
	for d, want := range map[Drop]uint64{DropMessage: 2, DropStage: 1, DropDecode: 2} {
		if n := server.stats.Dropped(d); n != want {
			t.Errorf("%v: %d, want %d", dropNames[d], n, want)
		}
	}
}

func TestRecordsTravelInOrderAndTheLastIsAcknowledged(t *testing.T) {
	server, client := pair(SessionConfig{})
	small, largest := []byte{1}, bytes.Repeat([]byte{2}, MaxStateRecord)
	server.SendRecord(small)
	server.SendRecord(largest)
	server.SendRecord(make([]byte, MaxStateRecord+1))
	small[0] = 9 // it was copied
	server.Flush(0)
	carry(t, server, client, 0)
	as := client.arrivals()
	if !slices.Equal(kinds(as), []ArrivalKind{Record, Record}) || as[0].State[0] != 1 || !bytes.Equal(as[1].State, largest) {
		t.Fatalf("arrivals %v", kinds(as))
	}
	if n := server.stats.Dropped(DropOversize); n != 1 {
		t.Errorf("%d dropped as too large", n)
	}
	client.AckRecord(1)
	client.AckRecord(2)
	client.Flush(0)
	client.Flush(0)
	carry(t, client, server, 0)
	if as := server.arrivals(); !slices.Equal(kinds(as), []ArrivalKind{RecordsApplied}) || as[0].Value != 2 {
		t.Errorf("acknowledged: %+v", as)
	}
}

// A stream that is behind accepts no large state: it would wait behind all other data, and could
// overflow the queue.
func TestLinkSaysWhetherTheStreamIsFree(t *testing.T) {
	server, _ := pair(SessionConfig{})
	m := Message{Method: 1, Reliable: true, Payload: make([]byte, 1<<13)}
	for range maxReliableBytes / 2 >> 13 {
		server.Send(m)
	}
	if !server.LinkFacts().StreamFree {
		t.Error("what is not flushed counts already")
	}
	server.Flush(0)
	if server.LinkFacts().StreamFree {
		t.Error("free with half of its bound waiting")
	}
	half := server.box.reliable.size() - maxReliableBytes/2
	server.AppendStream(nil, half-1)
	if server.LinkFacts().StreamFree {
		t.Error("free with a byte more than half of its bound")
	}
	server.AppendStream(nil, 1)
	if !server.LinkFacts().StreamFree {
		t.Error("not free with half of its bound")
	}
}

// A client without arrivals pads its datagrams so that a restarted server can answer, and no more;
// a server that has not restarted ignores the padding.
func TestAClientThatHearsNothingPads(t *testing.T) {
	server, client := pair(SessionConfig{})
	size := func(at time.Duration) int {
		client.Flush(at)
		b, ok := client.appendDatagram(nil, at)
		if !ok {
			t.Fatal("nothing is due")
		}
		server.ReceiveDatagram(at, b)
		return len(b)
	}
	if n := size(padAfter - 1); n >= padTo {
		t.Errorf("%d bytes from a client that hears its server", n)
	}
	if n := size(padAfter); n < padTo || n > padTo+2 {
		t.Errorf("%d bytes from a client that hears nothing", n)
	}
	server.Flush(2 * padAfter)
	carry(t, server, client, 2*padAfter)
	client.ReceiveDatagram(2*padAfter, appendNumber(nil, 1))
	if n := size(3*padAfter - 1); n >= padTo {
		t.Errorf("%d bytes after a sign of life", n)
	}
	if n := size(4 * padAfter); n < padTo {
		t.Errorf("%d bytes after another silence", n)
	}
	if n := server.stats.Dropped(DropDatagram); n != 0 {
		t.Errorf("the server has dropped %d of them", n)
	}
	large := make([]byte, padTo)
	if got := appendPadding(large, 0, padTo); len(got) != padTo {
		t.Errorf("a datagram of %d bytes became one of %d", padTo, len(got))
	}
}

// A flush on an ending connection closes the owner's side: later sends are refused and counted, and
// no data of them is queued.
func TestAFlushAfterTheEndTakesNoMore(t *testing.T) {
	server, client := pair(SessionConfig{})
	if !server.Send(Message{Method: 1, Reliable: true}) || !server.shutdown(CodeInternal, "") || !client.shutdown(CodeInternal, "") {
		t.Fatal("it has ended before")
	}
	*server.woken, *client.woken = woken{}, woken{}
	for range 2 {
		server.Flush(0)
		client.Flush(0)
	}
	if *server.woken != (woken{}) || *client.woken != (woken{}) {
		t.Errorf("the writers of an ended session are woken: %+v, %+v", *server.woken, *client.woken)
	}
	if server.Send(Message{Method: 1, Reliable: true}) || server.stats.Dropped(DropClosed) != 1 {
		t.Error("it takes a message that can never leave")
	}
}
