package transport

import (
	"errors"
	"slices"
	"testing"
	"time"
)

func TestACloseArrivesAfterSentData(t *testing.T) {
	server, client := pair(SessionConfig{})
	server.Send(Message{Method: 1, Reliable: true})
	server.Close(CodeKicked, "cheated")
	if server.Send(Message{Method: 2, Reliable: true}) {
		t.Error("sent after the close")
	}
	if _, ok := server.CloseRequested(); ok {
		t.Error("the link may close before the close frame left")
	}
	sent := len(server.AppendStream(nil, server.box.reliable.size()-1))
	if _, ok := server.CloseRequested(); ok || sent == 0 {
		t.Error("the link may close before the last byte left")
	}
	server.box.reliable.off = 0 // All of it is carried below.
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

func TestAnUnreadingPeerIsClosed(t *testing.T) {
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
	const n = maxUnreliable + 100
	for _, flushes := range []int{10, n} { // after so many messages
		server, client := pair(SessionConfig{})
		for i := range n {
			server.Send(Message{Method: uint32(i)})
			if i%flushes == flushes-1 {
				server.Flush(0)
			}
		}
		server.Flush(0)
		carry(t, server, client, 0)
		as := client.arrivals()
		if len(as) != maxUnreliable || as[0].Message.Method != 100 || as[len(as)-1].Message.Method != n-1 {
			t.Errorf("flushed every %d: %d arrived", flushes, len(as))
		}
		if d := server.stats.Dropped(DropUnreliable); d != 100 {
			t.Errorf("flushed every %d: %d are counted", flushes, d)
		}
	}
}

// Queued unreliable messages never exceed their bytes, whatever their sizes.
func TestUnreliableMessagesWaitWithinTheirBytes(t *testing.T) {
	server, _ := pair(SessionConfig{})
	most := 0
	for i := range 3000 {
		server.Send(Message{Method: 1, Payload: make([]byte, 100+i*7%900)})
		most = max(most, server.out.unreliable.size())
	}
	if most > maxUnreliableBytes || most < maxUnreliableBytes-maxMessageHead {
		t.Errorf("at most %d bytes wait, of %d", most, maxUnreliableBytes)
	}
}

func TestBrokenStreamClosesWithACode(t *testing.T) {
	for name, b := range map[string][]byte{
		"oversize length":      {0xff, 0xff, 0x7f},
		"endless length":       {0xff, 0xff, 0xff, 0xff},
		"malformed frame":      {2, 0xff, 0xff},
		"second hello":         {2, 1<<3 | 2, 0},
		"epoch to a server":    {2, 5<<3 | 2, 0},
		"overload to a server": {2, 8<<3 | 2, 0},
		"scale to a server":    {2, 13<<3 | 2, 0},
		"state to a server":    {2, 11<<3 | 2, 0},
		"malformed applied":    {3, 12<<3 | 2, 1, 0xff},
		"two kinds":            {4, 4<<3 | 2, 0, 6<<3 | 2, 0},
		"malformed close":      {3, 7<<3 | 2, 1, 0xff},
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
	b := append(append([]byte{0}, append(appendFrameHead(nil, frameUnknown, 1), 9)...), appendMessageFrame(nil, &Message{Method: 8}, sizeMessage(&Message{Method: 8}))...)
	for _, c := range b { // byte by byte
		if err := server.ReceiveStream(0, []byte{c}); err != nil {
			t.Fatal(err)
		}
	}
	if as := server.arrivals(); len(as) != 2 || as[0].Kind != Discarded || as[0].Value != 2 || as[1].Message.Method != 8 || server.stats.Dropped(DropFrame) != 2 {
		t.Errorf("arrivals %+v", as)
	}
}

func TestFloodIsClosedForReliableAndDroppedForUnreliable(t *testing.T) {
	server, client := pair(SessionConfig{})
	for range DefaultInboxPerSession + 1 {
		client.Send(Message{Method: 1})
		client.Flush(0)
		b, _ := client.appendDatagram(nil, 0)
		server.ReceiveDatagram(0, b)
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
	server.appendDatagram(nil, 0)
	// waited 100 ms for the peer
	server.datagramSent(11*time.Millisecond, 111*time.Millisecond, nil)
	server.appendDatagram(nil, 0)
	server.datagramSent(111*time.Millisecond, 112*time.Millisecond-1, nil)
	if len(lags) != 1 || lags[0] != 2*time.Millisecond-1 {
		t.Error("lags", lags)
	}
	if n := server.stats.ChokeNanos.Load(); n != uint64(100*time.Millisecond) {
		t.Error("choked", n)
	}
}

// A waiting client detects its acceptance without an arrival from the owner: once, even if the
// server repeats it, and also after the end.
func TestAcceptanceAndEndCanBeWaitedFor(t *testing.T) {
	server, client := pair(SessionConfig{})
	done := func(c <-chan struct{}) bool {
		select {
		case <-c:
			return true
		default:
			return false
		}
	}
	server.Send(Message{Method: 1, Reliable: true})
	server.Flush(0)
	carry(t, server, client, 0)
	if done(client.Accepted()) {
		t.Error("accepted by a message")
	}
	server.Accept(0)
	server.Accept(0)
	server.Flush(0)
	carry(t, server, client, 0)
	if as := client.arrivals(); !done(client.Accepted()) || done(client.Session.Closing()) || len(as) != 3 || as[1].Kind != Accepted {
		t.Errorf("accepted %v, closing %v, arrivals %+v", done(client.Accepted()), done(client.Session.Closing()), as)
	}
	client.End(Closed{Code: CodeLost})
	if !done(client.Session.Closing()) {
		t.Error("the end is not told")
	}
}

// Of a client's close code a server accepts only that it has left or timed out, which is no wish to
// leave.
func TestAClientCanOnlyLeaveOrHearNothing(t *testing.T) {
	for said, want := range map[Code]Code{
		CodeKicked: CodeLeft, CodeLost: CodeLeft, CodeTimeout: CodeTimeout, CodeGame: CodeGame,
	} {
		server, client := pair(SessionConfig{})
		client.Close(said, "")
		carry(t, client, server, 0)
		if as := server.arrivals(); len(as) != 1 || as[0].Closed.Code != want {
			t.Errorf("of code %v the room hears %+v", said, as)
		}
	}
}

// Both writers of a driver are woken when the end begins or is reached, so that they end too.
func TestTheWritersAreToldOfTheEnd(t *testing.T) {
	for name, do := range map[string]func(e *end){
		"the owner closes":   func(e *end) { e.Session.Close(CodeGame, "") },
		"the driver closes":  func(e *end) { e.Shutdown(CodeInternal, "") },
		"the link is gone":   func(e *end) { e.End(Closed{Code: CodeLost}) },
		"the stream is full": func(e *end) { e.slow("full") },
	} {
		e := newEnd(false, SessionConfig{})
		if do(e); *e.woken != (woken{true, true}) {
			t.Errorf("%s: told were %+v", name, *e.woken)
		}
	}
}

// After a link has ended no data of it arrives.
func TestNothingArrivesAfterTheEnd(t *testing.T) {
	server, client := pair(SessionConfig{})
	client.Send(Message{Method: 1})
	client.Flush(0)
	b, _ := client.appendDatagram(nil, 0)
	server.End(Closed{Code: CodeLost})
	if got := kinds(server.arrivals()); !slices.Equal(got, []ArrivalKind{Gone}) {
		t.Fatalf("arrived %v", got)
	}
	server.ReceiveDatagram(1, b)
	if got := server.arrivals(); len(got) > 0 || server.stats.Dropped(DropInboxGone) != 1 {
		t.Errorf("arrived %v; %d are counted", got, server.stats.Dropped(DropInboxGone))
	}
}
