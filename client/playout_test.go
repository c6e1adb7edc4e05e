package client

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/netloop/netloop/internal/netvar/state"
)

const tick60 = time.Second / 60

// player is a playout in a world where the server's game time is the client's clock, but for
// behind.
type player struct {
	playout
	now, behind time.Duration
	waited      bool      // for a snapshot, in the frame before
	coming      []arrival // in the order of their arrival
}

func newPlayer() *player {
	return &player{playout: playout{period: tick60, tick: tick60}}
}

// sends lets a snapshot of a tick arrive after a while.
func (p *player) sends(tick uint64, takes time.Duration) {
	game := time.Duration(tick) * tick60
	p.coming = append(p.coming, arrival{tick: tick, game: game, at: game + p.behind + takes})
	slices.SortStableFunc(p.coming, func(a, b arrival) int { return cmp.Compare(a.at, b.at) })
}

// frames runs frames of a length until a time, and tells of each how far the moment has moved.
func (p *player) frames(length, until time.Duration, each func(moved time.Duration)) {
	for p.now+length <= until {
		p.now += length
		for len(p.coming) > 0 && p.coming[0].at <= p.now {
			s := p.coming[0]
			// An older snapshot is stale.
			if n := len(p.snapshots); n == 0 || s.tick > p.snapshots[n-1].tick {
				p.add(s)
			}
			p.coming = p.coming[1:]
		}
		before := p.at
		p.frame(p.now, p.now-p.behind, length)
		if each != nil {
			each(p.at - before)
		}
	}
}

// The delay is the shortest, apart from its margin, with which the next snapshot is missing for a
// two-hundredth of the time: equal to the result of a plain model that tries each tenth of a
// millisecond.
func TestTheDelayIsTheLeastThatLetsNearlyAllFramesHaveNeighbours(t *testing.T) {
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 5))
		jitter, loss, every := time.Duration(1+r.IntN(30))*ms, float64(r.IntN(8))/100, 1+uint64(r.IntN(3))
		var m delayMeter
		var arrived []arrival
		last := uint64(0)
		for tick := every; tick < 500; tick += every {
			if r.Float64() < loss {
				continue
			}
			s := arrival{tick: tick, game: time.Duration(tick) * tick60}
			s.at = s.game + 40*ms + time.Duration(r.Int64N(int64(jitter)))
			if n := len(arrived); n > 0 && s.at < arrived[n-1].at {
				continue
			}
			if last > 0 {
				s.gap = time.Duration(tick-last) * tick60
				m.add(s)
			}
			arrived, last = append(arrived, s), tick
		}
		now := arrived[len(arrived)-1].at
		without := func(delay time.Duration) float64 {
			n, all, next := 0, 0, 0
			for at := arrived[0].game; at < arrived[len(arrived)-1].game; at += 100 * time.Microsecond {
				for arrived[next].game <= at {
					next++
				}
				if all++; arrived[next].at > at+delay {
					n++
				}
			}
			return float64(n) / float64(all)
		}
		d := m.delay(now, now, time.Duration(every)*tick60) - delaySpare
		if at, below := without(d), without(d-500*time.Microsecond); at > 0.0055 || below < 0.0045 {
			t.Errorf("seed %d: a delay of %v leaves %.2f %% without a neighbour, and half a millisecond less %.2f %%", seed, d, at*100, below*100)
		}
	}
}

// Snapshots older than ten seconds are ignored, and an outage, which is no jitter, does not count.
func TestTheDelayFollowsTheLinkButNoOutage(t *testing.T) {
	p := newPlayer()
	takes := func(from, to uint64, d time.Duration) {
		for tick := from; tick < to; tick++ {
			p.sends(tick, d)
		}
		p.frames(tick60, time.Duration(to)*tick60+p.behind, nil)
	}
	want := func(d time.Duration) {
		t.Helper()
		if d += tick60 + delaySpare; (p.delay - d).Abs() > ms {
			t.Errorf("the delay is %v, want %v", p.delay, d)
		}
	}
	takes(1, 60, 50*ms)
	want(50 * ms)
	takes(60, 120, 80*ms)
	want(80 * ms)
	takes(120, 1000, 50*ms)
	want(50 * ms)
	takes(1010, 1100, 50*ms) // After ten lost in a row.
	want(50 * ms)
	for tick := uint64(1103); tick < 1200; tick += 10 { // After three, again and again.
		takes(tick, tick+7, 50*ms)
	}
	few := 5 * ms // of each of these may be without a neighbour
	want(50*ms + 3*tick60 - few)
	p.behind += 300 * ms // The server was stopped.
	p.meter.shift(1204, 300*ms)
	takes(1204, 1210, 50*ms)
	want(50*ms + 3*tick60 - few)
	if p.jumps != 0 {
		t.Errorf("%d jumps", p.jumps)
	}
	p.frames(tick60, p.now+100*ms, nil)
	p.restart()
	takes(1300, 1310, 120*ms)
	want(120 * ms)
}

