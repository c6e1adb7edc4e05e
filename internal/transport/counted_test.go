package transport

import (
	"bytes"
	"reflect"
	"testing"
	"time"
)

// counted are the counters of both ends for one direction.
type counted struct{ datagrams, datagramBytes, frames, streamBytes uint64 }

func (e *end) countedOut() counted {
	s := e.stats
	return counted{s.DatagramsOut.Load(), s.DatagramBytesOut.Load(), s.FramesOut.Load(), s.StreamBytesOut.Load()}
}

func (e *end) countedIn() counted {
	s := e.stats
	return counted{s.DatagramsIn.Load(), s.DatagramBytesIn.Load(), s.FramesIn.Load(), s.StreamBytesIn.Load()}
}

// carryCounting is carry with counts of its own. It appends to a slice with other contents.
func carryCounting(t *testing.T, from, to *end) (c counted) {
	t.Helper()
	before := []byte("not a part of it")
	for {
		b, ok := from.appendDatagram(before, 0)
		if !bytes.HasPrefix(b, before) {
			t.Fatal("what stood before a datagram is gone")
		}
		if !ok {
			break
		}
		b = b[len(before):]
		from.datagramSent(0, 0, nil)
		to.ReceiveDatagram(0, b)
		c.datagrams++
		c.datagramBytes += uint64(len(b))
	}
	stream := from.AppendStream(before, 1<<20)[len(before):]
	c.streamBytes = uint64(len(stream))
	for rest := stream; len(rest) > 0; c.frames++ {
		frame, after, err := CutFrame(rest, MaxFrame)
		if err != nil || frame == nil {
			t.Fatalf("half a frame was sent: %v", err)
		}
		rest = after
	}
	_ = to.ReceiveStream(0, stream) // An end is an error, too.
	return c
}

// TestTransferredDataIsCounted makes an owner send frames or datagrams of one kind. The counters
// of both ends must match.
func TestTransferredDataIsCounted(t *testing.T) {
	for name, c := range map[string]struct {
		client            bool
		frames, datagrams uint64 // A client's flush always sends a datagram.
		do                func(e *end)
	}{
		"reliable messages": {frames: 2, do: func(e *end) {
			e.Send(Message{Reliable: true, Payload: []byte("a")})
			e.Send(Message{Reliable: true, Payload: make([]byte, 5000)})
		}},
		"unreliable messages": {datagrams: 2, do: func(e *end) {
			e.Send(Message{Payload: make([]byte, MaxDatagram*2/3)})
			e.Send(Message{Payload: make([]byte, MaxDatagram*2/3)})
		}},
		"a snapshot": {datagrams: 3, do: func(e *end) {
			slot := e.Slot()
			slot.Packets = append(slot.Packets, []byte("1"), make([]byte, MaxStatePacket), []byte("3"))
		}},
		"admission":       {frames: 1, do: func(e *end) { e.Accept(3) }},
		"records":         {frames: 2, do: func(e *end) { e.SendRecord([]byte("a")); e.SendRecord([]byte("b")) }},
		"an epoch":        {frames: 1, do: func(e *end) { e.PublishEpoch(Epoch{1, 2}) }},
		"overload":        {frames: 1, do: func(e *end) { e.PublishOverload(Overload{1, 2}) }},
		"a time scale":    {frames: 1, do: func(e *end) { e.PublishTimeScale(TimeScale{Num: 1, Den: 1}) }},
		"the coming end":  {frames: 1, do: func(e *end) { e.PublishClosing(time.Second) }},
		"the end":         {frames: 1, do: func(e *end) { e.Session.Close(CodeGame, "over") }},
		"a move":          {frames: 1, do: func(e *end) { e.LetMove(Moves{Later: func(func()) {}}); e.Session.Move("ticket") }},
		"a receipt":       {frames: 1, do: func(e *end) { e.Received(receiptMessages, 1) }},
		"records applied": {client: true, frames: 1, datagrams: 1, do: func(e *end) { e.AckRecord(1) }},
		"digests":         {client: true, frames: 1, datagrams: 1, do: func(e *end) { e.RequestDigest(1) }},
		"the full state":  {client: true, frames: 1, datagrams: 1, do: func(e *end) { e.RequestFullState() }},
		"a wish to move":  {client: true, frames: 1, datagrams: 1, do: func(e *end) { e.AskMove("ticket") }},
	} {
		from, to := pair(SessionConfig{Moves: true, AskMoves: true})
		if c.client {
			from, to = to, from
		}
		c.do(from)
		from.Flush(0)
		carried := carryCounting(t, from, to)
		if carried.frames != c.frames || carried.datagrams != c.datagrams {
			t.Errorf("%s: %+v were carried, want %d frames and %d datagrams", name, carried, c.frames, c.datagrams)
		}
		if out, in := from.countedOut(), to.countedIn(); out != carried || in != carried {
			t.Errorf("%s: %+v were carried, but %+v are counted out and %+v in", name, carried, out, in)
		}
		bytes := carried.datagramBytes + carried.streamBytes
		if sent, got := from.Load(), to.Load(); sent != (Load{Sent: bytes}) || got.Received != bytes || got.Sent != 0 {
			t.Errorf("%s: %d bytes were carried; the loads are %+v and %+v", name, bytes, sent, got)
		}
	}
}

// Data waits from Send until the driver takes it, also beyond a flush.
func TestLoadHasTheQueues(t *testing.T) {
	e := newEnd(false, SessionConfig{})
	for _, flush := range []bool{false, true} {
		e.Send(Message{Payload: []byte("a")})
		e.Send(Message{Payload: []byte("b"), Reliable: true})
		e.SendRecord(make([]byte, 100))
		if flush {
			e.Flush(0)
		}
	}
	stream := e.AppendStream(nil, 1<<20)
	if l := e.Load(); len(stream) < 200 || l != (Load{Sent: uint64(len(stream)), Unreliable: 2}) {
		t.Errorf("%+v with %d bytes of the stream", l, len(stream))
	}
	e.SendRecord(make([]byte, 100))
	if l := e.Load(); l.Reliable < 100 || l.Reliable > 110 {
		t.Errorf("%+v with one record", l)
	}
}

// Sent is called for all messages, also for dropped ones.
func TestSentIsCalledForAllMessages(t *testing.T) {
	var seen []Message
	e := newEnd(false, SessionConfig{Sent: func(m Message) { seen = append(seen, m) }})
	sent := []Message{{Method: 1}, {Method: 2, Reliable: true}, {Method: 3, Payload: make([]byte, MaxDatagram)}}
	for _, m := range sent {
		e.Send(m)
	}
	if !reflect.DeepEqual(seen, sent) {
		t.Errorf("of %d messages %+v were seen", len(sent), seen)
	}
}
