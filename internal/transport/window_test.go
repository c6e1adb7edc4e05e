package transport

import (
	"testing"
	"time"
)

const ms = time.Millisecond

// owner is a room that uses a window at 50 Hz, in virtual time: a send period of 20 ms
// keeps the arithmetic of the tests readable.
type owner struct {
	t *testing.T
	*Window
	now  time.Duration
	next uint64
}

const period = 20 * ms

func newOwner(t *testing.T) *owner {
	return &owner{t: t, Window: NewWindow(period), now: time.Second, next: 1}
}

// send sends a snapshot of so many packets, which must be allowed, and returns its ids.
func (o *owner) send(packets uint64) Range {
	o.t.Helper()
	if send, _ := o.Open(o.now); !send {
		o.t.Fatalf("at %v the window is closed: %d of %d in flight", o.now, o.InFlight(), o.Size())
	}
	return o.sent(packets, false)
}

func (o *owner) sent(packets uint64, probe bool) Range {
	r := Range{o.next, o.next + packets - 1}
	o.next += packets
	o.Sent(o.now, r.First, r.Last, 1000, probe)
	return r
}

// ack acknowledges packets. These tests are about the number of snapshots, so the byte rate
// remains unlimited.
func (o *owner) ack(r ...Range) {
	o.Acked(o.now, r)
	o.rate = rate{}
}

// closed checks that no snapshot may be sent, or only a probe.
func (o *owner) closed(wantProbe bool) {
	o.t.Helper()
	if send, probe := o.Open(o.now); send || probe != wantProbe {
		o.t.Fatalf("at %v: send %v, probe %v, want only probe %v", o.now, send, probe, wantProbe)
	}
}

func (o *owner) size(want int) {
	o.t.Helper()
	if o.Size() != want {
		o.t.Fatalf("at %v: W is %d, want %d", o.now, o.Size(), want)
	}
}

func (o *owner) inFlight(want int) {
	o.t.Helper()
	if o.InFlight() != want {
		o.t.Fatalf("at %v: %d in flight, want %d", o.now, o.InFlight(), want)
	}
}

// fill sends single-packet snapshots until the window is closed.
func (o *owner) fill() (sent []Range) {
	for {
		if send, _ := o.Open(o.now); !send {
			return sent
		}
		sent = append(sent, o.sent(1, false))
	}
}

func TestWindowStartsAtFour(t *testing.T) {
	o := newOwner(t)
	for range 4 {
		o.send(3)
	}
	o.closed(false)
}

func TestOpenChangesNothing(t *testing.T) {
	o := newOwner(t)
	o.Arrived(o.now)
	o.fill()
	o.now += 600 * ms
	for range 3 {
		o.closed(true)
	}
	o.Arrived(o.now)
	for range 3 {
		if send, _ := o.Open(o.now); !send {
			t.Fatal("the admission was used up by asking")
		}
	}
}

func TestSnapshotLeavesWhenAllItsPacketsAreAcknowledged(t *testing.T) {
	o := newOwner(t)
	a := o.send(3)
	o.now += 40 * ms
	o.ack(Range{a.First, a.First})
	o.inFlight(1)
	o.ack(Range{a.Last, a.Last}, Range{a.First, a.First})
	o.inFlight(1)
	o.ack(Range{a.First + 1, a.First + 1})
	o.inFlight(0)
}

func TestSnapshotLeavesWhenALaterPacketIsAcknowledged(t *testing.T) {
	o := newOwner(t)
	o.send(2)
	o.send(2)
	c := o.send(2)
	d := o.send(1)
	o.now += 40 * ms
	o.ack(Range{c.First, c.First}) // One of its two packets.
	o.inFlight(2)
	o.ack(d)
	o.inFlight(0)
}

// Acknowledgements of unsent packets free no snapshot.
func TestAnAckOfUnsentPacketsFreesNoSnapshot(t *testing.T) {
	o := newOwner(t)
	o.send(2)
	b := o.send(2)
	o.now += 40 * ms
	o.ack(Range{b.Last, b.Last + 1000}) // One of its two packets.
	o.inFlight(1)
	o.ack(Range{b.Last + 1, b.Last + 1000})
	o.inFlight(1)
	o.ack(b)
	o.inFlight(0)
}

