package client

import (
	"testing"
	"time"

	"github.com/netloop/netloop/internal/loop"
)

var lead60 = leadOf(60)

// leadOf returns the timeline of a room with a fixed step in each tick.
func leadOf(hz uint64) loop.Timeline { return loop.Timeline{Rate: loop.Hz(hz), Fixed: loop.Hz(hz)} }

// Needs cover the last second, and are known only if recent.
func TestNeedsAreOfTheLastSecond(t *testing.T) {
	var x leadSamples
	for i := range 200 {
		now := time.Duration(i) * 10 * ms
		x.add(now, time.Duration(i)*ms)
		if x.known(now) != (i >= minLeadSamples-1) {
			t.Fatalf("after %d it is known: %v", i+1, x.known(now))
		}
	}
	// The last 101 are 99 to 199 ms.
	if x.len() != 101 || x.p5 != 104*ms || x.p50 != 149*ms || x.p95 != 194*ms || x.required() != 284*ms {
		t.Errorf("of %d: %v, %v, %v, wanted %v", x.len(), x.p5, x.p50, x.p95, x.required())
	}
	if !x.known(2990*ms) || x.known(2991*ms) {
		t.Error("it is known for other than a second")
	}
	if x.shift(-50 * ms); x.p5 != 54*ms || x.p50 != 99*ms || x.p95 != 144*ms {
		t.Errorf("after a shift by 50 ms: %v, %v, %v", x.p5, x.p50, x.p95)
	}
	if x.add(1991*ms, 0); x.len() != 101 || x.p5 != 54*ms || x.p95 != 144*ms {
		t.Errorf("and of %d: %v, %v", x.len(), x.p5, x.p95)
	}
}

// A status of the server counts only if it belongs to the input's epoch, once, in the order of the
// steps, and within limits.
func TestTheServersStatusIsChecked(t *testing.T) {
	l := lead{on: true, steps: make([]madeStep, 128), maxWait: maxInterval}
	make := func(step uint64) {
		l.made(time.Duration(step)*10*ms, step)
		l.flush(time.Duration(step)*10*ms+ms, step)
	}
	for step := uint64(1); step <= 40; step++ {
		make(step)
	}
	want := time.Duration(0) // They have left 11 ms after the beginning, and every 10 ms then.
	for i := range 40 {
		want += (max(10*ms, time.Duration(11-i)*ms) - want) / 8
	}
	if l.interval != want {
		t.Errorf("inputs leave every %v, want %v", l.interval, want)
	}
	l.made(410*ms, 41)
	l.made(420*ms, 42)
	l.flush(421*ms, 42)
	for i, say := range []struct {
		step  uint64
		early time.Duration
		taken bool
	}{
		{3, ms, true}, {3, ms, false}, {2, ms, false}, {5, 11 * time.Second, false}, {6, -11 * time.Second, false},
		{7, -9 * time.Second, true}, {1000, ms, false}, {41, ms, false}, {42, ms, true},
	} {
		was := l.samples.n
		if l.reported(500*ms, lead60, say.step, say.early); (l.samples.n > was) != say.taken {
			t.Errorf("%d: step %d, %v early: taken %v", i, say.step, say.early, !say.taken)
		}
	}
	// Step 42 left with 41, which was made at 410 ms.
	if got, want := l.samples.all[2].ahead, lead60.GameTime(42)-ms-410*ms; got != want {
		t.Errorf("step 42 needed %v, want %v", got, want)
	}
	make(43)
	l.epochMoved(100 * ms)
	if l.reported(500*ms, lead60, 43, ms); l.samples.n != 3 {
		t.Error("what was made before the epoch moved counts")
	}
	l.epochMoved(-50 * ms)
	if make(44); l.hold != 100*ms {
		t.Errorf("it stands still for %v", l.hold)
	}
	if l.reported(500*ms, lead60, 44, ms); l.samples.n != 4 {
		t.Error("what was made after the epoch moved does not count")
	}
	if back := l.epochMoved(maxHold); back || l.setBacks != 0 {
		t.Error("it is set back by 100 ms")
	}
	if back := l.epochMoved(maxHold + 1); !back || l.setBacks != 1 || l.hold != 0 {
		t.Errorf("it is set back: %v, owes %v", back, l.hold)
	}
}

