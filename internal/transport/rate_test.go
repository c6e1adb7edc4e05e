package transport

import (
	"testing"
	"time"
)

// round plays one round of 200 ms with a queue, and with lost and delivered packets of 1000 B.
func (r *rate) round(now *time.Duration, queue time.Duration, delivered, lost int) {
	r.begin(*now)
	for i := range delivered + lost {
		f := flight{bytes: 1000}
		if i < delivered {
			f.acked = 1
		}
		r.done(&f)
		r.spent += f.bytes
	}
	r.sample(100*ms + queue)
	*now += 200 * ms
	r.endRound(*now, 200*ms, 100*ms)
}

func TestRateIsUnlimitedUntilTheLinkIsFull(t *testing.T) {
	for name, c := range map[string]struct {
		queue     time.Duration
		delivered int
		lost      int
		begins    int // the first limit; 0: none
	}{
		"an empty link":         {delivered: 50},
		"jitter":                {queue: rateNoise + rateFull, delivered: 50},
		"a queue":               {queue: rateNoise + rateFull + 1, delivered: 50, begins: 120_875},
		"10 % of loss":          {delivered: 45, lost: 5},
		"more loss":             {delivered: 43, lost: 7, begins: 108_140},
		"too few for a measure": {delivered: 20, lost: 29},
	} {
		var r rate
		now := time.Second
		if r.round(&now, c.queue, c.delivered, c.lost); r.limit > 0 {
			t.Errorf("%s: one round is enough", name)
		}
		r.round(&now, c.queue, c.delivered, c.lost)
		if r.limit != c.begins {
			t.Errorf("%s: limit %d, want %d", name, r.limit, c.begins)
		}
		if c.begins > 0 && r.budget(now, period) > 0 {
			t.Errorf("%s: begins with %d tokens", name, r.tokens)
		}
	}
}

// Snapshots that cannot be smaller are not limited: the window omits some of them if need be.
func TestRateIsUnlimitedForSmallSnapshots(t *testing.T) {
	for bytes, limited := range map[int]bool{310: false, 311: true} {
		r, now := rate{}, time.Second
		for range 3 {
			r.begin(now)
			for range 50 {
				r.done(&flight{bytes: bytes, acked: 1})
			}
			r.sample(time.Second)
			now += time.Second
			r.endRound(now, time.Second, 100*ms)
		}
		if (r.limit > 0) != limited {
			t.Errorf("snapshots of %d B have the limit %d", bytes, r.limit)
		}
	}
}

// The bytes per second after a round, to the byte: all clients of a server follow one rule.
func TestAdjustmentsOfARate(t *testing.T) {
	for _, c := range []struct {
		limit             int
		span, srtt, queue time.Duration
		excess            int
		want              int
	}{
		{limit: 100_000, span: 200 * ms, srtt: 100 * ms, want: 106_000},
		{limit: 100_000, span: 200 * ms, srtt: 200 * ms, want: 101_500},
		{limit: 100_000, span: 200 * ms, srtt: 200 * ms, queue: 50 * ms, want: 86_500},
		{limit: 100_000, span: 200 * ms, srtt: 200 * ms, queue: time.Second, want: 51_501},
		{limit: 100_000, span: 200 * ms, srtt: 200 * ms, excess: 100, want: 96_500},
		{limit: 100_000, span: 200 * ms, srtt: 200 * ms, queue: 50 * ms, excess: 100, want: 81_500},
		{limit: 4000, span: 200 * ms, srtt: 100 * ms, want: 5000}, // A quarter is added at most.
		{limit: 100_000, span: 200 * ms, want: 125_000},
		{limit: 2500, span: 200 * ms, srtt: 200 * ms, queue: time.Second, want: 2500},
	} {
		r := rate{limit: c.limit}
		if r.adjust(c.span, c.srtt, c.queue, c.excess); r.limit != c.want {
			t.Errorf("%+v: %d B/s", c, r.limit)
		}
	}
}

