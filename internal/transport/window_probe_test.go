package transport

import (
	"math/rand/v2"
	"testing"
	"time"
)

func TestProbesKeepTheirInterval(t *testing.T) {
	for _, c := range []struct{ srtt, want time.Duration }{{0, 500 * ms}, {10 * ms, 100 * ms}, {120 * ms, 240 * ms}, {400 * ms, 500 * ms}} {
		o := newOwner(t)
		if c.srtt > 0 {
			o.ackAll([]Range{o.send(1)}, c.srtt)
		}
		o.fill()
		for range 3 {
			o.now += c.want - 1
			o.closed(false)
			o.now++
			o.closed(true)
			o.sent(1, true)
			o.closed(false)
		}
	}
}

func TestSlowAcksPostponeTheProbe(t *testing.T) {
	o := newOwner(t)
	o.ackAll([]Range{o.send(1)}, 100*ms)
	r := o.fill()
	o.now += 190 * ms
	o.ack(r[0])
	o.closed(false)
	o.now += 190 * ms
	o.closed(false)
	o.now += 40 * ms // srtt is 111 ms by now.
	o.closed(true)
}

func TestRepeatedAcksAreNoNews(t *testing.T) {
	o := newOwner(t)
	old := o.send(1)
	o.ackAll([]Range{old}, 60*ms)
	o.Arrived(o.now)
	o.fill()
	for range 11 { // Datagrams of a client without arrivals.
		o.now += 10 * ms
		o.Arrived(o.now)
		o.ack(old)
		o.closed(false)
	}
	o.now += 10 * ms // 2·srtt after the last snapshot
	o.Arrived(o.now)
	o.ack(old)
	o.closed(true)
}

func TestSilenceAdmitsOneSnapshot(t *testing.T) {
	o := newOwner(t)
	o.Arrived(o.now)
	o.fill()
	o.now += 299 * ms
	o.Arrived(o.now)
	o.closed(false)
	o.now += 300 * ms
	o.Arrived(o.now)
	o.Arrived(o.now + 5*ms) // More datagrams admit no more snapshots.
	o.send(2)
	o.inFlight(5)
	o.closed(false)
}

func TestTimeBeforeTheFirstArrivalIsNoSilence(t *testing.T) {
	o := newOwner(t)
	o.fill()
	o.Arrived(o.now)
	o.closed(false)
}

func TestSilenceWhileOpenAdmitsNothing(t *testing.T) {
	o := newOwner(t)
	o.ackAll(o.fill(), 40*ms) // W is 7
	o.Arrived(o.now)
	sent := []Range{o.send(1), o.send(1), o.send(1)}
	o.now += time.Second
	o.Arrived(o.now)
	// After a second: W shrinks to 1 and the window closes, without a snapshot that would use the
	// admission.
	o.ack(sent[0])
	o.size(1)
	o.inFlight(2)
	o.closed(false)
}

func TestHoleTowardsTheClientAdmitsOnlyProbes(t *testing.T) {
	o := newOwner(t)
	o.ackAll([]Range{o.send(1)}, 60*ms)
	o.Arrived(o.now)
	o.fill()
	probes, start := 0, o.now
	for ; o.now < start+5*time.Second; o.now += period {
		if (o.now-start)%(100*ms) == 0 {
			o.Arrived(o.now)
		}
		send, probe := o.Open(o.now)
		if send {
			t.Fatal("a full snapshot into the hole at", o.now-start)
		}
		if probe {
			o.sent(1, true)
			probes++
		}
	}
	if probes < 30 || probes > 42 { // Every 120 ms.
		t.Fatal(probes, "probes in 5 s")
	}
}

func TestAckFromBeforeTheHoleDoesNotOpenIt(t *testing.T) {
	o := newOwner(t)
	a, b := o.send(1), o.send(1)
	o.ackAll([]Range{a}, 60*ms)
	o.fill()
	was := o.InFlight()
	o.now += 50 * ms
	o.ack(a, b) // It was under way when the hole began.
	if o.InFlight() < was-1 {
		t.Fatal("it freed", was-o.InFlight())
	}
}