// The lead is far off if it is much too long, or too short for half of the inputs, but not if it
// exactly suffices for these; after a while it jumps.
func TestTheLeadIsFarOffForHalfOfTheInputs(t *testing.T) {
	for _, c := range []struct {
		off, ahead time.Duration
		known      bool
		far        bool
	}{
		{0, 50 * ms, true, false}, {0, 49 * ms, true, true}, {time.Second, 50 * ms, true, false},
		{-maxOff + 1, 50 * ms, true, false}, {-maxOff, 50 * ms, true, true},
		{0, 0, false, false}, {maxOff - 1, 0, false, false}, {maxOff, 0, false, true}, {-maxOff, 0, false, true},
	} {
		l := lead{on: true, measured: true}
		for n := 0; c.known && n < minLeadSamples; n++ {
			l.samples.add(0, 50*ms)
		}
		for passed := 500 * ms; passed <= maxOffFor; passed += 500 * ms {
			if jumps := l.jumpsBy(c.off, c.ahead, 500*ms); jumps != (c.far && passed == maxOffFor) {
				t.Errorf("%+v: after %v it jumps: %v", c, passed, jumps)
			}
		}
		if l.offFor != 0 || l.jumps != map[bool]uint64{true: 1}[c.far] {
			t.Errorf("%+v: %d jumps, far for %v", c, l.jumps, l.offFor)
		}
	}
}

// Without measurements the steps keep their distance to the server's present, also when that
// changes: gradually, and by a jump for a large and lasting change.
func TestWithoutMeasuresTheLeadIsKept(t *testing.T) {
	for _, off := range []time.Duration{-300 * ms, -249 * ms, 0, 249 * ms, 300 * ms} {
		var l lead
		at := l.begin(0, time.Second, 40*ms, leadOf(50))
		if at != time.Second+80*ms {
			t.Fatalf("it begins at %v", at)
		}
		jumped := time.Duration(-1)
		for now := 10 * ms; now <= 3*time.Second; now += 10 * ms {
			was := at
			at = l.advance(now, at, time.Second+now+off, 20*ms)
			if at < was {
				t.Fatalf("off by %v: it goes back from %v to %v", off, was, at)
			}
			if l.jumps > 0 && jumped < 0 {
				jumped = now
			}
		}
		left := time.Second + 3*time.Second + off + 80*ms - at
		want := off - max(min(off, 30*ms), -30*ms)
		if off.Abs() > maxOff {
			want = 0
		}
		if (left-want).Abs() > ms || off.Abs() > maxOff != (jumped == maxOffFor) {
			t.Errorf("off by %v: after 3 s by %v, want %v; it jumped at %v", off, left, want, jumped)
		}
	}
}

// ledFor runs frames of 10 ms with inputs that each need a lead of need, and returns the end and
// the time of the steps.
func ledFor(l *lead, now, at, game, need, span time.Duration) (end, to time.Duration) {
	for end = now + span; now < end; {
		now += 10 * ms
		l.samples.add(now, need)
		at = l.advance(now, at, game+now, 10*ms)
	}
	return now, at
}

// The first measure of another connection is taken at once, and is no jump.
func TestAnotherConnectionIsMeasuredAtOnce(t *testing.T) {
	var l lead
	now, at := ledFor(&l, 0, l.begin(0, time.Second, 40*ms, leadOf(100)), time.Second, time.Second+20*ms, 3*time.Second)
	was := at - now
	for _, need := range []time.Duration{time.Second + 120*ms, time.Second + 30*ms} {
		l.restart()
		now, at = ledFor(&l, now, at, time.Second, need, 300*ms)
		if ahead := at - now - l.hold; (ahead-was-(need-time.Second-20*ms)).Abs() > 5*ms || l.jumps > 0 {
			t.Errorf("an input needs %v, and 300 ms later steps are ahead by %v, with %d jumps; at first it was %v", need, ahead, l.jumps, was)
		}
	}
}

