package clock

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// path is a simulated link between two clocks, in virtual time.
type path struct {
	rnd         *rand.Rand
	offset      time.Duration // server - client at client time 0
	drift       float64       // of the server's clock
	there, back time.Duration // bare delay each way
	jitterThere time.Duration // mean of what queues add, each way
	jitterBack  time.Duration
}

func (p *path) server(local time.Duration) time.Duration {
	return local + p.offset + time.Duration(p.drift*float64(local))
}

// exchange makes a sample that begins at the client's time local.
func (p *path) exchange(s *Sync, local time.Duration) {
	queue := func(mean time.Duration) time.Duration { return time.Duration(p.rnd.ExpFloat64() * float64(mean)) }
	arrives := local + p.there + queue(p.jitterThere)
	leaves := arrives + time.Duration(p.rnd.Int64N(int64(time.Millisecond)))
	returns := leaves + p.back + queue(p.jitterBack)
	if !s.Sample(local, p.server(arrives), p.server(leaves), returns) {
		panic("a sane sample was refused")
	}
}

// run takes a sample about ten times a second for d and returns the worst error
// of the frames after settle.
func (p *path) run(s *Sync, d, settle time.Duration) (worst time.Duration) {
	next := time.Duration(0)
	for now := time.Duration(0); now < d; now += 16 * time.Millisecond {
		if now >= next {
			p.exchange(s, now+time.Duration(p.rnd.Int64N(int64(16*time.Millisecond))))
			next += 100*time.Millisecond + time.Duration(p.rnd.Int64N(int64(40*time.Millisecond)))
		}
		if e := (s.Server(now) - p.server(now)).Abs(); now >= settle {
			worst = max(worst, e)
		}
	}
	return worst
}

func TestTheEstimateConverges(t *testing.T) {
	for _, c := range []struct {
		name  string
		path  path
		worst time.Duration
	}{
		{"bare path", path{there: 30 * time.Millisecond, back: 30 * time.Millisecond}, time.Microsecond},
		{"drift", path{there: 30 * time.Millisecond, back: 30 * time.Millisecond, drift: 200e-6}, 50 * time.Microsecond},
		{"drift on a slow path", path{there: 500 * time.Millisecond, back: 500 * time.Millisecond, drift: 400e-6}, 50 * time.Microsecond},
		{"drift on loopback", path{drift: -200e-6}, 50 * time.Microsecond},
		{"drift and jitter", path{there: 30 * time.Millisecond, back: 30 * time.Millisecond, jitterThere: 5 * time.Millisecond, jitterBack: 5 * time.Millisecond, drift: -200e-6}, 1500 * time.Microsecond},
		{"jitter", path{there: 10 * time.Millisecond, back: 10 * time.Millisecond, jitterThere: 20 * time.Millisecond, jitterBack: 20 * time.Millisecond}, 3 * time.Millisecond},
		{"jitter one way", path{there: 10 * time.Millisecond, back: 10 * time.Millisecond, jitterThere: 60 * time.Millisecond, jitterBack: 0}, 7 * time.Millisecond},
		{"loopback", path{}, time.Microsecond},
		// No exchange shows the difference of the two bare paths.
		{"asymmetric path", path{there: 40 * time.Millisecond, back: 10 * time.Millisecond}, 15*time.Millisecond + time.Microsecond},
		{"asymmetric path and drift", path{there: 10 * time.Millisecond, back: 40 * time.Millisecond, drift: 200e-6}, 15*time.Millisecond + 50*time.Microsecond},
	} {
		for _, offset := range []time.Duration{0, -time.Hour, 1000 * time.Hour} {
			for seed := range uint64(20) {
				t.Run(fmt.Sprintf("%s/%v/%d", c.name, offset, seed), func(t *testing.T) {
					p := c.path
					p.rnd, p.offset = rand.New(rand.NewPCG(seed, 0)), offset
					s := new(Sync)
					if worst := p.run(s, time.Minute, 10*time.Second); worst > c.worst {
						t.Fatalf("off by %v, want at most %v", worst, c.worst)
					}
				})
			}
		}
	}
}

