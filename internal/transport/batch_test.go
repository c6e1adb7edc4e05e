package transport

import "testing"

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