func TestHostileAcksMeanNothing(t *testing.T) {
	o := newOwner(t)
	o.send(3)
	o.now += 40 * ms
	o.ack(Range{1 << 63, ^uint64(0)}, Range{3, 2}, Range{4, 3}, Range{o.next, o.next + 5}, Range{0, 0})
	o.inFlight(1)
	if o.SRTT() != 0 {
		t.Fatal("sampled")
	}
	o.ack(Range{0, ^uint64(0)}) // It may acknowledge all sent packets, and no unsent ones.
	o.inFlight(0)
	a := o.send(1)
	o.send(1)
	o.now += 40 * ms
	// Without an overflow: it does not acknowledge the next packet.
	o.ack(Range{a.First, 1 << 40})
	o.inFlight(0)
	a = o.send(1)
	o.send(1)
	o.send(1)
	o.now += 40 * ms
	o.ack(a)
	o.inFlight(2)
}

func TestSilentClientsWindowStaysBounded(t *testing.T) {
	o := newOwner(t)
	for range 3 * MaxWindow {
		o.now += time.Second
		o.Arrived(o.now)
		o.sent(1, false)
	}
	o.inFlight(MaxWindow)
}

// TestWindowStaysInBounds throws random calls at a window.
func TestWindowStaysInBounds(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 1))
		o := newOwner(t)
		for range 5000 {
			o.now += time.Duration(rng.Int64N(int64(60 * ms)))
			switch rng.IntN(4) {
			case 0:
				o.Arrived(o.now)
			case 1:
				if send, probe := o.Open(o.now); send || probe {
					o.sent(1+rng.Uint64N(MaxStatePackets), probe)
				}
			default:
				first := o.next - min(o.next, rng.Uint64N(40))
				o.ack(Range{first, first + rng.Uint64N(8)})
			}
			if o.Size() < 1 || o.Size() > MaxWindow || o.InFlight() < 0 || o.InFlight() > MaxWindow {
				t.Fatalf("seed %d: W %d, in flight %d", seed, o.Size(), o.InFlight())
			}
			if o.SRTT() < 0 || o.least < 0 || o.pollCount < 0 || o.pollCount > windowPolls {
				t.Fatalf("seed %d: srtt %v, R %v, %d polls", seed, o.SRTT(), o.least, o.pollCount)
			}
		}
	}
}

// A window that grows behaves like one with its full memory from the start.
func TestAWindowThatGrowsForgetsNothing(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 2))
		w, roomy := NewWindow(period), NewWindow(period)
		roomy.ring = make([]flight, MaxWindow)
		now, next := time.Duration(0), uint64(1)
		for range 1000 {
			now += time.Duration(rng.Int64N(int64(20 * ms)))
			if rng.IntN(5) == 0 {
				from := next - min(next, 1+rng.Uint64N(30))
				acked := []Range{{from, from + rng.Uint64N(3)}}
				w.Acked(now, acked)
				roomy.Acked(now, acked)
			} else {
				w.Sent(now, next, next+1, 1000, false)
				roomy.Sent(now, next, next+1, 1000, false)
				next += 2
			}
			if w.InFlight() != roomy.InFlight() || w.Size() != roomy.Size() || w.SRTT() != roomy.SRTT() {
				t.Fatalf("seed %d: %d in flight, W %d, srtt %v; with room %d, %d, %v", seed,
					w.InFlight(), w.Size(), w.SRTT(), roomy.InFlight(), roomy.Size(), roomy.SRTT())
			}
		}
	}
}

func TestWindowRefusesMisuse(t *testing.T) {
	for name, f := range map[string]func(w *Window){
		"no period":           func(*Window) { NewWindow(0) },
		"ids going backwards": func(w *Window) { w.Sent(0, 4, 4, 1000, false) },
		"an empty snapshot":   func(w *Window) { w.Sent(0, 7, 6, 1000, false) },
		"a huge snapshot":     func(w *Window) { w.Sent(0, 7, 71, 1000, false) },
	} {
		t.Run(name, func(t *testing.T) {
			w := NewWindow(period)
			w.Sent(0, 5, 5, 1000, false)
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			f(w)
		})
	}
}

func TestWindowDoesNotAllocate(t *testing.T) {
	o := newOwner(t)
	ranges := make([]Range, 1)
	if n := testing.AllocsPerRun(1000, func() {
		o.now += period
		o.Arrived(o.now)
		ranges[0] = Range{max(o.next, 8) - 8, max(o.next, 4) - 4}
		o.Acked(o.now, ranges)
		if send, probe := o.Open(o.now); send || probe {
			o.sent(2, probe)
		}
	}); n != 0 {
		t.Fatal(n, "allocations")
	}
}