func TestReadyAfterTheFirstSamples(t *testing.T) {
	s := new(Sync)
	if s.Ready() || s.RTT() != 0 || s.Server(time.Second) != time.Second {
		t.Fatal("ready without a sample")
	}
	p := path{rnd: rand.New(rand.NewPCG(1, 1)), offset: time.Minute, there: 20 * time.Millisecond, back: 20 * time.Millisecond}
	for i := range SyncReady {
		if s.Ready() {
			t.Fatalf("ready after %d samples", i)
		}
		p.exchange(s, time.Duration(i)*time.Second)
	}
	if !s.Ready() || s.RTT() != 40*time.Millisecond || s.Server(time.Hour) != time.Hour+time.Minute || s.Jumps() != 0 {
		t.Fatalf("ready %v, rtt %v, server %v", s.Ready(), s.RTT(), s.Server(time.Hour))
	}
}

func TestNonsenseIsRefused(t *testing.T) {
	s := new(Sync)
	const ms = time.Millisecond
	for _, x := range [][4]time.Duration{
		{10 * ms, 0, 0, 9 * ms},              // received before it was sent
		{0, 5 * ms, 4 * ms, 9 * ms},          // answered before it arrived
		{0, 5 * ms, 15 * ms, 9 * ms},         // the answer took longer than the exchange
		{0, 0, 0, 10*time.Second + 1},        // slower than any link
		{0, -1 << 63, 1<<63 - 1, 9 * ms},     // overflows
		{-1 << 63, 0, 0, 1<<63 - 1},          // overflows
		{1<<63 - 1, 0, 0, -1 << 63},          // overflows
		{0, 1<<63 - 1, -1 << 63, 10},         // overflows
		{5 * ms, 1 << 62, 1<<62 - 1, 6 * ms}, // answered before it arrived
	} {
		if s.Sample(x[0], x[1], x[2], x[3]) {
			t.Errorf("%v was taken", x)
		}
	}
	if s.Ready() || s.RTT() != 0 {
		t.Fatal("nonsense left a trace")
	}
	for _, x := range [][4]time.Duration{{5, 7, 7, 5}, {0, 0, 0, 10 * time.Second}, {-1 << 61, -1 << 61, -1 << 61, -1 << 61}, {1 << 61, 1 << 61, 1 << 61, 1 << 61}} {
		if !new(Sync).Sample(x[0], x[1], x[2], x[3]) {
			t.Errorf("%v was refused", x)
		}
	}
}

// settled returns a correct estimate that has been read at local 0.
func settled() (*Sync, *path) {
	s, p := new(Sync), &path{rnd: rand.New(rand.NewPCG(2, 2)), offset: time.Hour, there: 20 * time.Millisecond, back: 20 * time.Millisecond}
	for range SyncWindow {
		p.exchange(s, 0)
	}
	s.Server(0)
	return s, p
}

func TestASmallErrorIsSlewedAway(t *testing.T) {
	s, p := settled()
	p.offset += 90 * time.Millisecond
	for range SyncWindow {
		p.exchange(s, 0)
	}
	if e := p.server(8900*time.Millisecond) - s.Server(8900*time.Millisecond); e != time.Millisecond {
		t.Fatalf("off by %v after 8.9 s at 1 %%, want 1 ms", e)
	}
	if e := p.server(9*time.Second) - s.Server(9*time.Second); e != 0 || s.Jumps() != 0 {
		t.Fatalf("off by %v after 9 s, %d jumps", e, s.Jumps())
	}
}

// Repeated reads do not add to the slew of the estimate.
func TestAnEstimateReadAllTheTimeSlewsToo(t *testing.T) {
	s, p := settled()
	p.offset += time.Microsecond
	for range SyncWindow {
		p.exchange(s, 0)
	}
	for local := time.Duration(0); local <= 100*time.Microsecond; local += 30 {
		s.Server(local)
	}
	if e := p.server(100*time.Microsecond) - s.Server(100*time.Microsecond); e != 0 {
		t.Fatalf("off by %v, want nothing after a hundred times the error", e)
	}
}

