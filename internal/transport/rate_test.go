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
		limited   bool
	}{
		"an empty link":         {delivered: 50},
		"jitter":                {queue: rateNoise + rateFull, delivered: 50},
		"a queue":               {queue: rateNoise + rateFull + 1, delivered: 50, limited: true},
		"10 % of loss":          {delivered: 45, lost: 5},
		"more loss":             {delivered: 43, lost: 7, limited: true},
		"too few for a measure": {delivered: 20, lost: 29},
	} {
		var r rate
		now := time.Second
		if r.round(&now, c.queue, c.delivered, c.lost); r.limit > 0 {
			t.Errorf("%s: one round is enough", name)
		}
		r.round(&now, c.queue, c.delivered, c.lost)
		if limited := r.limit > 0; limited != c.limited {
			t.Errorf("%s: limit %d", name, r.limit)
		}
		if c.limited && (r.limit > 1000*5*c.delivered*2/3 || r.budget(now, period) > 0) {
			t.Errorf("%s: begins at %d B/s with %d tokens", name, r.limit, r.tokens)
		}
	}
}

// Snapshots that cannot be smaller are not limited: the window omits some of them if need be.
func TestRateIsUnlimitedForSmallSnapshots(t *testing.T) {
	for bytes, limited := range map[int]bool{leastSnapshot + packetHead: false, leastSnapshot + packetHead + 1: true} {
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
	if r.limit < leastRate || r.limit > leastRate*4/3 {
		t.Errorf("%d B/s with a queue of a second, want about %d", r.limit, leastRate)
	}
	rounds := 0
	for ; r.limit > 0 && rounds < 100; rounds++ {
		r.round(&now, 0, 1, 0)
	}
	if rounds < 5 || rounds == 100 {
		t.Errorf("unlimited after %d rounds without a queue", rounds)
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
	for r.budget(now, period) < leastSnapshot {
		now += period
	}
	if d := now - time.Minute; d < 50*ms || d > 80*ms {
		t.Errorf("the next snapshot after %v", d)
	}
	r.limit = leastRate
	if b := r.budget(now+time.Hour, period); b != leastSnapshot {
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
	o.now++
	o.closed(true)
	o.sent(1, true)
	o.closed(false)
	o.ack(first)
	o.send(1)
}