// After a short stall of the server the measures of before count: they move with its time.
func TestMeasuresFollowTheServersTime(t *testing.T) {
	var l lead
	now, at := ledFor(&l, 0, l.begin(0, time.Second, 40*ms, leadOf(100)), time.Second, time.Second+20*ms, 3*time.Second)
	keep := l.target
	for _, by := range []time.Duration{maxHold, maxHold + 50*ms} {
		l.epochMoved(by)
		l.advance(now+10*ms, at-by, time.Second-by+now+10*ms, 10*ms)
		if (l.target - keep).Abs() > ms {
			t.Errorf("the lead was %v, and is %v after a stall of %v", keep, l.target, by)
		}
		now, at = ledFor(&l, now+10*ms, at-by, time.Second-by, time.Second-by+20*ms, 2*time.Second)
		l.epochMoved(-by)
		now, at = ledFor(&l, now, at, time.Second, time.Second+20*ms, 2*time.Second)
	}
}

// A flush without a new input does not change the time of the oldest input sent with the newest.
func TestAFlushWithoutANewInputIsNone(t *testing.T) {
	l := lead{on: true, steps: make([]madeStep, 128), maxWait: maxInterval}
	for step := uint64(1); step <= 3; step++ {
		l.made(time.Duration(step)*10*ms, step)
	}
	l.flush(31*ms, 3)
	l.flush(45*ms, 3)
	if s := l.slot(3); s.first != 10*ms || l.flushed != 31*ms || l.sent != 3 {
		t.Errorf("the oldest was made at %v, and left at %v", s.first, l.flushed)
	}
}

// A program that hangs between the making and the sending of an input delays it more than the path
// does: such inputs are not measured, in contrast to those that waited for a frame or a flush.
func TestAnInputThatWaitedForAFrozenProgramIsNotMeasured(t *testing.T) {
	for _, hz := range []uint64{1, 5, 60} {
		line := leadOf(hz)
		var l lead
		l.begin(0, 0, 40*ms, line)
		now, step := time.Second, uint64(0)
		send := func(wait time.Duration) (measured bool) {
			step += 2
			l.made(now, step-1)
			l.made(now+wait, step)
			now += wait
			l.flush(now, step)
			was := l.samples.n
			l.reported(now, line, step, ms)
			return l.samples.n > was
		}
		send(0)
		for wait, want := range map[time.Duration]bool{
			0: true, line.Fixed.Period() / 2: true, line.Fixed.Period() + maxInterval: true, line.Fixed.Period() + maxInterval + ms: false, 7 * time.Second: false,
		} {
			if measured := send(wait); measured != want {
				t.Errorf("at %d Hz an input that waited for %v is measured: %v", hz, wait, measured)
			}
		}
	}
}

// A sleeping room drops idle inputs. While the steps are held, the newest input is sent again and
// again, and the room takes a late copy: it is not measured as if the path had taken that long.
func TestALateRepeatOfAnInputIsNotMeasured(t *testing.T) {
	line := leadOf(5)
	for late, want := range map[time.Duration]uint64{100 * ms: 1, 300 * ms: 1, 400 * ms: 0, time.Second: 0} {
		var l lead
		l.begin(0, 0, 40*ms, line)
		l.made(100*ms, 1)
		for wait := time.Duration(0); wait <= late; wait += 100 * ms {
			l.flush(100*ms+wait, 1)
		}
		if l.reported(200*ms+late, line, 1, ms); l.samples.n != want {
			t.Errorf("a copy that is sent %v after the input is measured %d times", late, l.samples.n)
		}
	}
}

// The lead counts inputs in a row that came too late. An input in time, also at the last moment,
// resets the count.
func TestStarvingInputsAreCountedInARow(t *testing.T) {
	l := lead{on: true, measured: true, steps: make([]madeStep, 128), maxWait: maxInterval}
	for i, say := range []struct {
		early time.Duration
		late  int
	}{{-ms, 1}, {-ms, 2}, {ms, 0}, {-1, 1}, {0, 0}, {-ms, 1}, {-ms, 2}, {-ms, 3}, {-ms, 4}} {
		step := uint64(i + 1)
		l.made(time.Duration(step)*10*ms, step)
		l.flush(time.Duration(step)*10*ms, step)
		if l.reported(500*ms, lead60, step, say.early); l.late != say.late {
			t.Errorf("input %d is %v early: %d in a row are late, want %d", step, say.early, l.late, say.late)
		}
	}
}

// Measurements of two epochs may add up to a lead below 0. The steps do not fall behind the present
// of the server for it: late inputs would not be sent any more, and so not be measured.
func TestTheLeadIsNeverBelowZero(t *testing.T) {
	const ms = time.Millisecond
	var l lead
	at := l.begin(0, 0, 100*ms, leadOf(20))
	for n := range 40 {
		now := time.Duration(n) * 50 * ms
		l.samples.add(now, -time.Second)
		if at = l.advance(now, at, now, 50*ms); at < now {
			t.Fatalf("at %v the steps are at %v", now, at)
		}
	}
}

