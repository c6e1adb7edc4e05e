package transport

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// end is one end of a test's connection.
type end struct {
	*Session
	inbox *Inbox
	stats *Stats
	batch []Arrival
}

func newEnd(client bool, cfg SessionConfig) *end {
	e := &end{stats: new(Stats)}
	e.inbox = NewInbox(0, e.stats)
	cfg.ID, cfg.Client, cfg.Inbox, cfg.Stats = 7, client, e.inbox, e.stats
	e.Session = NewSession(cfg)
	return e
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

// carry delivers everything that from has to send, at a time.
func carry(t *testing.T, from, to *end, at time.Duration) (datagrams int) {
	t.Helper()
	for {
		b, ok := from.AppendDatagram(nil, at)
		if !ok {
			break
		}
		if len(b) > MaxDatagram {
			t.Fatalf("a datagram of %d bytes", len(b))
		}
		from.DatagramSent(at, at, true)
		to.ReceiveDatagram(at, b)
		datagrams++
	}
	for b := from.AppendStream(nil, 1000); len(b) > 0; b = from.AppendStream(nil, 1000) {
		if err := to.ReceiveStream(at, b); err != nil {
			to.End(*err.(*Closed))
			break
		}
	}
	return datagrams
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
		for _, reliable := range []bool{true, false} {
			var got, sent []string
			for _, a := range to.inbox.arrivals {
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
		to.arrivals()
	}
}

func TestSnapshotOccupiesTheSlotUntilItLeft(t *testing.T) {
	server, client := pair(SessionConfig{})
	slot := server.Slot()
	for i := range MaxStatePackets {
		slot.Packets = append(slot.Packets, bytes.Repeat([]byte{byte(i + 1)}, MaxStatePacket))
	}
	server.Flush(0)
	if server.Slot() != nil || server.Link().SlotFree {
		t.Fatal("the slot is free before anything left")
	}
	for i := range MaxStatePackets {
		b, ok := server.AppendDatagram(nil, 0)
		if !ok || len(b) > MaxDatagram {
			t.Fatal("packet", i, ok, len(b))
		}
		client.ReceiveDatagram(0, b)
		if server.Slot() != nil {
			t.Fatal("the slot is free before the link took packet", i)
		}
		server.DatagramSent(0, 0, true)
	}
	if server.Slot() == nil || len(server.Slot().Packets) != 0 {
		t.Fatal("the slot is not free, or not empty")
	}
	server.Flush(0)
	if _, ok := server.AppendDatagram(nil, 0); ok {
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

func TestTimeIsAnsweredWithoutTheOwner(t *testing.T) {
	server, client := pair(SessionConfig{})
	client.RequestTime()
	b, ok := client.AppendDatagram(nil, 100)
	if !ok {
		t.Fatal("no request")
	}
	server.ReceiveDatagram(1000, b)
	b, ok = server.AppendDatagram(nil, 1010)
	if !ok {
		t.Fatal("no reply")
	}
	client.ReceiveDatagram(150, b)
	as := client.arrivals()
	if len(as) != 1 || as[0].Kind != TimeSample || as[0].T != [4]time.Duration{100, 1000, 1010, 150} {
		t.Fatalf("arrivals %+v", as)
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
	if fmt.Sprint(kinds(as)) != fmt.Sprint([]ArrivalKind{DigestRequest, FullStateRequest}) || as[0].Value != 60 {
		t.Fatalf("arrivals %+v", as)
	}
}

func TestDuplicatesAndStaleDatagramsAreDiscarded(t *testing.T) {
	server, client := pair(SessionConfig{})
	var sent [][]byte
	for range DuplicateWindow + 10 {
		client.Flush(0)
		b, _ := client.AppendDatagram(nil, 0)
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
	server, _ := pair(SessionConfig{Decode: func(m *Message) (any, error) {
		switch m.Method {
		case 3:
			return nil, errors.New("no")
		case 4:
			panic("a bug in a decoder")
		}
		return m.Method, nil
	}})
	b := appendNumber(nil, 1)
	add := func(raw []byte) { b = append(appendHead(b, fieldMessages, len(raw)), raw...) }
	add(appendMessage(nil, &Message{Method: 1}))
	add([]byte{0xff, 0xff, 0xff})                                      // malformed
	add([]byte{2 << 3, 55})                                            // unknown stage
	add([]byte{6<<3 | 2, 1, 0xff})                                     // not UTF-8
	add(appendMessage(nil, &Message{Method: 3}))                       // Decode refuses it
	add(appendMessage(nil, &Message{Method: 4}))                       // Decode panics
	add(append([]byte{15<<3 | 0, 1}, 8, 2))                            // unknown field first
	add(appendMessage(nil, &Message{Method: 5, Payload: []byte("x")})) // the last one
	server.ReceiveDatagram(0, b)
	var got []any
	for _, a := range server.arrivals() {
		got = append(got, a.Decoded)
	}
	if fmt.Sprint(got) != "[1 2 5]" {
		t.Errorf("methods %v arrived", got)
	}
	for d, want := range map[Drop]uint64{DropMessage: 2, DropStage: 1, DropDecode: 2} {
		if n := server.stats.Dropped(d); n != want {
			t.Errorf("%v: %d, want %d", dropNames[d], n, want)
		}
	}
}

func TestCloseReachesThePeerAfterWhatWasSent(t *testing.T) {
	server, client := pair(SessionConfig{})
	server.Send(Message{Method: 1, Reliable: true})
	server.Close(CodeKicked, "cheated")
	if server.Send(Message{Method: 2, Reliable: true}) {
		t.Error("sent after the close")
	}
	if _, ok := server.CloseRequested(); ok {
		t.Error("the link may close before the close frame left")
	}
	carry(t, server, client, 0)
	as := client.arrivals()
	if len(as) != 2 || as[0].Message.Method != 1 || *as[1].Closed != (Closed{CodeKicked, "cheated", true}) {
		t.Fatalf("arrivals %+v", as)
	}
	if c, ok := server.CloseRequested(); !ok || c != (Closed{CodeKicked, "cheated", false}) {
		t.Error("close requested:", c, ok)
	}
	server.End(Closed{Code: CodeLost})
	server.End(Closed{Code: CodeLost})
	as = server.arrivals()
	if len(as) != 1 || as[0].Kind != Gone || as[0].Closed.Code != CodeKicked {
		t.Fatalf("arrivals %+v", as)
	}
}

func TestPeerThatDoesNotReadIsClosedAndNobodyWaits(t *testing.T) {
	server, _ := pair(SessionConfig{})
	for i := 0; ; i++ {
		if !server.Send(Message{Method: 1, Reliable: true, Payload: make([]byte, MaxPayload)}) {
			break
		}
		server.Flush(0)
		if i > 1000 {
			t.Fatal("unbounded")
		}
	}
	c, ok := server.CloseRequested()
	if !ok || c.Code != CodeSlow {
		t.Fatal("close requested:", c, ok)
	}
	if n := server.stats.Dropped(DropReliable); n != 1 {
		t.Error("counted", n)
	}
}

func TestUnreliableQueueDropsTheOldest(t *testing.T) {
	server, client := pair(SessionConfig{})
	const n = maxUnreliable + 100
	for i := range n {
		server.Send(Message{Method: uint32(i)})
		if i%10 == 0 {
			server.Flush(0)
		}
	}
	server.Flush(0)
	carry(t, server, client, 0)
	as := client.arrivals()
	if len(as) != maxUnreliable || as[0].Message.Method != 100 || as[len(as)-1].Message.Method != n-1 {
		t.Errorf("%d arrived", len(as))
	}
	if d := server.stats.Dropped(DropUnreliable); d != 100 {
		t.Error("counted", d)
	}
}

func TestBrokenStreamClosesWithACode(t *testing.T) {
	for name, b := range map[string][]byte{
		"oversize length":   {0xff, 0xff, 0x7f},
		"endless length":    {0xff, 0xff, 0xff, 0xff},
		"malformed frame":   {2, 0xff, 0xff},
		"second hello":      {2, 1<<3 | 2, 0},
		"epoch to a server": {2, 5<<3 | 2, 0},
		"two kinds":         {4, 4<<3 | 2, 0, 6<<3 | 2, 0},
		"malformed close":   {3, 7<<3 | 2, 1, 0xff},
	} {
		server, client := pair(SessionConfig{})
		var closed *Closed
		if err := server.ReceiveStream(0, b); !errors.As(err, &closed) || closed.Code != CodeProtocol {
			t.Errorf("%s: %v", name, err)
			continue
		}
		carry(t, server, client, 0)
		if as := client.arrivals(); len(as) != 1 || as[0].Closed.Code != CodeProtocol || !as[0].Closed.Remote {
			t.Errorf("%s: the peer got %+v", name, as)
		}
	}
}

func TestUnknownFrameIsSkipped(t *testing.T) {
	server, _ := pair(SessionConfig{})
	b := append([]byte{0, 3, 15<<3 | 2, 1, 9}, appendMessageFrame(nil, &Message{Method: 8}, sizeMessage(&Message{Method: 8}))...)
	for _, c := range b { // byte by byte
		if err := server.ReceiveStream(0, []byte{c}); err != nil {
			t.Fatal(err)
		}
	}
	if as := server.arrivals(); len(as) != 1 || as[0].Message.Method != 8 || server.stats.Dropped(DropFrame) != 2 {
		t.Errorf("arrivals %+v", as)
	}
}

func TestFloodIsClosedForReliableAndDroppedForUnreliable(t *testing.T) {
	server, client := pair(SessionConfig{})
	for range DefaultInboxPerSession + 1 {
		b, _ := client.AppendDatagram(nil, 0)
		client.Send(Message{Method: 1})
		client.Flush(0)
		server.ReceiveDatagram(0, b)
	}
	for range 2 {
		b, _ := client.AppendDatagram(nil, 0)
		server.ReceiveDatagram(0, b)
		client.Flush(0)
	}
	if n := server.stats.Dropped(DropInboxSession); n != 1 {
		t.Errorf("dropped %d", n)
	}
	if _, ok := server.CloseRequested(); ok {
		t.Error("unreliable messages closed the session")
	}
	client.Send(Message{Method: 1, Reliable: true})
	client.Flush(0)
	carry(t, client, server, 0)
	if as := server.arrivals(); len(as) != DefaultInboxPerSession {
		t.Error("arrivals", len(as))
	}
	carry(t, server, client, 0)
	if as := client.arrivals(); len(as) != 1 || as[0].Closed.Code != CodeFlood {
		t.Errorf("arrivals %+v", as)
	}
}

func TestNothingArrivesAfterGone(t *testing.T) {
	server, client := pair(SessionConfig{})
	client.Send(Message{Method: 1})
	client.Flush(0)
	server.End(Closed{Code: CodeLost})
	carry(t, client, server, 0)
	if as := server.arrivals(); len(as) != 1 || as[0].Kind != Gone {
		t.Errorf("arrivals %+v", as)
	}
}

func TestFlushLagLeavesChokeOut(t *testing.T) {
	server, _ := pair(SessionConfig{})
	var lags []time.Duration
	server.stats.FlushLag = func(d time.Duration) { lags = append(lags, d) }
	server.Slot().Packets = [][]byte{{1}, {2}}
	server.Flush(10 * time.Millisecond)
	server.AppendDatagram(nil, 0)
	server.DatagramSent(11*time.Millisecond, 111*time.Millisecond, true) // waited 100 ms for the peer
	server.AppendDatagram(nil, 0)
	server.DatagramSent(111*time.Millisecond, 112*time.Millisecond-1, true)
	if len(lags) != 1 || lags[0] != 2*time.Millisecond-1 {
		t.Error("lags", lags)
	}
	if n := server.stats.ChokeNanos.Load(); n != uint64(100*time.Millisecond) {
		t.Error("choked", n)
	}
}
