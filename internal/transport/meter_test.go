package transport

import (
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// A meter reports amounts above its burst, and above twice its burst, and recovers at its rate.
func TestAMeterHoldsItsRate(t *testing.T) {
	r := Rate{PerSecond: 100, Burst: 10}
	var m meter
	for i, want := range []struct {
		at time.Duration
		n  int
		e  excess
	}{
		{0, 10, within}, {0, 1, beyondBurst}, {0, 9, beyondBurst}, {0, 1, beyondTwice},
		{110 * time.Millisecond, 0, within}, {110 * time.Millisecond, 1, beyondBurst},
		{time.Hour, 10, within}, {time.Hour, 11, beyondTwice},
	} {
		if e := m.take(want.at, r, want.n); e != want.e {
			t.Errorf("step %d: %d, want %d", i, e, want.e)
		}
	}
	if e := m.take(time.Hour, Rate{}, 1<<30); e != within {
		t.Error("a zero rate has a bottom")
	}
}

// heartbeat is a client's datagram that contains only its number.
func heartbeat(n int) []byte { return appendNumber(nil, uint64(n)) }

// For each limit: data beyond it is dropped if possible, data beyond twice the limit ends the
// session, and the reason is counted. The limits recover later.
func TestASessionThatSendsTooMuchEnds(t *testing.T) {
	sized := SessionConfig{Size: func(m *Message) int { return 10 * len(m.Payload) }}
	payload := func(n int) []byte { return append([]byte{7<<3 | 2, byte(n)}, make([]byte, n)...) }
	message := append(appendFrameHead(nil, frameMessage, 102), payload(100)...)
	datagram := func(n int) []byte {
		b := protowire.AppendTag(heartbeat(n), fieldMessages, protowire.BytesType)
		return protowire.AppendBytes(b, payload(100))
	}
	for name, c := range map[string]struct {
		limits Limits
		send   func(e *end, at time.Duration, n int)
		most   int // within the limit
		why    Drop
		drops  bool // data beyond it is dropped
	}{
		"datagrams": {Limits{Datagrams: Rate{10, 20}}, func(e *end, at time.Duration, n int) {
			e.ReceiveDatagram(at, heartbeat(n))
		}, 20, DropDatagramRate, true},
		"broken datagrams": {Limits{Datagrams: Rate{10, 20}}, func(e *end, at time.Duration, _ int) {
			e.ReceiveDatagram(at, nil)
		}, 20, DropDatagramRate, true},
		"bytes of datagrams": {Limits{Bytes: Rate{500, 1000}}, func(e *end, at time.Duration, _ int) {
			e.ReceiveDatagram(at, make([]byte, 100))
		}, 10, DropDatagramBytes, true},
		"decoded bytes of datagrams": {Limits{Bytes: Rate{5000, 10300}}, func(e *end, at time.Duration, n int) {
			e.ReceiveDatagram(at, datagram(n))
		}, 10, DropDatagramBytes, true},
		"frames": {Limits{Frames: Rate{10, 20}}, func(e *end, at time.Duration, _ int) {
			_ = e.ReceiveStream(at, message)
		}, 40, DropFrameRate, false},
		"empty frames": {Limits{Frames: Rate{10, 20}}, func(e *end, at time.Duration, _ int) {
			_ = e.ReceiveStream(at, []byte{0})
		}, 40, DropFrameRate, false},
		"bytes of the stream": {Limits{Bytes: Rate{500, 1000}}, func(e *end, at time.Duration, _ int) {
			_ = e.ReceiveStream(at, zeroFrame(frameUnknown, 96)) // 100 bytes with its head
		}, 20, DropStreamBytes, false},
		"decoded bytes of the stream": {Limits{Bytes: Rate{5000, 10100}}, func(e *end, at time.Duration, _ int) {
			_ = e.ReceiveStream(at, message)
		}, 20, DropStreamBytes, false},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := sized
			cfg.Limits = c.limits
			e := newEnd(false, cfg)
			n := 0
			for _, at := range []time.Duration{0, time.Minute} {
				for range c.most {
					n++
					c.send(e, at, n)
				}
				if _, closing := e.Cause(); closing || e.stats.Dropped(c.why) != 0 {
					t.Fatalf("within the limit: closing %v, %d dropped", closing, e.stats.Dropped(c.why))
				}
			}
			for beyond := 1; ; beyond++ {
				n++
				c.send(e, time.Minute, n)
				why, closing := e.Cause()
				switch most := c.most; {
				case closing && (why.Code != CodeFlood || c.drops && beyond < most || e.stats.Dropped(c.why) == 0):
					t.Fatalf("ended with %v by the %dth beyond its limit, %d counted", why, beyond, e.stats.Dropped(c.why))
				case closing:
					return
				case c.drops && e.stats.Dropped(c.why) != uint64(beyond), beyond > 10*most:
					t.Fatalf("the %dth beyond the limit: %d dropped", beyond, e.stats.Dropped(c.why))
				}
			}
		})
	}
}

