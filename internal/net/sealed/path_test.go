package sealed

import (
	"testing"
	"time"
)

const ms = time.Millisecond

// walk calls tick every 10 ms from one time to another, and returns the times of the challenges and
// that of the end of the active state, 0 if it did not end.
func (p *path) walk(from, to time.Duration) (asks []time.Duration, ended time.Duration) {
	for now := from; now <= to; now += 10 * ms {
		ask, end := p.tick(now)
		if ask {
			asks = append(asks, now)
		}
		if end {
			ended = now
		}
	}
	return asks, ended
}

func expect(t *testing.T, what string, got []time.Duration, want ...time.Duration) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: at %v, want %v", what, got, want)
		return
	}
	for i := range got {
		if got[i] != want[i] {
			t.Errorf("%s: at %v, want %v", what, got, want)
			return
		}
	}
}

// begun returns a path that has become active at a time, with a round trip.
func begun(at, rtt time.Duration) *path {
	p := new(path)
	p.arrived(at, false)
	p.answer(at, at-rtt)
	return p
}

// An inactive path is probed with pauses that double, up to a limit. The server's end waits for the
// first record.
func TestProbesAreLessAndLessOften(t *testing.T) {
	for _, since := range []time.Duration{0, time.Minute} {
		p := &path{since: since}
		asks, _ := p.walk(since+ms, since+40*time.Second)
		for i := range asks {
			asks[i] -= since
		}
		expect(t, "the client probes", asks, ms, 101*ms, 301*ms, 701*ms, 1201*ms, 1701*ms, 2201*ms, 2761*ms, 3461*ms, 4331*ms, 5421*ms, 6781*ms, 8481*ms, 10611*ms, 13271*ms, 16591*ms, 20741*ms, 25931*ms, 32421*ms)
	}
	server := &path{patient: true}
	if asks, _ := server.walk(ms, time.Minute); asks != nil {
		t.Errorf("the server probes at %v before it has got a record", asks)
	}
	server.arrived(time.Minute, false)
	if !server.hinted(time.Minute) || server.hinted(time.Minute+firstProbe-1) {
		t.Error("the first record does not cause one challenge")
	}
	server.arrived(time.Minute+firstProbe-1, false)
	asks, _ := server.walk(time.Minute, time.Minute+time.Second)
	expect(t, "the server probes", asks, time.Minute+100*ms, time.Minute+300*ms, time.Minute+700*ms)
}

// The first answer makes a path active, and round trips are smoothed.
func TestAnAnswerMakesAPathActive(t *testing.T) {
	p := new(path)
	if !p.answer(time.Second, time.Second-40*ms) || !p.active || p.rtt != 40*ms {
		t.Errorf("after an answer it is %+v", p)
	}
	if p.answer(2*time.Second, 2*time.Second-80*ms) || p.rtt != 50*ms {
		t.Errorf("after a second answer the round trip is %v, want 50 ms", p.rtt)
	}
	if p.answer(3*time.Second, 3*time.Second-10*ms); p.rtt != 40*ms {
		t.Errorf("after a fast answer the round trip is %v, want 40 ms", p.rtt)
	}
	p.end(4 * time.Second)
	if p.answer(5*time.Second, 5*time.Second-200*ms); p.rtt != 200*ms {
		t.Errorf("after a time over QUIC the round trip is %v, want 200 ms", p.rtt)
	}
	if p = new(path); !p.answer(time.Second, time.Second) || p.rtt != 1 {
		t.Error("a round trip without a time counts as not measured")
	}
}

// A path in use is challenged every 2 s, by both ends, and one without traffic never.
func TestAPathInUseIsChallenged(t *testing.T) {
	for what, use := range map[string]func(p *path){
		"sent":    func(p *path) { p.sent(time.Second); p.arrived(time.Second, false) },
		"arrived": func(p *path) { p.arrived(time.Second, true) },
	} {
		p := begun(time.Second, 40*ms)
		use(p)
		asks, _ := p.walk(time.Second, 3100*ms)
		expect(t, "after a datagram was "+what+" it is challenged", asks, 3*time.Second, 3080*ms)
		p.answer(3100*ms, 3060*ms)
		if asks, ended := p.walk(3100*ms, time.Minute); asks != nil || ended != 0 {
			t.Errorf("without traffic it is challenged at %v, and has ended at %v", asks, ended)
		}
	}
	p := begun(time.Second, 40*ms)
	p.arrived(2*time.Second, false)
	if asks, ended := p.walk(time.Second, time.Minute); asks != nil || ended != 0 {
		t.Errorf("after a record without a datagram it is challenged at %v, and has ended at %v", asks, ended)
	}
}