// The lead ends where the server's window does. Beyond it the server would drop each input without
// measuring it, so no measurement would correct the lead.
func TestTheLeadIsWithinTheServersWindow(t *testing.T) {
	slow := loop.Timeline{Rate: loop.Hz(1), Fixed: loop.Hz(120)}
	for line, most := range map[loop.Timeline]time.Duration{leadOf(20): 64*50*ms - 50*ms, slow: 256*slow.Fixed.Period() - time.Second} {
		var l lead
		at := l.begin(0, 0, 10*time.Second, line)
		for n := range 400 {
			now := time.Duration(n) * 10 * ms
			l.samples.add(now, 5*time.Second)
			if at = l.advance(now, at, now, line.Fixed.Period()); at-now > most {
				t.Fatalf("%v: at %v the steps are at %v", line, now, at)
			}
		}
	}
}

// A server that sends less often than minLeadSamples times a second is measured too, so that a lead
// from a bad moment is corrected.
func TestTheLeadIsMeasuredAtFewReports(t *testing.T) {
	var l lead
	line := leadOf(5)
	at := l.begin(0, 0, 40*ms, line)
	for n := range 400 {
		now := time.Duration(n) * 50 * ms
		if n < 20 {
			l.samples.add(now, time.Second) // Late inputs, many at once.
		} else if n%4 == 0 {
			l.samples.add(now, 20*ms)
		}
		at = l.advance(now, at, now, line.Fixed.Period())
		if lead := at - now; n == 20 && lead < 800*ms || n > 250 && lead > 600*ms {
			t.Fatalf("at %v the lead is %v", now, lead)
		}
	}
}

// The report of an input may arrive before the epoch by which the server measured it. A long stall
// discards the measurements, because the epoch would move that one again; the lead remains.
func TestAReportMayOvertakeItsEpoch(t *testing.T) {
	var l lead
	now, at := ledFor(&l, 0, l.begin(0, time.Second, 40*ms, leadOf(100)), time.Second, time.Second+20*ms, 3*time.Second)
	keep := l.target
	for range 10 {
		l.samples.add(now, 20*ms) // It contains the stall of a second.
	}
	l.epochMoved(time.Second)
	ledFor(&l, now, at-time.Second, 0, 20*ms, time.Second)
	if (l.target - keep).Abs() > ms {
		t.Errorf("the lead was %v, and is %v after a stall", keep, l.target)
	}
}

// A target that contains such a report does not outlast the epoch: a room that then sleeps would
// never correct it. A target below the estimate remains.
func TestAnEpochEndsTheTargetOfAnEarlierReport(t *testing.T) {
	line := leadOf(10)
	var l lead
	l.begin(0, time.Second, 40*ms, line)
	first := l.target
	for _, target := range []time.Duration{first + time.Second, first - 100*ms} {
		l.aim(target)
		l.epochMoved(time.Second)
		l.setBack(7, 40*ms, line)
		if want := min(target, first); l.target != want || l.backTo != 7 {
			t.Errorf("a target of %v is then %v, want %v", target, l.target, want)
		}
	}
}

// After the client's clock has jumped, and the estimate of the server's clock after it, samples of
// before do not count, and the steps are as far ahead of the server as at first.
func TestTheLeadIsMeasuredAnewAfterAJumpOfTheClock(t *testing.T) {
	const jump = 1500 * ms
	line := leadOf(10)
	var l lead
	at := l.begin(0, time.Second, 40*ms, line)
	first := l.target
	now, at := ledFor(&l, 0, at, time.Second, time.Second+20*ms, 4*time.Second)
	now += jump
	at = l.advance(now, at, time.Second+now, 100*ms)
	game := time.Second - jump // from now on
	l.clockMoved(40*ms, line)
	for range 400 { // without samples, as in a room that sleeps
		now += 10 * ms
		at = l.advance(now, at, game+now, 100*ms)
	}
	if ahead := at - now - game; (ahead - first).Abs() > maxOff {
		t.Errorf("after a jump of the clock steps are ahead by %v, at first by %v", ahead, first)
	}
}