func TestAnAckOfAProbeFreesEarlierSnapshots(t *testing.T) {
	o := newOwner(t)
	o.fill()
	o.now += 500 * ms
	o.closed(true)
	p := o.sent(1, true)
	o.inFlight(4)
	o.now += 60 * ms
	o.ack(p)
	o.inFlight(0)
	if o.SRTT() != 0 || o.least != 0 {
		t.Fatal("a probe was sampled", o.SRTT(), o.least)
	}
}

func TestSampleEndsAtTheFirstAck(t *testing.T) {
	o := newOwner(t)
	a := o.send(3)
	o.now += 40 * ms
	o.ack(Range{a.First + 2, a.First + 2})
	o.now += 200 * ms
	o.ack(a)
	if o.SRTT() != 40*ms || o.least != 40*ms {
		t.Fatal("sampled", o.SRTT(), o.least)
	}
}

func TestOvertakenSnapshotIsNotSampled(t *testing.T) {
	o := newOwner(t)
	a := o.send(1)
	o.now += 100 * ms
	b := o.send(1)
	o.now += 40 * ms
	o.ack(b)
	o.ack(a)
	if o.least != 40*ms || o.SRTT() != 40*ms {
		t.Fatal("sampled", o.SRTT(), o.least)
	}
}

// TestUpdateBelowTheLimit: W = min(⌈1.5·N⌉+1, ⌈(R+D)÷period⌉+2).
func TestUpdateBelowTheLimit(t *testing.T) {
	o := newOwner(t)
	r := o.fill() // n = 1 to 4
	for i, want := range []int{3, 4, 6, 7} {
		o.now = time.Second + 100*ms
		o.ack(r[i])
		o.size(want)
	}
	// R+D is 150 ms: at most 8+2 snapshots, however many are in use.
	for range 10 {
		r = o.fill()
		o.now += 100 * ms
		o.ack(Range{r[0].First, r[len(r)-1].Last})
	}
	o.size(10)
}

// TestPeriodMayChange: a room that sends half as often needs half as many in flight.
func TestPeriodMayChange(t *testing.T) {
	o := newOwner(t)
	for _, c := range []struct {
		period time.Duration
		want   int // ⌈150 ms÷period⌉+2
	}{{period, 10}, {2 * period, 6}, {period, 10}} {
		o.SetPeriod(c.period)
		for range 10 {
			o.ackAll(o.fill(), 101*ms)
		}
		o.size(c.want)
	}
}

// TestUpdateAboveTheLimit: W = ⌈N·(R+D)÷S⌉.
func TestUpdateAboveTheLimit(t *testing.T) {
	o := newOwner(t)
	o.ackAll(o.fill(), 100*ms) // R = 100 ms, R+D = 150 ms, N = 4
	o.size(7)
	r := o.fill()
	o.now += 101 * ms // The samples before are forgotten.
	o.ack(Range{r[0].First, r[5].Last})
	o.size(10) // N = 6
	o.fill()
	o.now += 299 * ms
	o.ack(r[6])
	o.size(3) // One sample of 400 ms, n = 7: 7·150÷400 = 2.6
}

// ackAll acknowledges snapshots so much later.
func (o *owner) ackAll(r []Range, after time.Duration) {
	o.now += after
	o.ack(Range{r[0].First, r[len(r)-1].Last})
}

func TestLeastSampleOfTheLast100msDecides(t *testing.T) {
	o := newOwner(t)
	o.ackAll([]Range{o.send(1)}, 60*ms) // R+D = 110 ms
	slow := o.send(1)
	o.now += 100 * ms
	fast := o.send(1)
	o.now += 100 * ms
	o.ack(slow, fast) // 200 and 100 ms at once: S = 100 ms, N = 2.
	o.size(4)
	late := o.send(1)
	o.now += 200 * ms
	o.ack(late) // S = 200 ms, N = 1.
	o.size(1)
}

// overload makes the link answer every snapshot after so long, for a while, and returns
// when the window began to measure.
func (o *owner) overload(roundTrip, atMost time.Duration) time.Duration {
	o.t.Helper()
	type due struct {
		r  Range
		at time.Duration
	}
	var out []due
	for end := o.now + atMost; o.now < end; o.now += period {
		for len(out) > 0 && out[0].at <= o.now {
			o.ack(out[0].r)
			out = out[1:]
		}
		if o.measuring {
			return o.now
		}
		if send, _ := o.Open(o.now); send {
			out = append(out, due{o.sent(1, false), o.now + roundTrip})
		}
	}
	o.t.Fatal("the window never measured")
	return 0
}