// A peer from which no record arrives after a datagram is challenged after 100 ms and a round trip,
// and the path ends 400 ms after the first unanswered challenge.
func TestSilenceEndsAPath(t *testing.T) {
	p := begun(time.Second, 40*ms)
	p.sent(1010 * ms)
	p.sent(1100 * ms) // The first one counts.
	if p.silent(1149*ms) || !p.silent(1150*ms) {
		t.Error("the silence does not begin after 140 ms")
	}
	asks, ended := p.walk(time.Second, 2*time.Second)
	expect(t, "it is challenged", asks, 1150*ms, 1230*ms, 1310*ms, 1390*ms, 1470*ms, 1650*ms, 1850*ms)
	if ended != 1550*ms || p.active {
		t.Errorf("it has ended at %v, want 1.55 s", ended)
	}
	p = begun(time.Second, 40*ms)
	p.sent(1010 * ms)
	p.arrived(1140*ms, false)
	if asks, _ := p.walk(time.Second, 2*time.Second); asks != nil {
		t.Errorf("after an arrival it is challenged at %v", asks)
	}
	p.sent(2 * time.Second)
	p.walk(2*time.Second, 2300*ms)
	if p.answer(2310*ms, 2140*ms); p.asked != 0 {
		t.Error("after an answer a challenge counts as unanswered")
	}
}

// On a slow path answers have two round trips, and the challenges of that time are few enough to
// recognise the answer to each.
func TestASlowPathHasMoreTime(t *testing.T) {
	const rtt = time.Second
	p := begun(rtt, rtt)
	p.arrived(rtt, true)
	asks, ended := p.walk(rtt, 6*time.Second)
	if ended != 5*time.Second {
		t.Errorf("it has ended at %v, want 5 s", ended)
	}
	n := 0
	for _, at := range asks {
		if at < ended {
			n++
		}
	}
	expect(t, "it is challenged", asks[:n], 3*time.Second, 3250*ms, 3500*ms, 3750*ms, 4*time.Second, 4340*ms, 4790*ms)
	if n > keptTokens || n < keptTokens/2 {
		t.Errorf("it was challenged %d times in two round trips, want at most %d", n, keptTokens)
	}
}

// Paths that end soon are probed less and less often; one that was active for 10 s at once.
func TestProbesAreFrequentAgainAfterASettledPath(t *testing.T) {
	p := new(path)
	now := time.Second
	for _, want := range []time.Duration{100 * ms, 200 * ms, 400 * ms, 800 * ms, 1600 * ms, 3200 * ms, 6400 * ms, 8 * time.Second, 8 * time.Second} {
		p.answer(now, now-40*ms)
		now += 9 * time.Second
		p.end(now)
		if p.next != now+want || p.active {
			t.Errorf("it is probed after %v, want %v", p.next-now, want)
		}
	}
	p.answer(now, now-40*ms)
	p.sent(now)
	now += 10 * time.Second
	p.end(now)
	if p.next != now+firstProbe || p.waits != 0 || p.asked != 0 {
		t.Errorf("after 10 s it is probed after %v, want %v", p.next-now, firstProbe)
	}
}

// A peer that has returned to QUIC gets its datagrams there, unless it may have sent before it knew
// of the path.
func TestAPathEndsWithThePeers(t *testing.T) {
	for rtt, grace := range map[time.Duration]time.Duration{40 * ms: patience, time.Second: 2 * time.Second} {
		p := begun(time.Second, rtt)
		if p.peerReturned(time.Second + grace - 1) {
			t.Errorf("with a round trip of %v it ends before %v", rtt, grace)
		}
		if !p.peerReturned(time.Second+grace) || p.active || p.next != time.Second+grace+firstProbe {
			t.Errorf("with a round trip of %v it does not end after %v", rtt, grace)
		}
		if p.peerReturned(time.Minute) {
			t.Error("an ended path ends")
		}
	}
}

// A record that arrives on an inactive path causes a challenge, at most one in 100 ms, whatever the
// pause between probes is.
func TestArrivalsCauseProbes(t *testing.T) {
	p := begun(time.Second, 40*ms)
	p.pause = maxProbe
	p.end(2 * time.Second)
	next := p.next
	var asks []time.Duration
	for now := 2 * time.Second; now < 2300*ms; now += 20 * ms {
		if p.arrived(now, true); p.hinted(now) {
			asks = append(asks, now)
		}
	}
	expect(t, "it is challenged", asks, 2*time.Second, 2100*ms, 2200*ms)
	if p.next != next || p.pause != maxProbe {
		t.Error("arrivals change the pause between probes")
	}
	if p.answer(2310*ms, 2200*ms); p.hinted(time.Minute) {
		t.Error("an active path is probed")
	}
	for _, c := range []struct{ now, rtt, pause time.Duration }{
		{100 * ms, 40 * ms, firstProbe}, {100 * ms, 800 * ms, 200 * ms}, {4 * time.Second, 800 * ms, 500 * ms}, {time.Minute, 800 * ms, time.Second},
		{time.Minute, 8 * time.Second, 2 * time.Second},
	} {
		p := &path{rtt: c.rtt, again: c.now - c.pause + 1}
		if p.hinted(c.now) || !p.hinted(c.now+1) {
			t.Errorf("%+v: a challenge is sent before the pause is over, or not after it", c)
		}
	}
	p = new(path)
	p.tick(time.Second)
	if p.hinted(time.Second + firstProbe - 1) {
		t.Error("a path is probed twice at once")
	}
}