// A message with a too large decoded size is not decoded, and is charged as discarded data.
func TestAMessageThatIsLargeDecodedIsDropped(t *testing.T) {
	for _, c := range []struct {
		size    int
		decoded bool
	}{{MaxDecoded, true}, {MaxDecoded + 1, false}} {
		calls := 0
		e := newEnd(false, SessionConfig{
			Size:   func(*Message) int { return c.size },
			Decode: func(*Message) (any, any, error) { calls++; return nil, 1, nil },
		})
		if err := e.ReceiveStream(0, append(appendFrameHead(nil, frameMessage, 2), 1<<3, 5)); err != nil {
			t.Fatal(err)
		}
		as := e.arrivals()
		if len(as) != 1 || (as[0].Kind == MessageArrived) != c.decoded || (calls == 1) != c.decoded || (e.stats.Dropped(DropDecoded) == 0) != c.decoded {
			t.Errorf("%d bytes: decoded %d times, arrivals %+v", c.size, calls, as)
		}
	}
}

// A too large message is charged with its estimate: a client that only sends such messages is
// disconnected.
func TestBombsCountAgainstTheirSender(t *testing.T) {
	e := newEnd(false, SessionConfig{
		Limits: Limits{Bytes: Rate{PerSecond: 1 << 20, Burst: 2 * MaxDecoded}},
		Size:   func(*Message) int { return 1 << 30 },
	})
	for n := 1; n <= 4; n++ {
		if _, out := e.Cause(); out {
			t.Fatalf("out after %d", n-1)
		}
		if err := e.ReceiveStream(0, append(appendFrameHead(nil, frameMessage, 2), 1<<3, 5)); err != nil {
			t.Fatal(err)
		}
	}
	if why, out := e.Cause(); !out || why.Code != CodeFlood || e.stats.Dropped(DropStreamBytes) != 1 {
		t.Errorf("out %v, %v", out, why)
	}
}

// A client of 240 Hz that sends up to the room's limits, and catches up after a second without
// network, does not reach the limits of the link.
func TestABusyClientMeetsNoLimit(t *testing.T) {
	e := newEnd(false, SessionConfig{Limits: DefaultLimits})
	m := &Message{Method: 1, Payload: make([]byte, 256)}
	message := appendMessageFrame(nil, m, sizeMessage(m))
	const hertz = 240
	for tick := 1; tick <= 30*hertz; tick++ {
		at := time.Duration(tick) * time.Second / hertz
		if s := tick / hertz; s%10 == 9 {
			at = time.Duration(s+1) * time.Second
		}
		e.ReceiveDatagram(at, heartbeat(2*tick))
		e.ReceiveDatagram(at, protowire.AppendBytes(protowire.AppendTag(heartbeat(2*tick+1), fieldMessages, protowire.BytesType), make([]byte, 1000)))
		for range 4 {
			if err := e.ReceiveStream(at, message); err != nil {
				t.Fatal(err)
			}
		}
		e.arrivals()
	}
	for _, why := range []Drop{DropDatagramRate, DropDatagramBytes, DropFrameRate, DropStreamBytes} {
		if n := e.stats.Dropped(why); n != 0 {
			t.Errorf("%s: %d", dropNames[why], n)
		}
	}
	if why, closing := e.Cause(); closing {
		t.Errorf("it was closed: %v", why)
	}
}

// The frame that exceeds a limit and ends the session is not accepted, for each limit.
func TestTheFrameThatEndsASessionIsNotTaken(t *testing.T) {
	frame := append(appendFrameHead(nil, frameMessage, 2), 1<<3, 5)
	for name, c := range map[string]SessionConfig{
		"frames":        {Limits: Limits{Frames: Rate{PerSecond: 1, Burst: 1}}},
		"bytes":         {Limits: Limits{Bytes: Rate{PerSecond: 4, Burst: 4}}},
		"decoded bytes": {Limits: Limits{Bytes: Rate{PerSecond: 100, Burst: 100}}, Size: func(*Message) int { return 100 }},
	} {
		e := newEnd(false, c)
		sent, taken, out := 0, 0, false
		for ; !out && sent < 10; sent++ {
			_ = e.ReceiveStream(0, frame)
			_, out = e.Cause()
		}
		for _, a := range e.arrivals() {
			if a.Kind == MessageArrived {
				taken++
			}
		}
		if !out || sent < 2 || taken != sent-1 {
			t.Errorf("%s: out %v after %d messages, of which %d were taken", name, out, sent, taken)
		}
	}
}
