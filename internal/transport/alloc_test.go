package transport

import (
	"bytes"
	"testing"
	"time"
)

// busy is a server's session with all data that a tick may bring.
type busy struct {
	*end
	packet  [MaxStatePacket]byte
	payload [40]byte
	buf     []byte
}

func newBusy(client bool) *busy {
	return &busy{end: newEnd(client, SessionConfig{}), buf: make([]byte, 0, 64<<10)}
}

// tick does the owner's work of one tick.
func (b *busy) tick(n int) {
	if slot := b.Slot(); slot != nil && !b.cfg.Client {
		for range 3 {
			slot.Packets = append(slot.Packets, b.packet[:])
		}
	}
	b.AckState(uint64(n))
	for i := range 4 {
		b.Send(Message{Method: 3, Stage: 5, Call: uint64(n), Payload: b.payload[:], Reliable: i%2 == 0})
	}
	b.PublishEpoch(Epoch{uint64(n), time.Duration(n)})
	b.RequestTime()
	b.Flush(time.Duration(n))
}

// drain does the writers' work.
func (b *busy) drain() (datagrams int) {
	_ = b.SendDatagrams(func() time.Duration { return 1 }, func([]byte) error { // It never fails.
		datagrams++
		return nil
	})
	for len(b.AppendStream(b.buf[:0], 4096)) > 0 {
	}
	return datagrams
}

func TestFlushAndAppendDoNotAllocate(t *testing.T) {
	for _, client := range []bool{false, true} {
		b := newBusy(client)
		b.stats.FlushLag = func(time.Duration) {}
		n := 0
		for range 100 {
			n++
			b.tick(n)
			b.drain()
		}
		if a := testing.AllocsPerRun(500, func() {
			n++
			b.tick(n)
			b.drain()
		}); a != 0 {
			t.Errorf("client=%v: %v allocations a tick", client, a)
		}
	}
}

func ignore(*Arrival) {}

func TestReceiveDoesNotAllocateForAcks(t *testing.T) {
	server := newEnd(false, SessionConfig{})
	client := newBusy(true)
	var in [][]byte
	for n := range 300 {
		client.AckState(uint64(2 * n))
		client.Flush(0)
		b, _ := client.appendDatagram(nil, 0)
		in = append(in, b)
	}
	i := 0
	step := func() {
		server.ReceiveDatagram(0, in[i])
		server.inbox.Each(ignore)
		i++
	}
	for range 50 {
		step()
	}
	if a := testing.AllocsPerRun(200, step); a != 0 {
		t.Errorf("%v allocations a datagram", a)
	}
}

func BenchmarkSessionFlushAppend(b *testing.B) {
	s := newBusy(false)
	b.ReportAllocs()
	n, datagrams := 0, 0
	for b.Loop() {
		n++
		s.tick(n)
		datagrams += s.drain()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(datagrams), "ns/datagram")
}

func BenchmarkSessionReceive(b *testing.B) {
	server := newEnd(false, SessionConfig{Decode: func(*Message) (any, any, error) { return nil, server1, nil }})
	client := newBusy(true)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		b.StopTimer()
		n++
		client.AckState(uint64(n))
		client.Send(Message{Method: 3, Payload: client.payload[:]})
		client.Flush(0)
		d, _ := client.appendDatagram(nil, 0)
		b.StartTimer()
		server.ReceiveDatagram(0, d)
		server.inbox.Each(ignore)
	}
}

var server1 any = new(int)

// BenchmarkParse reads a client's datagram (number, acknowledgements, time request, two
// messages), and the frames of a message and of a time scale.
func BenchmarkParse(b *testing.B) {
	var acks ackSet
	for id := range uint64(100) {
		if id%7 != 0 {
			acks.add(id)
		}
	}
	m := Message{Method: 300, Stage: 5, Call: 70000, Payload: bytes.Repeat([]byte{1}, 40), Tick: 123456}
	datagram := appendTimeRequest(acks.appendField(appendNumber(nil, 5000)), 1<<40)
	for range 2 {
		datagram = appendDatagramMessage(datagram, &m, sizeMessage(&m))
	}
	message := appendMessage(nil, &m)
	frame, _, _ := CutFrame(appendTimeScaleFrame(nil, TimeScale{1, 3, 300, 1 << 40, 1 << 63}), MaxFrame)
	var ranges []Range
	b.Run("datagram", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			d, err := parseDatagram(datagram)
			if err != nil {
				b.Fatal(err)
			}
			if ranges, err = parseAcks(d.acks, ranges[:0]); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("message", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := parseMessage(message); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("frame", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, body, err := parseFrame(frame)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := parseTimeScale(body); err != nil {
				b.Fatal(err)
			}
		}
	})
}