// The loss of at least 50 packets is measured, in thousandths. A loss above 100, and above 1.5
// times the usual loss, of which 200 count, is too much. The usual loss rises slowly and falls
// at once.
func TestMeasurementsOfTheLoss(t *testing.T) {
	for _, c := range []struct{ packets, lost, usual, excess, follows int }{
		{packets: 50, lost: 5, follows: 6},
		{packets: 50, lost: 25, excess: 354, follows: 31},
		{packets: 1000, lost: 500, usual: 400, excess: 100, follows: 406},
		{packets: 1000, lost: 100, usual: 300, follows: 100},
		{packets: 1000, usual: 300},
	} {
		l := loss{packets: c.packets, lost: c.lost, usual: c.usual}
		high := min(c.excess, 1)
		if got := l.excess(); got != c.excess || l != (loss{usual: c.follows, high: high, last: 1000 * c.lost / c.packets, measured: true}) {
			t.Errorf("%+v: the excess is %d, then %+v", c, got, l)
		}
	}
	few := loss{packets: 49, lost: 49}
	if n := few.excess(); n != 0 || few.packets != 49 || few.lost != 49 || few.measured {
		t.Errorf("the loss of 49 packets is measured as %d", n)
	}
}

// A rate ends after two rounds above four times the sent bytes, of 10 000 per second here, without
// a queue. Lost bytes count: they needed the rate.
func TestARateEndsAtFourTimesTheNeed(t *testing.T) {
	for _, c := range []struct {
		limit int
		lost  int
		queue time.Duration
		ends  bool
	}{{limit: 38_500}, {limit: 38_501, ends: true}, {limit: 50_000, lost: 1}, {limit: 50_000, queue: rateNoise + ms}} {
		r, now := rate{limit: c.limit}, time.Second
		if r.round(&now, c.queue, 2, c.lost); r.limit == 0 {
			t.Errorf("%+v: ends after one round", c)
		}
		if r.round(&now, c.queue, 2, c.lost); (r.limit == 0) != c.ends {
			t.Errorf("%+v: %d B/s", c, r.limit)
		}
		if r.began != now || r.snapshots != 0 {
			t.Error("no round begins after one that ends")
		}
	}
}

// Rounds that use little of the rate must follow each other: in a single one the window may have
// been closed.
func TestASingleEasyRoundEndsNoRate(t *testing.T) {
	r, now := rate{limit: 50_000}, time.Second
	for range 5 {
		r.round(&now, 0, 2, 0)
		r.round(&now, 0, 20, 0)
	}
	if r.limit == 0 {
		t.Error("unlimited")
	}
}

// Of a snapshot, and of the messages before it, the share of its acknowledged packets counts.
func TestSharesOfSnapshots(t *testing.T) {
	var r rate
	r.done(&flight{first: 7, last: 10, bytes: 1000, messages: 600, acked: 0b0101})
	r.done(&flight{first: 11, last: 11, bytes: 300, acked: 1})
	if want := (rate{snapshots: 2, sent: 1300, messaged: 600, delivered: 1100, loss: loss{packets: 5, lost: 2}}); r != want {
		t.Errorf("%+v, want %+v", r, want)
	}
}

// A round without a round trip does not end.
func TestARoundNeedsARoundTrip(t *testing.T) {
	r := rate{began: 7, limit: 100_000}
	r.done(&flight{bytes: 1000, acked: 1})
	before := r
	if r.endRound(time.Minute, 200*ms, 100*ms); r != before {
		t.Errorf("it ends: %+v", r)
	}
}

// A round begins with nothing, and a reset measures the loss anew.
func TestARoundBeginsWithNothing(t *testing.T) {
	r := rate{spent: 1, snapshots: 1, sent: 2, messaged: 2, delivered: 3, least: 4, closing: true, loss: loss{packets: 5, lost: 6}}
	if r.reset(7); r != (rate{began: 7}) {
		t.Errorf("after a reset: %+v", r)
	}
}