// However the delay changes, the moment runs between 5 % slower and 2 % faster than time while
// there are snapshots, and never back.
func TestTheMomentIsLedSlowlyAndNeverBack(t *testing.T) {
	for _, length := range []time.Duration{time.Second / 24, tick60, time.Second / 144, time.Second / 240} {
		p := newPlayer()
		r := rand.New(rand.NewPCG(3, 4))
		takes := 50 * ms
		for tick := uint64(1); tick < 3000; tick++ {
			if tick%300 == 0 {
				takes = time.Duration(20+r.IntN(130)) * ms
			}
			if r.IntN(20) > 0 {
				p.sends(tick, takes)
			}
		}
		starved := uint64(0)
		p.frames(length, 49*time.Second, func(moved time.Duration) {
			if moved < 0 {
				t.Fatalf("at %v the moment goes back by %v", p.now, -moved)
			}
			calm := p.starved == starved && p.wanted == p.at && p.drawn > 1
			if speed := float64(moved) / float64(length); calm && starved > 0 && (speed < 0.949 || speed > 1.021) && !p.waited {
				t.Fatalf("at %v the moment runs at %.3f", p.now, speed)
			}
			p.waited = p.starved != starved
			starved = p.starved
		})
		if p.jumps != 0 || p.drawn < uint64(40*time.Second/length) {
			t.Errorf("%d jumps in %d frames", p.jumps, p.drawn)
		}
	}
}

// At the end of the snapshots the moment waits for more; then it jumps to its target. If only the
// server was stopped, it continues from its place, once its time is reached.
func TestWhereSnapshotsEndTheMomentWaits(t *testing.T) {
	for _, stall := range []bool{false, true} {
		p := newPlayer()
		for tick := uint64(1); tick <= 300; tick++ {
			p.sends(tick, 50*ms)
		}
		late := uint64(0) // frames that begin when the newest snapshot has been reached
		p.frames(tick60, 5*time.Second+300*ms, func(time.Duration) {
			if p.at == 300*tick60 {
				late++
			}
		})
		if want := 300 * tick60; p.at != want || late < 10 || p.starved+1 < late || p.starved > late {
			t.Fatalf("the moment is %v, want it to wait at %v; %d of %d frames starve", p.at, want, p.starved, late)
		}
		from, waits := uint64(301), 0
		if stall {
			p.behind = 400 * ms
			p.meter.shift(301, p.behind)
		} else {
			from = 330
		}
		for tick := from; tick <= 600; tick++ {
			p.sends(tick, 50*ms)
		}
		p.frames(tick60, 8*time.Second, func(moved time.Duration) {
			if moved == 0 {
				waits++
			}
		})
		if delay := p.now - p.behind - p.at; (delay-p.delay).Abs() > ms || p.jumps != 0 {
			t.Errorf("stall %v: %v behind, want %v; %d jumps", stall, delay, p.delay, p.jumps)
		}
		if want := 17; waits > want {
			t.Errorf("stall %v: it waits for %d frames, want %d at most", stall, waits, want)
		}
	}
}

// Far behind it jumps, and that is counted; a client that hung is where it would have been.
func TestAMomentThatIsFarBehindJumps(t *testing.T) {
	p := newPlayer()
	for tick := uint64(1); tick <= 2000; tick++ {
		p.sends(tick, 50*ms)
	}
	p.frames(tick60, 3*time.Second, nil)
	p.frames(2*time.Second, 5*time.Second, nil)
	if p.jumps != 0 || (p.now-p.at-p.delay).Abs() > 20*ms {
		t.Errorf("after a frame of two seconds %d jumps, %v behind", p.jumps, p.now-p.at)
	}
	p.behind = -200 * ms
	p.frames(tick60, 6*time.Second, nil)
	if p.jumps != 0 {
		t.Errorf("%d jumps for 200 ms", p.jumps)
	}
	p.behind = -600 * ms
	p.frames(tick60, p.now+tick60, nil)
	if p.jumps != 1 {
		t.Errorf("%d jumps for 400 ms more", p.jumps)
	}
}

