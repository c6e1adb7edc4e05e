package tun

import (
	"encoding/binary"
	"math"
	"testing"
	"time"

	"github.com/netloop/netloop/internal/netem"
)

const ms = time.Millisecond

// packet returns a UDP packet of so many bytes, from port 4433 to another one.
func packet(size int, to uint16) []byte {
	b := make([]byte, size)
	b[0], b[9] = 0x45, 17
	binary.BigEndian.PutUint16(b[20:], 4433)
	binary.BigEndian.PutUint16(b[22:], to)
	return b
}

// down returns the lane to the clients of a path as text.
func down(t *testing.T, spec string, seed uint64) *lane {
	t.Helper()
	s, err := netem.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	return newLane(s.Ways[netem.Down], netem.Down, seed)
}

// arrivals takes all packets and returns their arrival times.
func arrivals(l *lane) (at []time.Duration) {
	for {
		next, ok := l.queue.Next()
		if !ok {
			return at
		}
		at = append(at, next)
		l.take(next)
	}
}

func TestAPacketArrivesAfterTheDelay(t *testing.T) {
	l := down(t, "rtt=60ms", 1)
	l.put(5*ms, packet(100, 9))
	if _, ok := l.take(35*ms - 1); ok {
		t.Error("it arrived early")
	}
	if p, ok := l.take(35 * ms); !ok || len(p) != 100 || l.counts.Late != 0 {
		t.Error("it did not arrive in time")
	}
	l.put(40*ms, packet(100, 9))
	if _, ok := l.take(80 * ms); !ok || l.counts.Late != 1 || l.counts.Passed != 2 {
		t.Errorf("a late packet: %+v", l.counts)
	}
}

// The packets of a full queue are dropped, and the others leave at the rate of the link.
func TestTheRateAndTheQueueBoundAFlood(t *testing.T) {
	l := down(t, "rtt=60ms,rate=2Mbit/s,buffer=100ms", 1)
	const size = 1000 // 4 ms of the link
	for range 100 {
		l.put(0, packet(size, 9))
	}
	at := arrivals(l)
	if len(at) != 26 || l.counts.Tail != 74 || l.counts.Passed != 26 {
		t.Fatalf("%d packets arrived: %+v", len(at), l.counts)
	}
	for i := range at {
		if want := 30*ms + time.Duration(i+1)*4*ms; at[i] != want {
			t.Errorf("packet %d arrived after %v, want %v", i, at[i], want)
		}
	}
}

func TestTheShareOfLostPacketsIsThatOfTheSpec(t *testing.T) {
	const n = 100_000
	fates := func(seed uint64) (lost uint64, first []time.Duration) {
		l := down(t, "loss=5%,hole=1s@100s", seed)
		for i := range n {
			l.put(time.Duration(i)*ms, packet(100, 9))
		}
		return l.counts.Lost, arrivals(l)[:1000]
	}
	lost, first := fates(7)
	if share := float64(lost) / n; math.Abs(share-0.05) > 0.003 {
		t.Errorf("%.4f of the packets were lost", share)
	}
	if again, same := fates(7); again != lost || same[999] != first[999] {
		t.Error("one seed had two results")
	}
	if _, other := fates(8); other[999] == first[999] {
		t.Error("two seeds had one result")
	}
}

func TestNoPacketPassesAHole(t *testing.T) {
	l := down(t, "hole=20ms@10ms", 1)
	for i := range 50 {
		l.put(time.Duration(i)*ms, packet(100, 9))
	}
	if l.counts.Lost != 20 || len(arrivals(l)) != 30 {
		t.Errorf("%+v", l.counts)
	}
}

// Jitter delays packets within its bounds and in their order; Reorder moves some behind later ones.
func TestJitterKeepsTheOrder(t *testing.T) {
	for spec, reorders := range map[string]bool{"rtt=20ms,jitter=20ms": false, "rtt=20ms,jitter=20ms,reorder=10%": true} {
		l := down(t, spec, 1)
		var sent []time.Duration
		order := map[*byte]int{}
		for i := range 1000 {
			p := packet(100, 9)
			order[&p[0]] = i
			sent = append(sent, time.Duration(i)*ms)
			l.put(sent[i], p)
		}
		before, overtaken := -1, false
		least, most := time.Hour, time.Duration(0)
		for next, ok := l.queue.Next(); ok; next, ok = l.queue.Next() {
			p, _ := l.take(next)
			i := order[&p[0]]
			least, most = min(least, next-sent[i]), max(most, next-sent[i])
			overtaken = overtaken || i < before
			before = i
		}
		if overtaken != reorders {
			t.Errorf("%s: packets were overtaken: %v", spec, overtaken)
		}
		if least < 10*ms || !reorders && most > 30*ms {
			t.Errorf("%s: delays of %v to %v", spec, least, most)
		}
	}
}

func TestBytesAreCountedByClient(t *testing.T) {
	l := down(t, "", 1)
	tcp, echo := packet(500, 7), packet(90, 7)
	tcp[9], echo[9] = 6, 1
	for _, p := range [][]byte{packet(100, 7), packet(100, 8), packet(100, 7), tcp, echo, {0x45}} {
		l.put(0, p)
	}
	arrivals(l)
	for f, want := range map[Flow]uint64{{17, 7}: 200, {17, 8}: 100, {6, 7}: 500, {}: 91} {
		if got := l.counts.Bytes[f]; got != want {
			t.Errorf("%+v: %d bytes, want %d", f, got, want)
		}
	}
	if f := flowOf(packet(100, 7), netem.Up); f != (Flow{17, 4433}) {
		t.Errorf("on the way up: %+v", f)
	}
}

func TestTheMemoryOfALaneIsBounded(t *testing.T) {
	l := down(t, "rtt=20s", 1)
	for i := range 10_000 {
		l.put(0, packet(1500, uint16(i)))
	}
	if l.bytes > maxWaiting || l.counts.Tail == 0 {
		t.Errorf("%d bytes wait: %+v", l.bytes, l.counts)
	}
	if arrivals(l); l.bytes != 0 || len(l.counts.Bytes) > maxFlows+1 {
		t.Errorf("%d bytes wait, %d flows", l.bytes, len(l.counts.Bytes))
	}
}