// Two rates that see the same queue approach each other, whatever they begin with.
func TestRatesWithOneQueueBecomeEqual(t *testing.T) {
	a, b := rate{limit: 100_000}, rate{limit: 5000}
	var now, then time.Duration
	for range 300 {
		queue := time.Duration(a.limit+b.limit) * time.Microsecond
		a.round(&now, queue, a.limit/5000, 0)
		b.round(&then, queue, b.limit/5000, 0)
	}
	if a.limit > b.limit*11/10 || b.limit > a.limit*11/10 {
		t.Errorf("%d and %d B/s", a.limit, b.limit)
	}
}

func TestUsualLossTakesNothing(t *testing.T) {
	r := rate{limit: 100_000}
	var now time.Duration
	least := r.limit
	for range 100 {
		r.round(&now, 20*ms, 80, 20)
		least = min(least, r.limit)
	}
	if least > 99_000 || r.limit < 100_000 {
		t.Errorf("with 20 %% of loss at first %d B/s, in the end %d", least, r.limit)
	}
	before := r.limit
	if r.round(&now, 20*ms, 40, 60); r.limit > before*92/100 {
		t.Errorf("a loss of 60 %% changes %d to %d B/s", before, r.limit)
	}
}

func TestRateHasALeastValueAndEnds(t *testing.T) {
	r := rate{limit: 100_000}
	var now time.Duration
	for range 50 {
		r.round(&now, time.Second, 1, 0)
	}
	if r.limit < minRate || r.limit > minRate*4/3 {
		t.Errorf("%d B/s with a queue of a second, want about %d", r.limit, minRate)
	}
	rounds := 0
	for ; r.limit > 0 && rounds < 100; rounds++ {
		r.round(&now, 0, 1, 0)
	}
	if rounds < 10 || rounds == 100 {
		t.Errorf("unlimited after %d rounds without a queue", rounds)
	}
}

// Behind a carrier with a congestion control of its own a round with a blocked snapshot takes a
// quarter, any other adds a third of the usual step, and the queue is the carrier's. This ends ten
// seconds after the carrier was busy.
func TestRateBehindACarrierThatWaits(t *testing.T) {
	w := NewWindow(period)
	now := time.Minute
	play := func(blocked, busy bool) int {
		w.rate.begin(now)
		if blocked {
			w.Blocked(now, busy)
		}
		w.rate.spent = 20_000
		w.rate.sample(150 * ms)
		now += 200 * ms
		w.rate.endRound(now, 200*ms, 100*ms)
		return w.rate.limit
	}
	w.rate.limit = 100_000
	if n := play(true, true); n != 75_000 {
		t.Errorf("%d B/s after a busy carrier", n)
	}
	if n := play(false, false); n != 75_500 {
		t.Errorf("%d B/s after a round without a wait", n)
	}
	w.resize(0)
	w.count = 1
	if n := play(true, false); n != 56_625 {
		t.Errorf("%d B/s after a closed window", n)
	}
	w.resize(2)
	if n := play(true, false); n != 57_125 {
		t.Errorf("%d B/s after a flush that only lacked tokens", n)
	}
	now += controlledSpan
	w.resize(1)
	before := w.rate.limit
	if n := play(true, false); n >= before || n < before*3/4 {
		t.Errorf("%d B/s of %d after a closed window, long after the carrier was busy", n, before)
	}
}

// Two rounds with blocked snapshots show a full link, but only behind a carrier that waits.
func TestBlockedSnapshotsBehindABusyCarrierLimitTheRate(t *testing.T) {
	for _, busy := range []bool{false, true} {
		w := NewWindow(period)
		w.count = w.size
		now := time.Minute
		for range fullRounds {
			w.rate.begin(now)
			w.Blocked(now, busy)
			for range 10 {
				w.rate.done(&flight{bytes: 1000, acked: 1})
			}
			w.rate.sample(100 * ms)
			now += 200 * ms
			w.rate.endRound(now, 200*ms, 100*ms)
		}
		if (w.rate.limit > 0) != busy {
			t.Errorf("busy carrier %v: the limit is %d B/s", busy, w.rate.limit)
		}
	}
}