// drain acknowledges all snapshots in flight, then answers the lone one.
func (o *owner) drain(lone time.Duration) {
	o.t.Helper()
	o.size(1)
	if o.InFlight() > 0 {
		o.ack(Range{o.next - 1, o.next - 1})
	}
	o.inFlight(0)
	r := o.send(1)
	o.closed(false)
	if n := o.Messages(o.now); n != 0 {
		o.t.Errorf("%d B of messages beside the lone snapshot", n)
	}
	o.now += lone
	o.ack(r)
	if o.measuring {
		o.t.Fatal("still measuring after the lone sample")
	}
}

func TestLongerRouteIsMeasuredAndBelieved(t *testing.T) {
	o := newOwner(t)
	o.ackAll(o.fill(), 40*ms) // R+D = 90 ms
	start := o.now
	began := o.overload(160*ms, 5*time.Second)
	if d := began - start; d < 500*ms || d > 900*ms {
		t.Fatal("measured after", d)
	}
	o.drain(160 * ms)
	if o.least != 160*ms {
		t.Fatal("R is", o.least)
	}
	start = o.now
	// 0.4 s to the first sample, 0.5 s, and to the next
	if d := o.overload(400*ms, 5*time.Second) - start; d > 1300*ms {
		t.Fatal("H did not start again at 0.5 s:", d)
	}
}

// A route that was confirmed twice and then becomes longer is accepted, and from then on measured
// as often as a new one.
func TestLongerRouteStartsTheHoldAnew(t *testing.T) {
	o := newOwner(t)
	o.ackAll(o.fill(), 40*ms)
	for range 2 {
		o.overload(200*ms, 20*time.Second)
		o.drain(60 * ms)
	}
	if o.hold != 4*windowHold {
		t.Fatal("H is", o.hold)
	}
	o.overload(300*ms, 20*time.Second)
	o.drain(300 * ms)
	start := o.now
	if d := o.overload(600*ms, 20*time.Second) - start; d > 600*ms+windowHold+300*ms {
		t.Fatal("measured again after", d)
	}
}

// A measurement resets the number in use: one snapshot sent after it uses one.
func TestAMeasurementResetsTheNumberInUse(t *testing.T) {
	o := newOwner(t)
	o.ackAll(o.fill(), 40*ms)
	o.overload(200*ms, 5*time.Second)
	o.drain(40 * ms)
	o.ackAll([]Range{o.send(1)}, 30*ms) // Within the 100 ms of a sample.
	o.size(3)                           // ⌈1.5·1⌉+1
}

// At 250 Hz each poll of the last 100 ms is an entry of its own; at 1 000 Hz some share one, and
// the least and the largest of all are still used.
func TestManyPollsShareAnEntry(t *testing.T) {
	for _, c := range []struct {
		period time.Duration
		polls  int
	}{{4 * ms, 26}, {ms, windowPolls}} {
		o := newOwner(t)
		o.SetPeriod(c.period)
		var out []Range
		for i := range 400 {
			if o.now += c.period; len(out) > 2 {
				o.ack(out[0])
				out = out[1:]
			}
			if i == 200 { // one that is fast
				o.ack(Range{out[0].First, o.next - 1})
				out = nil
			}
			out = append(out, o.send(1))
			if i > 150 && o.pollCount != c.polls && i < 200 || o.pollCount > windowPolls {
				t.Fatalf("%v: %d polls after %d", c.period, o.pollCount, i)
			}
		}
		if want := c.period; o.least != want {
			t.Errorf("R is %v, want %v", o.least, want)
		}
	}
}

func TestConfirmedRouteIsMeasuredEverMoreSeldom(t *testing.T) {
	o := newOwner(t)
	o.ackAll(o.fill(), 40*ms)
	for _, hold := range []time.Duration{500 * ms, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 8 * time.Second} {
		start := o.now
		began := o.overload(200*ms, 20*time.Second)
		if d := began - start; d < hold || d > hold+500*ms {
			t.Fatalf("H should be %v, measured after %v", hold, d)
		}
		before := o.restore
		o.drain(60 * ms)
		o.size(before)
		if o.least != 60*ms {
			t.Fatal("R is", o.least)
		}
	}
}

