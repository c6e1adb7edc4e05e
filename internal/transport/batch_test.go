package transport

import (
	"bytes"
	"slices"
	"testing"
	"time"
)

// streamWrite is the number of bytes that package quicnet takes from a session for one write.
const streamWrite = 4 << 10

func TestSmallMessagesOfATickLeaveInOneStreamWrite(t *testing.T) {
	server, client := pair(SessionConfig{})
	const n, payload = 100, 12
	for i := range n {
		server.Send(Message{Method: uint32(1 + i), Reliable: true, Payload: make([]byte, payload)})
	}
	if b := server.AppendStream(nil, streamWrite); len(b) > 0 {
		t.Errorf("%d bytes left before the flush", len(b))
	}
	server.Flush(0)
	b := server.AppendStream(nil, streamWrite)
	if rest := server.AppendStream(nil, streamWrite); len(rest) > 0 {
		t.Errorf("%d bytes need another write", len(rest))
	}
	// Length, tag, length; tag and method; tag and length of the payload.
	if each := float64(len(b))/n - payload; each != 7 {
		t.Errorf("each message takes %v bytes besides its payload, want 7", each)
	}
	if err := client.ReceiveStream(0, b); err != nil {
		t.Fatal(err)
	}
	if got := len(client.arrivals()); got != n {
		t.Errorf("%d of %d arrived", got, n)
	}
}

func TestUnreliableMessagesFillDatagrams(t *testing.T) {
	server, client := pair(SessionConfig{})
	const n, payload = 400, 12
	for i := range n {
		server.Send(Message{Method: uint32(1 + i%100), Payload: make([]byte, payload)})
	}
	server.Flush(0)
	got, datagrams, size := 0, 0, 0
	for {
		b, ok := server.appendDatagram(nil, 0)
		if !ok {
			break
		}
		datagrams++
		size += len(b)
		client.ReceiveDatagram(0, b)
	}
	for _, a := range client.arrivals() {
		if a.Kind == MessageArrived {
			got++
		}
	}
	// Tag and length; tag and method; tag and length of the payload.
	const each = payload + 6
	if got != n || datagrams != (n*each+MaxDatagram-1)/MaxDatagram {
		t.Errorf("%d of %d arrived in %d datagrams", got, n, datagrams)
	}
	if head := size - n*each; head > 4*datagrams {
		t.Errorf("%d datagrams have %d bytes around their messages", datagrams, head)
	}
}

// While the link does not take a datagram, another call sends the later ones, and does not change
// the memory of the first.
func TestABlockedSendDelaysNoOther(t *testing.T) {
	server, client := pair(SessionConfig{})
	say := func(method uint32) {
		server.Send(Message{Method: method})
		server.Flush(0)
	}
	clock := func() time.Duration { return 0 }
	arrive := func(b []byte) error { client.ReceiveDatagram(0, bytes.Clone(b)); return nil }
	say(1)
	_ = server.SendDatagrams(clock, func(b []byte) error {
		if say(2); server.SendDatagrams(clock, arrive) != nil {
			t.Error("the second call failed")
		}
		return arrive(b)
	})
	var got []uint32
	for _, a := range client.arrivals() {
		if a.Kind == MessageArrived {
			got = append(got, a.Message.Method)
		}
	}
	if !slices.Equal(got, []uint32{2, 1}) {
		t.Errorf("messages %v have arrived, want 2 and 1", got)
	}
}
