package transport

import (
	"testing"
	"time"

	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// Silence is measured from the last valid data, on either path: the window uses it to tell a fault
// from a pause.
func TestValidDataEndsTheSilence(t *testing.T) {
	server, client := pair(SessionConfig{})
	for i, arrive := range []func(at time.Duration){
		func(at time.Duration) { server.ReceiveDatagram(at, marshal(t, &netloopv1.Datagram{Number: 1})) },
		func(at time.Duration) {
			if err := server.ReceiveStream(at, appendDigestFrame(nil, 1, false)); err != nil {
				t.Fatal(err)
			}
		},
		func(at time.Duration) { carry(t, client, server, at) },
	} {
		at := time.Duration(i+1) * time.Second
		if client.RequestDigest(1); i < 2 {
			arrive(at)
		} else {
			client.Flush(at)
			arrive(at)
		}
		if got := server.LinkFacts().LastArrival; got != at {
			t.Errorf("arrival %d: the last one was at %v, want %v", i, got, at)
		}
	}
	server.ReceiveDatagram(time.Minute, []byte{0xff})
	if got := server.LinkFacts().LastArrival; got != 3*time.Second {
		t.Errorf("what cannot be read ended the silence at %v", got)
	}
}

// A datagram of MaxDatagram bytes is accepted, and a larger one is not.
func TestTheLargestDatagramIsTaken(t *testing.T) {
	for _, size := range []int{MaxDatagram, MaxDatagram + 1} {
		server, _ := pair(SessionConfig{})
		b := appendNumber(nil, 1)
		for m := (Message{Method: 9}); len(b) < size; {
			m.Payload = make([]byte, len(m.Payload)+1)
			full := appendDatagramMessage(appendNumber(nil, 1), &m, sizeMessage(&m))
			if len(full) > size {
				t.Fatalf("no message makes a datagram of %d bytes", size)
			}
			b = full
		}
		server.ReceiveDatagram(1, b)
		arrived, large := 0, server.stats.Dropped(DropDatagramTooLarge)
		for _, a := range server.arrivals() {
			if a.Kind == MessageArrived {
				arrived++
			}
		}
		if fits := size <= MaxDatagram; fits != (arrived == 1) || fits != (large == 0) {
			t.Errorf("%d bytes: %d messages, %d counted as too large", size, arrived, large)
		}
	}
}

// A time sample that runs backwards, at either end, is dropped.
func TestTimeThatRunsBackwardsIsNoSample(t *testing.T) {
	for name, c := range map[string]struct {
		reply [3]uint64 // of the request, received, sent
		bad   uint64
	}{
		"in order":                       {[3]uint64{3, 8, 8}, 0},
		"answered before it arrived":     {[3]uint64{3, 9, 8}, 1},
		"back before it was asked":       {[3]uint64{6, 7, 8}, 1},
		"back as soon as it was asked":   {[3]uint64{5, 7, 8}, 0},
		"answered as soon as it arrived": {[3]uint64{1, 2, 2}, 0},
	} {
		_, client := pair(SessionConfig{})
		client.ReceiveDatagram(5, marshal(t, &netloopv1.Datagram{Number: 1, TimeReply: &netloopv1.TimeReply{
			RequestNs: c.reply[0], ReceivedNs: c.reply[1], SentNs: c.reply[2],
		}}))
		if bad, as := client.stats.Dropped(DropTime), client.arrivals(); bad != c.bad || len(as) != 1-int(c.bad) {
			t.Errorf("%s: %d counted, arrivals %v", name, bad, kinds(as))
		}
	}
}