func TestALargeErrorJumps(t *testing.T) {
	for _, by := range []time.Duration{-time.Second, -100 * time.Millisecond, 100 * time.Millisecond, time.Second} {
		s, p := settled()
		p.offset += by
		for range SyncWindow {
			p.exchange(s, 0)
		}
		if e := p.server(time.Millisecond) - s.Server(time.Millisecond); e != 0 || s.Jumps() != 1 {
			t.Fatalf("%v: off by %v, %d jumps", by, e, s.Jumps())
		}
	}
}

// One exchange shows that a clock was set: earlier exchanges are invalid.
func TestAClockThatWasSetIsKnownAtOnce(t *testing.T) {
	for _, by := range []time.Duration{-time.Minute, -90 * time.Millisecond, 90 * time.Millisecond, time.Minute} {
		s, p := settled()
		p.drift = 100e-6
		p.run(s, 20*time.Second, 0)
		p.offset += by
		p.exchange(s, 20*time.Second)
		if e := p.server(20*time.Second) - (20*time.Second + s.offset); e.Abs() > 100*time.Microsecond || s.RTT() < 39*time.Millisecond {
			t.Errorf("set by %v: off by %v, with a round trip of %v", by, e, s.RTT())
		}
		at := 20 * time.Second
		for ; at < 40*time.Second; at += 300 * time.Millisecond {
			p.exchange(s, at)
		}
		if e := p.server(at) - s.Server(at); e.Abs() > 50*time.Microsecond {
			t.Errorf("set by %v: off by %v later", by, e)
		}
	}
}

// A round trip may be negative by 10 ms: the clocks may drift apart by so much over the window.
func TestALittleDriftIsNoClockThatWasSet(t *testing.T) {
	s := new(Sync)
	for _, c := range []struct {
		ahead  time.Duration
		usable uint64
	}{{0, 1}, {10 * time.Millisecond, 2}, {10*time.Millisecond + 1, 1}} {
		if !s.Sample(0, c.ahead, c.ahead, 0) || s.usable != c.usable {
			t.Errorf("when the server's clock is ahead by %v, %d exchanges are used, want %d", c.ahead, s.usable, c.usable)
		}
	}
}

func TestAnEarlierLocalTimeReadsTheSame(t *testing.T) {
	s, p := settled()
	at := s.Server(time.Second)
	p.offset += time.Minute
	p.exchange(s, time.Second)
	if got := s.Server(time.Second); got != at {
		t.Fatalf("%v at the same time, want %v", got, at)
	}
	if got := s.Server(time.Millisecond); got != at {
		t.Fatalf("%v, want %v", got, at)
	}
}

// For any samples, the reading runs between 0.99 and 1.01 times as fast as the client's clock
// unless it jumps, and it never decreases.
func TestTheEstimateSlewsByOnePercent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := new(Sync)
		ms := func(name string, most int64) time.Duration {
			return time.Duration(rapid.Int64Range(0, most*int64(time.Millisecond)).Draw(t, name))
		}
		var local, first, from time.Duration
		jumps, started := uint64(0), false
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			for range rapid.IntRange(0, 10).Draw(t, "samples") {
				t1 := local
				t2 := ms("server", 250)
				t3 := t2 + ms("think", 2)
				s.Sample(t1, t1+t2, t1+t3, t1+(t3-t2)+ms("rtt", 200))
			}
			before := s.Server(local)
			local += rapid.OneOf(rapid.Just(time.Duration(1)), rapid.Custom(func(*rapid.T) time.Duration { return ms("frame", 50) })).Draw(t, "passed")
			got := s.Server(local)
			if !s.Ready() {
				continue
			}
			if !started || s.Jumps() != jumps {
				started, jumps, first, from = true, s.Jumps(), got, local
				continue
			}
			if got < before {
				t.Fatalf("went back from %v to %v", before, got)
			}
			passed := local - from
			if d := (got - first - passed).Abs(); d > passed/slewShare+1 {
				t.Fatalf("slewed by %v in %v", d, passed)
			}
		}
	})
}
