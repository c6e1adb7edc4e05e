package transport

import (
	"bytes"
	"math"
	"testing"

	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// reports returns the reports of mispredictions that have arrived.
func reports(as []Arrival) (all []uint64) {
	for _, a := range as {
		if a.Kind == Mispredicted {
			all = append(all, a.Value)
		}
	}
	return all
}

// A report is a field of the next datagram, and a client without mispredictions sends none.
func TestAReportOfMispredictionsEqualsProtoMarshal(t *testing.T) {
	_, client := pair(SessionConfig{})
	for i, n := range []uint64{0, 1, 300, maxCount, math.MaxUint64} {
		client.TellMispredicted(n)
		client.Inputs([]byte("packet"))
		client.Flush(0)
		b, _ := client.appendDatagram(nil, 1000)
		want := marshal(t, &netloopv1.Datagram{Number: uint64(1 + i), Inputs: []byte("packet"), Mispredicted: min(n, maxCount)})
		if !bytes.Equal(b, want) {
			t.Errorf("%d\n% x\n% x", n, b, want)
		}
	}
	client.Flush(0)
	if b, _ := client.appendDatagram(nil, 1000); !bytes.Equal(b, marshal(t, &netloopv1.Datagram{Number: 6, Padding: nil})) {
		t.Errorf("a report is sent twice: % x", b)
	}
	if n := len(appendField(nil, fieldMispredicted, maxCount)); n != maxMispredicted {
		t.Errorf("the longest report takes %d bytes, want %d", n, maxMispredicted)
	}
}

// A report needs no datagram of its own: it waits for the next one.
func TestAReportOfMispredictionsWaitsForADatagram(t *testing.T) {
	server, client := pair(SessionConfig{})
	client.TellMispredicted(2)
	client.AckLater()
	client.Flush(0)
	if sent := carry(t, client, server, 0); sent > 0 {
		t.Fatalf("%d datagrams are sent for a report alone", sent)
	}
	client.TellMispredicted(3)
	client.Inputs([]byte("packet"))
	client.Flush(0)
	carry(t, client, server, 0)
	if got := reports(server.arrivals()); len(got) != 1 || got[0] != 3 {
		t.Errorf("%v arrive", got)
	}
}

// A repeated report, and a late one with a smaller number, are no arrivals. Reports between two
// swaps are one arrival, with the largest number, however many datagrams a hostile client sends.
func TestReportsOfMispredictionsRise(t *testing.T) {
	server, _ := pair(SessionConfig{})
	number := uint64(0)
	send := func(all ...uint64) {
		for _, n := range all {
			number++
			server.ReceiveDatagram(5, marshal(t, &netloopv1.Datagram{Number: number, Mispredicted: n}))
		}
	}
	for _, c := range []struct{ sent, want []uint64 }{
		{[]uint64{0}, nil},
		{[]uint64{7}, []uint64{7}},
		{[]uint64{7, 7}, nil},
		{[]uint64{6, 1}, nil},
		{[]uint64{8, 9, 12, 10}, []uint64{12}},
		{[]uint64{math.MaxUint64}, []uint64{maxCount}},
		{[]uint64{maxCount, math.MaxUint64 - 1, 13}, nil},
	} {
		send(c.sent...)
		as := server.arrivals()
		if got := reports(as); len(as) != len(c.want) || len(got) == 1 && got[0] != c.want[0] {
			t.Errorf("of %d arrive %v, want %d", c.sent, as, c.want)
		}
	}
	for n := range uint64(100) {
		send(1 + n)
	}
	if got := server.stats.Dropped(DropRole) + server.stats.Dropped(DropDatagram); got > 0 {
		t.Errorf("%d are dropped", got)
	}
}

// Two reports in one datagram make it malformed, as for the other fields.
func TestADatagramHasOneReportOfMispredictions(t *testing.T) {
	server, _ := pair(SessionConfig{})
	server.ReceiveDatagram(5, appendField(appendField(appendNumber(nil, 1), fieldMispredicted, 1), fieldMispredicted, 2))
	if got := reports(server.arrivals()); len(got) > 0 || server.stats.Dropped(DropDatagram) != 1 {
		t.Errorf("%v arrive", got)
	}
}
