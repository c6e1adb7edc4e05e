package transport

import (
	"bytes"
	"math"
	"testing"
	"time"

	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// status is a server's status of inputs.
var status = InputStatus{Newest: 300, Before: 0x8001, Early: -1500 * time.Microsecond, Missed: 7}

func protoStatus(s InputStatus) *netloopv1.InputStatus {
	return &netloopv1.InputStatus{Newest: s.Newest, Before: uint32(s.Before), EarlyUs: s.Early.Microseconds(), Missed: s.Missed, Generation: uint32(s.Generation)}
}

// Unsent inputs are kept until they are sent or replaced by newer ones.
func TestInputsWaitForADatagram(t *testing.T) {
	_, client := pair(SessionConfig{})
	for _, newer := range []string{"", "newer"} {
		want := "packet"
		client.Inputs([]byte(want))
		client.Flush(0)
		if newer != "" {
			want = newer
			client.Inputs([]byte(newer))
		}
		client.Flush(0)
		if b, _ := client.appendDatagram(nil, 0); !bytes.Contains(b, []byte(want)) || newer != "" && bytes.Contains(b, []byte("packet")) {
			t.Errorf("newer inputs %q: the datagram is %q", newer, b)
		}
	}
}

func TestInputsEqualProtoMarshalAndArrive(t *testing.T) {
	server, client := pair(SessionConfig{})
	m := Message{Method: 3, Payload: []byte("hi")}
	client.Inputs([]byte("packet"))
	client.Send(m)
	client.Flush(0)
	b, _ := client.appendDatagram(nil, 1000)
	want := marshal(t, &netloopv1.Datagram{
		Number: 1, Messages: []*netloopv1.Message{protoMessage(&m)}, Inputs: []byte("packet"),
	})
	if client.Flush(0); !bytes.Equal(b, want) {
		t.Errorf("client\n% x\n% x", b, want)
	}
	server.ReceiveDatagram(2000, b)
	as := server.arrivals()
	if len(as) != 2 || as[0].Kind != Inputs || as[0].At != 2000 || string(as[0].State) != "packet" {
		t.Errorf("%+v", as)
	}
	clear(b)
	if string(as[0].State) != "packet" {
		t.Error("a packet of inputs holds its datagram")
	}
	if b, _ = client.appendDatagram(nil, 1000); bytes.Contains(b, []byte("packet")) {
		t.Error("a packet of inputs leaves twice")
	}

	for i, s := range []InputStatus{status, {}, {Newest: math.MaxUint64, Before: math.MaxUint16, Early: -time.Hour, Missed: math.MaxUint64, Generation: 3}} {
		server.TellInputs(s)
		server.Slot().Packets = [][]byte{{1}}
		server.Flush(0)
		b, _ = server.appendDatagram(nil, 0)
		want = marshal(t, &netloopv1.Datagram{Number: uint64(1 + i), State: []byte{1}, InputStatus: protoStatus(s)})
		if !bytes.Equal(b, want) {
			t.Errorf("server\n% x\n% x", b, want)
		}
		server.datagramSent(0, 0, nil)
		client.ReceiveDatagram(5, b)
		if as := client.arrivals(); len(as) != 2 || as[1].Kind != InputsTold || *as[1].Status != s {
			t.Errorf("%+v", as)
		}
	}
	longest := InputStatus{Newest: math.MaxUint64, Before: math.MaxUint16, Early: math.MinInt64, Missed: math.MaxUint64, Generation: 3}
	if n := len(appendInputStatus(nil, longest)); n != maxInputStatus {
		t.Errorf("the longest status of inputs takes %d bytes, want %d", n, maxInputStatus)
	}
	huge := protoStatus(status)
	huge.EarlyUs = math.MinInt64
	client.ReceiveDatagram(5, marshal(t, &netloopv1.Datagram{Number: 9, InputStatus: huge}))
	if as := client.arrivals(); len(as) != 1 || as[0].Status.Early != -time.Hour {
		t.Errorf("%+v", as)
	}
}

// An input status is sent with the next datagram that has room, and in one of its own after four
// flushes.
func TestAWordAboutInputsWaitsForADatagram(t *testing.T) {
	server, client := pair(SessionConfig{})
	told := func() (all []InputStatus) {
		for _, a := range client.arrivals() {
			if a.Kind == InputsTold {
				all = append(all, *a.Status)
			}
		}
		return all
	}
	for n := range uint64(4) {
		server.TellInputs(InputStatus{Newest: n + 1})
		server.Flush(0)
		if sent := carry(t, server, client, 0); sent > 0 {
			t.Fatalf("flush %d sends a word by itself", n)
		}
	}
	server.Flush(0)
	if sent := carry(t, server, client, 0); sent != 1 {
		t.Fatalf("after four flushes %d datagrams leave", sent)
	}
	if got := told(); len(got) != 1 || got[0].Newest != 4 {
		t.Errorf("told %+v", got)
	}
	server.Flush(0)
	if sent := carry(t, server, client, 0); sent > 0 {
		t.Error("the same word leaves twice")
	}

	server.TellInputs(status)
	server.ReceiveDatagram(math.MaxInt64/2, marshal(t, &netloopv1.Datagram{Number: 1, TimeRequest: &netloopv1.TimeRequest{SentNs: math.MaxInt64 / 2}}))
	server.box.number = math.MaxUint64 - 9
	server.Slot().Packets = [][]byte{make([]byte, MaxStatePacket), make([]byte, MaxStatePacket-40)}
	server.Flush(0)
	if sent := carry(t, server, client, math.MaxInt64/2); sent != 2 {
		t.Fatalf("%d datagrams leave", sent)
	}
	if as := client.arrivals(); len(as) != 4 || as[0].Kind != TimeSample || as[3].Kind != InputsTold {
		t.Errorf("%v: the word goes with the packet that leaves room for it", kinds(as))
	}
}

// A packet of inputs fits a datagram with all other fields of a client.
func TestInputsFitBesideAcknowledgements(t *testing.T) {
	server, client := pair(SessionConfig{})
	client.box.number = math.MaxUint64 - 9
	for i := range uint64(2 * AckWindow) {
		if i%2 == 0 {
			client.AckState(1<<63 + i)
		}
	}
	client.RequestTime()
	client.Inputs(make([]byte, MaxInputs))
	client.TellMispredicted(math.MaxUint64)
	for range 3 {
		client.Send(Message{Method: 1, Payload: make([]byte, 100)})
	}
	client.Flush(0)
	carry(t, client, server, math.MaxInt64/2)
	var inputs, messages, reports int
	for _, a := range server.arrivals() {
		switch a.Kind {
		case Inputs:
			inputs = len(a.State)
		case MessageArrived:
			messages++
		case Mispredicted:
			reports++
		}
	}
	if inputs != MaxInputs || messages != 3 || reports != 1 {
		t.Errorf("%d bytes of inputs, %d messages and %d reports arrive", inputs, messages, reports)
	}
}

// Packets of inputs have memory of their own, which is reused once they were taken.
func TestPacketsOfInputsAreNotMixedUp(t *testing.T) {
	server, _ := pair(SessionConfig{})
	n := uint64(0)
	for round := range 20 {
		var want []string
		for i := range 1 + round%5 {
			n++
			text := string(bytes.Repeat([]byte{byte('a' + n%26)}, 1+int(n*7%50)))
			d := &netloopv1.Datagram{Number: n, Inputs: []byte(text)}
			if i%2 == 0 {
				d.Acks = &netloopv1.AckRanges{Newest: n, Runs: []uint32{1}}
			}
			server.ReceiveDatagram(0, marshal(t, d))
			want = append(want, text)
		}
		server.inbox.Each(func(a *Arrival) {
			switch {
			case a.Kind != Inputs:
				if len(a.State) > 0 {
					t.Errorf("%q came with acknowledgements", a.State)
				}
			case string(a.State) != want[0]:
				t.Errorf("%q came, want %q", a.State, want[0])
				fallthrough
			default:
				want = want[1:]
			}
		})
		if len(want) > 0 {
			t.Errorf("%q did not come", want)
		}
	}
}