// The moment is between two snapshots; one earlier snapshot is kept, and their number is limited.
func TestTheMomentIsBetweenTwoSnapshots(t *testing.T) {
	p := newPlayer()
	if p.frames(tick60, 100*ms, nil); p.drawn != 0 || p.moment != (state.Moment{}) || p.oldest() != 0 {
		t.Error("without a snapshot something is drawn")
	}
	for tick := uint64(10); tick <= 400; tick += 2 {
		p.sends(tick, 20*ms)
	}
	p.frames(tick60, 10*tick60+40*ms, nil)
	if p.moment != (state.Moment{From: 10, To: 10}) || p.at != 10*tick60 {
		t.Errorf("with one snapshot the moment is %+v, %v", p.moment, p.at)
	}
	p.frames(5*ms, 4*time.Second, func(time.Duration) {
		m := p.moment
		if at := time.Duration(m.From)*tick60 + time.Duration(m.Alpha*float64(time.Duration(m.To-m.From)*tick60)); (at-p.at).Abs() > 10 || m.Alpha < 0 || m.Alpha >= 1 {
			t.Fatalf("at %v the moment is %+v", p.at, m)
		}
		if m.To-m.From > 2 || len(p.snapshots) > 6 || p.oldest() > m.From || p.oldest()+2 < m.From {
			t.Fatalf("between %d and %d, %d snapshots from %d on", m.From, m.To, len(p.snapshots), p.oldest())
		}
	})
	// A client that hung takes them all in one frame.
	for tick := uint64(1000); tick < 1400; tick++ {
		p.sends(tick, 0)
	}
	if p.frames(30*time.Second, 50*time.Second, nil); len(p.snapshots) > maxSnapshots || p.moment.From != 1399 {
		t.Errorf("%d snapshots wait, the moment is %+v", len(p.snapshots), p.moment)
	}
}

// Extrapolation beyond the newest snapshot follows the line of the last two, up to its limit.
func TestBeyondTheNewestSnapshotIsABound(t *testing.T) {
	p := newPlayer()
	p.ahead = 100 * ms
	p.sends(1, 0)
	p.frames(tick60, tick60+20*ms, nil)
	if got := p.extrapolated(time.Second); got != (state.Moment{From: 1, To: 1}) {
		t.Errorf("beyond the only snapshot the moment is %+v", got)
	}
	p = newPlayer()
	p.ahead = 100 * ms
	p.sends(1, 0)
	p.sends(3, 0)
	p.frames(time.Second/240, 3*tick60+80*ms, nil)
	want := state.Moment{From: 1, To: 3, Alpha: 1 + float64(p.at-3*tick60)/float64(2*tick60)}
	if got := p.extrapolated(time.Second); p.at <= 3*tick60 || got != want || p.moment != (state.Moment{From: 3, To: 3}) {
		t.Errorf("%v after the newest the moment is %+v, want %+v; for others %+v", p.at-3*tick60, got, want, p.moment)
	}
	p.frames(time.Second/240, time.Second, nil)
	if p.at != 3*tick60+100*ms || p.extrapolations == 0 || p.extrapolations > p.starved {
		t.Errorf("it goes on until %v, %d frames of %d", p.at, p.extrapolations, p.starved)
	}
	if got := p.extrapolated(tick60); got.Alpha != 1.5 {
		t.Errorf("bound by half of the way the moment is %+v", got)
	}
	if got := p.extrapolated(0); got != p.moment {
		t.Errorf("who does not go on sees %+v", got)
	}
}

// Frames have the lengths given by the game, though they are computed early or late; the clock
// counts when both differ for long.
func TestFramesAreAsLongAsTheGameSays(t *testing.T) {
	var f frameClock
	r := rand.New(rand.NewPCG(1, 1))
	now := time.Second
	f.step(now, tick60)
	for i := 1; i < 600; i++ {
		at := now + time.Duration(i)*tick60 + time.Duration(r.IntN(6)-3)*ms
		passed, late := f.step(at, tick60)
		if (passed-tick60).Abs() > tick60/100 && i > 1 && (passed-tick60).Abs() > 110*time.Microsecond || late.Abs() > 7*ms {
			t.Fatalf("frame %d took %v, and is %v late", i, passed, late)
		}
	}
	for name, length := range map[string]time.Duration{"none": 0, "too short": tick60 / 2, "too long": 2 * tick60} {
		f, now, all := frameClock{}, time.Second, time.Duration(0)
		f.step(now, length)
		for range 600 {
			now += tick60
			passed, late := f.step(now, length)
			if all += passed; late.Abs() > maxUneven || passed < 0 || length == 0 && passed != tick60 {
				t.Fatalf("with lengths that are %s a frame takes %v, and is %v late", name, passed, late)
			}
		}
		if (all - 600*tick60).Abs() > maxUneven {
			t.Errorf("with lengths that are %s 10 s take %v", name, all)
		}
	}
	f, now = frameClock{}, time.Second
	f.step(now, 8*ms)
	for range 600 { // Short frames: the clock counts when they are ahead by more than one.
		now += 5 * ms
		if passed, _ := f.step(now, 8*ms); passed < 0 {
			t.Fatalf("time goes back by %v", -passed)
		}
	}
}