func TestSamplesAreIgnoredWhileMeasuring(t *testing.T) {
	o := newOwner(t)
	o.ackAll(o.fill(), 40*ms)
	o.overload(200*ms, 5*time.Second)
	for o.InFlight() > 0 {
		o.now += period
		f := o.ring[o.head]
		o.ack(Range{f.first, f.last})
		if f.n > 1 {
			o.size(1)
		}
	}
}

func TestLostLoneSnapshotIsReplaced(t *testing.T) {
	o := newOwner(t)
	o.ackAll(o.fill(), 40*ms)
	o.overload(200*ms, 5*time.Second)
	o.ack(Range{o.next - 1, o.next - 1})
	o.send(1) // Lost.
	o.now += 250*ms - 1
	o.closed(false)
	o.now++
	r := o.send(1)
	o.now += 160 * ms
	o.ack(r)
	if o.measuring {
		t.Fatal("still measuring after the second lone sample")
	}
}

// A window without a period would admit all snapshots at once.
// TestWindowStaysOpenForAcksThatComeSeldom: a client may acknowledge every third snapshot, at
// intervals of at most 50 ms, and one of those datagrams may be lost, without a blocked snapshot.
func TestWindowStaysOpenForAcksThatComeSeldom(t *testing.T) {
	for _, hz := range []int{20, 30, 40, 60, 64, 100, 128, 240} {
		period := time.Second / time.Duration(hz)
		every := max(min(int(51*ms/period), 3), 1)
		for oneWay := time.Duration(0); oneWay <= 150*ms; oneWay += 3 * ms {
			w := NewWindow(period)
			under := map[int]uint64{} // highest packet, by the tick of its poll
			trip := int((2*oneWay + period) / period)
			closed := 0 // the last tick, while it grows from four
			for tick := 1; tick < 20*hz; tick++ {
				now := time.Duration(tick) * period
				if id, ok := under[tick]; ok {
					w.Arrived(now)
					w.Acked(now, []Range{{1, id}})
				}
				if send, _ := w.Open(now); !send && tick > 8*hz {
					t.Fatalf("%d Hz, %v each way: the window of %d is closed at tick %d", hz, oneWay, w.Size(), tick)
				} else if !send {
					closed = tick
					continue
				}
				id := max(w.next, 1)
				w.Sent(now, id, id, 1000, false)
				seldom, lost := tick > closed+2*hz, tick > 7*hz && tick/every%8 == 0
				if !lost && (!seldom || tick%every == 0) {
					under[tick+trip] = id
				}
			}
		}
	}
}

func TestAWindowNeedsAPeriod(t *testing.T) {
	for name, try := range map[string]func(){
		"NewWindow": func() { NewWindow(0) },
		"SetPeriod": func() { NewWindow(time.Second).SetPeriod(0) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s takes a period of 0", name)
				}
			}()
			try()
		}()
	}
}

func TestCeilDivRoundsUp(t *testing.T) {
	for _, c := range []struct{ a, b, want time.Duration }{{0, 3, 0}, {1, 3, 1}, {3, 3, 1}, {4, 3, 2}, {5, 3, 2}, {6, 3, 2}, {6, 1, 6}} {
		if got := ceilDiv(c.a, c.b); got != int(c.want) {
			t.Errorf("%d÷%d rounds up to %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

// A packet is lost if a later one was acknowledged. The loss is known after 50 packets.
func TestWindowKnowsItsLoss(t *testing.T) {
	w := NewWindow(period)
	now := time.Second
	if _, ok := w.LastAck(); ok {
		t.Error("an acknowledgement before the first snapshot")
	}
	for id := range uint64(200) {
		w.Sent(now, id+1, id+1, 1000, false)
		acked := now + 30*ms
		if id%5 != 0 {
			w.Acked(acked, []Range{{id + 1, id + 1}})
			if at, ok := w.LastAck(); !ok || at != acked {
				t.Fatalf("packet %d was acknowledged at %v, not %v", id+1, acked, at)
			}
		}
		if loss, ok := w.Loss(); ok && id < 49 || !ok && id > 55 || ok && (loss < 180 || loss > 220) {
			t.Fatalf("after %d packets: %d/1000, %v", id+1, loss, ok)
		}
		now += 40 * ms
	}
}