// A record that cannot be divided delays the next snapshot; a pause saves tokens for two periods.
func TestTokensOfARate(t *testing.T) {
	r := rate{limit: 60_000}
	now := time.Minute
	if b := r.budget(now, period); b != 60_000*int(2*period)/int(time.Second) {
		t.Errorf("%d B after a pause", b)
	}
	r.spend(now, period, 5000)
	for r.budget(now, period) < minSnapshot {
		now += period
	}
	if d := now - time.Minute; d < 50*ms || d > 80*ms {
		t.Errorf("the next snapshot after %v", d)
	}
	r.limit = minRate
	if b := r.budget(now+time.Hour, period); b != minSnapshot {
		t.Errorf("%d B at the least rate", b)
	}
}

// A hole is no measurement of the link: afterwards the rate is the same.
func TestAHoleDoesNotChangeTheRate(t *testing.T) {
	o := newOwner(t)
	o.ackAll([]Range{o.send(1)}, 60*ms)
	for range 30 {
		o.now += period
		o.sent(2, false)
	}
	o.now += breakAfter
	last := o.sent(1, false)
	o.now += 60 * ms
	o.Acked(o.now, []Range{last})
	if o.Budget(o.now) != Unlimited || o.rate.loss.packets != 0 {
		t.Errorf("budget %d, %d packets counted", o.Budget(o.now), o.rate.loss.packets)
	}
}

// Without an acknowledgement for two seconds only probes are sent, whatever the window.
func TestCircuitBreaker(t *testing.T) {
	o := newOwner(t)
	o.ackAll([]Range{o.send(1)}, 60*ms)
	o.resize(MaxWindow)
	o.now += time.Minute // Nothing is in flight, so nothing can be acknowledged.
	first := o.send(1)
	o.now += breakAfter - 1
	if send, _ := o.Open(o.now); !send {
		t.Fatal("closed too early")
	}
	if n := o.Messages(o.now); n != Unlimited {
		t.Fatalf("%d B of messages", n)
	}
	o.now++
	o.closed(true)
	if n := o.Messages(o.now); n != 0 {
		t.Errorf("%d B of messages while only probes are sent", n)
	}
	o.sent(1, true)
	o.closed(false)
	o.ack(first)
	o.send(1)
	if n := o.Messages(o.now); n != Unlimited {
		t.Errorf("%d B of messages after an acknowledgement", n)
	}
}

// Messages take half of a limited rate at most, in packets of full size, and snapshots get less
// then. A pause saves one packet.
func TestMessagesTakeHalfOfARate(t *testing.T) {
	r := rate{limit: 40_000}
	now, sent := time.Minute, 0
	for range time.Second / period {
		now += period
		n := r.messages(now, period)
		r.say(now, period, n)
		sent += n
	}
	if sent < 20_000 || sent > 20_000+maxDatagramMessage || r.tokens < minSnapshot || r.tokens > 2000 {
		t.Errorf("%d B of messages in a second of 40 kB/s, and %d B are left", sent, r.tokens)
	}
	if n := r.messages(now+time.Hour, period); n != maxDatagramMessage {
		t.Errorf("%d B after a pause", n)
	}
	r.say(now, period, 10_000)
	if n := r.messages(now, period); n != 0 {
		t.Errorf("%d B after too many", n)
	}
}

// Messages count as a part of the link's load: beside many of them small snapshots have a limit,
// which begins at half of the rate of all arrived bytes.
func TestMessagesBesideSmallSnapshotsAreLimited(t *testing.T) {
	var r rate
	now := time.Minute
	for range fullRounds {
		r.begin(now)
		for range 10 {
			r.say(now, period, 1000)
			r.done(&flight{bytes: minSnapshot, messages: r.takePending(), acked: 1})
		}
		r.sample(150 * ms)
		now += 200 * ms
		r.endRound(now, 200*ms, 100*ms)
	}
	if all := 5 * 10 * (minSnapshot + 1000); r.limit < all/4 || r.limit > all/2+all/8 {
		t.Errorf("a limit of %d B/s, where %d arrive", r.limit, all)
	}
}