// Snapshots older than ten seconds are ignored, a very late snapshot counts only for the time that
// it was missing, and their number is limited.
func TestTheDelayLooksAtTheRightTime(t *testing.T) {
	var m delayMeter
	now := 100 * time.Second
	add := func(ago, late, gap time.Duration) {
		m.add(arrival{tick: uint64(m.count), game: now - ago - late, at: now - ago, gap: gap})
	}
	want := func(d time.Duration) {
		t.Helper()
		if got := m.delay(now, now, tick60) - delaySpare; (got - d).Abs() > 3*ms {
			t.Errorf("the delay is %v, want %v", got, d)
		}
	}
	for range 50 {
		add(10*time.Second, 200*ms, tick60)
	}
	for i := range 300 {
		add(time.Duration(i)*tick60, 20*ms, tick60)
	}
	want(20*ms + tick60)
	add(0, 5*time.Second, tick60)
	want(20*ms + tick60)
	for range 9 {
		add(0, 5*time.Second, tick60)
	}
	want(5*time.Second + tick60)
	m.shift(350, -5*time.Second) // All but the last ten.
	if last := m.list[350]; last.at != now || m.list[349].at >= now-4*time.Second {
		t.Errorf("shifted to %v and %v", m.list[349].at, last.at)
	}
	for tick, most := range map[time.Duration]time.Duration{tick60: 500 * ms, ms: 64 * ms} {
		p := newPlayer()
		p.tick = tick
		p.sends(1, time.Second)
		if p.frames(tick60, 2*time.Second, nil); p.delay != most {
			t.Errorf("with ticks of %v the delay is %v, want %v", tick, p.delay, most)
		}
	}
}

// Another world has another time, independent of the last drawn moment: that is no jump.
func TestAnotherWorldHasItsOwnTime(t *testing.T) {
	p := newPlayer()
	for tick := uint64(1); tick <= 100; tick++ {
		p.sends(tick, 50*ms)
	}
	p.frames(tick60, 2*time.Second, nil)
	p.reset()
	if p.moment != (state.Moment{}) || p.at != 0 || p.oldest() != 0 || p.extrapolations != 0 {
		t.Errorf("of the old world %+v is left, at %v", p.moment, p.at)
	}
	p.behind = -time.Hour
	for tick := uint64(60 * 3603); tick <= 60*3604; tick++ {
		p.sends(tick, 50*ms)
	}
	p.frames(tick60, 4*time.Second, nil)
	if p.jumps != 0 || p.at < time.Hour {
		t.Errorf("in the new one it is %v, after %d jumps", p.at, p.jumps)
	}
}

// Without changes for a while, a missing next snapshot does not count, since a sleeping room sends
// none; after a recent change, each frame without one starves.
func TestWithoutChangesNoFrameStarves(t *testing.T) {
	for _, c := range []struct {
		still   uint64 // snapshots without a change, at the end
		starves bool
	}{{0, true}, {30, true}, {46, false}, {70, false}} {
		p := newPlayer()
		for tick := uint64(1); tick <= 120; tick++ {
			p.add(arrival{tick: tick, game: time.Duration(tick) * tick60, at: time.Duration(tick) * tick60, unchanged: tick > 120-c.still})
			p.frame(time.Duration(tick)*tick60, time.Duration(tick)*tick60, tick60)
		}
		before := p.starved
		for tick := uint64(121); tick <= 240; tick++ {
			p.frame(time.Duration(tick)*tick60, time.Duration(tick)*tick60, tick60)
		}
		if starves := p.starved-before > 100; starves != c.starves || !starves && p.starved != before {
			t.Errorf("after %d snapshots without a change %d frames starve", c.still, p.starved-before)
		}
	}
}
