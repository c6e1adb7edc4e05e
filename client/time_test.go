package client

import (
	"math"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/clock"
	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/transport"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// scaleTold is a client that a server has told one line of scaled time, after a frame.
func scaleTold(t *testing.T, line *netloopv1.TimeScale) *Client {
	t.Helper()
	c, err := newClient(Config{Schema: netloop.NewSchema("scaled", 1, 0)}, clock.NewVirtual())
	if err != nil {
		t.Fatal(err)
	}
	link := welcomed(c, &netloopv1.Welcome{
		Protocol: 1, ClientId: 1, TickRate: &netloopv1.Rate{Num: 10, Den: 1}, FixedRate: &netloopv1.Rate{Num: 10, Den: 1}, SendEvery: 1,
		Epoch: &netloopv1.Epoch{Tick: 1},
	})
	frame, err := proto.Marshal(&netloopv1.Frame{Kind: &netloopv1.Frame_TimeScale{TimeScale: line}})
	if err != nil {
		t.Fatal(err)
	}
	// The effect is checked below.
	_ = link.ReceiveStream(0, append(protowire.AppendVarint(nil, uint64(len(frame))), frame...))
	c.Step(time.Second)
	c.Step(time.Second)
	return c
}

func TestAScaleThatIsNoneEndsTheConnection(t *testing.T) {
	for name, line := range map[string]*netloopv1.TimeScale{
		"nothing":              {},
		"no denominator":       {Num: 1},
		"too fast":             {Num: 17, Den: 1},
		"a denominator beyond": {Num: 1, Den: 1_000_001},
		"as much as there is":  {Num: math.MaxUint64, Den: math.MaxUint64},
		"overflowing":          {Num: math.MaxUint64, Den: 1 << 60},
		"a time beyond":        {Num: 1, Den: 1, ScaledNs: math.MaxInt64 + 1},
	} {
		c := scaleTold(t, line)
		if why, ok := c.conn.session.Cause(); !ok || why.Code != transport.CodeProtocol {
			t.Errorf("%s: %+v, %v", name, why, ok)
		}
		if c.now.ScaleNum != 1 || c.now.ScaleDen != 1 {
			t.Errorf("%s: it runs at %d/%d", name, c.now.ScaleNum, c.now.ScaleDen)
		}
	}
}

func TestAHandshakeSaysTheScaleOrIsRefused(t *testing.T) {
	join := func(line *netloopv1.TimeScale) *Client {
		c, err := newClient(Config{Schema: netloop.NewSchema("scaled", 1, 0)}, clock.NewVirtual())
		if err != nil {
			t.Fatal(err)
		}
		welcomed(c, &netloopv1.Welcome{
			Protocol: 1, ClientId: 1, TickRate: &netloopv1.Rate{Num: 10, Den: 1}, FixedRate: &netloopv1.Rate{Num: 10, Den: 1}, SendEvery: 1,
			Epoch: &netloopv1.Epoch{Tick: 300}, TimeScale: line,
		})
		c.Step(time.Second)
		return c
	}
	c := join(&netloopv1.TimeScale{Num: 2, Den: 3, Tick: 299, ScaledNs: 5, Fraction: 1 << 63})
	// ⅔ and ½ make a whole.
	if c.Closed() != nil || c.now.ScaleDen != 3 || c.now.ScaledTime != 66666666+6 {
		t.Errorf("%v, scaled time %d at 2/%d", c.Closed(), c.now.ScaledTime, c.now.ScaleDen)
	}
	if c = join(&netloopv1.TimeScale{Num: 1, Den: 1, Tick: 300, ScaledNs: math.MaxInt64}); c.Closed() != nil || c.now.ScaledTime != math.MaxInt64 {
		t.Errorf("%v, scaled time %d, want the latest that there is", c.Closed(), c.now.ScaledTime)
	}
	if c = join(nil); c.Closed() != nil || c.now.ScaledTime != 30*time.Second {
		t.Errorf("%v, scaled time %v", c.Closed(), c.now.ScaledTime)
	}
	for _, bad := range []*netloopv1.TimeScale{{}, {Num: 17, Den: 1}, {Den: math.MaxUint64}, {Den: 1, ScaledNs: math.MaxInt64 + 1}} {
		if c := join(bad); c.Closed() == nil || c.Closed().Code != transport.CodeProtocol {
			t.Errorf("%v: %v", bad, c.Closed())
		}
	}
}

// For any line of a server, scaled time is valid, and constant at speed 0.
func TestAnyLineOfScaledTimeIsOne(t *testing.T) {
	for _, tt := range []struct {
		line *netloopv1.TimeScale
		want time.Duration // at tick 1, which is 100 ms
	}{
		{&netloopv1.TimeScale{Num: 16, Den: 1}, 1600 * time.Millisecond},
		// ⅓ and ½ make no whole.
		{&netloopv1.TimeScale{Num: 1, Den: 3, ScaledNs: 5, Fraction: 1 << 63}, 33333333 + 5},
		{&netloopv1.TimeScale{Num: 2, Den: 3, ScaledNs: 5, Fraction: 1 << 63}, 66666666 + 6},
		{&netloopv1.TimeScale{Num: 16, Den: 1, ScaledNs: math.MaxInt64, Fraction: math.MaxUint64}, math.MaxInt64},
		{&netloopv1.TimeScale{Num: 16, Den: 1, Tick: math.MaxUint64, ScaledNs: 7}, 7},
	} {
		c := scaleTold(t, tt.line)
		if why, ok := c.conn.session.Cause(); ok {
			t.Errorf("%v: %+v", tt.line, why)
		}
		if c.now.GameTime != 100*time.Millisecond || c.now.ScaledTime != tt.want || c.now.ScaledDelta < 0 {
			t.Errorf("%v: scaled time %d at %v, want %d", tt.line, c.now.ScaledTime, c.now.GameTime, tt.want)
		}
	}
}

const ms = time.Millisecond

// Before its room has ticked, a server has no epoch: the client's frames have no tick then.
func TestTheHandshakeSaysTheServersTime(t *testing.T) {
	welcome := &netloopv1.Welcome{
		TickRate: &netloopv1.Rate{Num: 10, Den: 1}, FixedRate: &netloopv1.Rate{Num: 20, Den: 1}, ServerNs: uint64(10 * time.Second),
	}
	var s serverTime
	if err := s.welcome(3*time.Second, 0, welcome, newServer); err != nil || s.server(4*time.Second) != 11*time.Second {
		t.Fatalf("%v, at 4 s the server has %v", err, s.server(4*time.Second))
	}
	in := s.input(4*time.Second, time.Time{}, 16*ms)
	if in.Tick != 0 || in.FixedSteps != 0 || in.Delta != 16*ms || in.Start != 4*time.Second || in.Deadline != 4*time.Second {
		t.Errorf("without an epoch a frame has %+v", in)
	}
	if age := s.age(4*time.Second, 1); age != 0 {
		t.Errorf("without an epoch a tick has the age %v", age)
	}
	welcome.Epoch = &netloopv1.Epoch{Tick: 1, ServerNs: uint64(9 * time.Second)}
	if err := s.welcome(3*time.Second, 0, welcome, newServer); err != nil || s.input(4*time.Second, time.Time{}, 16*ms).Tick != 21 {
		t.Errorf("%v, 2 s after the first tick it is tick %d", err, s.tick)
	}
	for range clock.SyncReady { // Measurements replace the estimate of the handshake.
		s.sync.Sample(0, 5*time.Second, 5*time.Second, 0)
	}
	if now := s.server(4 * time.Second); now != 9*time.Second {
		t.Errorf("the server's time was measured as 9 s, and is %v", now)
	}
	welcome.FixedRate.Num = 0
	if err := s.welcome(0, 0, welcome, newServer); err == nil {
		t.Error("a rate of 0 is a rate")
	}
}

func TestTimeIsAskedForOftenAndThenRarely(t *testing.T) {
	c := newJoined(t)
	var s serverTime
	var asked []time.Duration
	for now := ms; now <= 4*time.Second; now += ms {
		was := s.requested
		if s.request(now, c.conn.session); s.requested != was {
			asked = append(asked, now)
		}
	}
	want := []time.Duration{ms}
	for len(want) < 40 {
		want = append(want, want[len(want)-1]+53*ms)
	}
	for next := want[39] + 293*ms; next <= 4*time.Second; next += 293 * ms {
		want = append(want, next)
	}
	if !slices.Equal(asked, want) {
		t.Errorf("asked at %v, want %v", asked, want)
	}
}

// Ticks, game time, steps and the fraction between two of them never decrease when an epoch moves,
// and no frame has more than eight steps: the steps left out are counted.
func TestFramesFollowTheServersTime(t *testing.T) {
	s := serverTime{timeline: loop.Timeline{Rate: loop.Hz(10), Fixed: loop.Hz(20)}}
	s.epochMoved(loop.Epoch{Tick: 1})
	wall := time.Unix(1, 0)
	for _, frame := range []struct {
		epoch  time.Duration // of tick 1
		now    time.Duration
		tick   uint64
		game   time.Duration
		first  uint64 // step
		steps  int
		alpha  float64
		jumped uint64
	}{
		{0, 0, 1, 100 * ms, 3, 0, 0, 0}, // Steps before the client's first frame are skipped.
		{0, 270 * ms, 3, 370 * ms, 3, 5, 0.4, 0},
		{200 * ms, 260 * ms, 3, 370 * ms, 8, 0, 0.4, 0},
		{200 * ms, 390 * ms, 3, 370 * ms, 8, 0, 0.4, 0},
		{200 * ms, 1100 * ms, 10, 1000 * ms, 13, 8, 0, 5},
		{200 * ms, 1525 * ms, 14, 1425 * ms, 21, 8, 0.5, 5},
		{200 * ms, 2550 * ms, 24, 2450 * ms, 42, 8, 0, 18},
	} {
		s.epochMoved(loop.Epoch{Tick: 1, At: frame.epoch})
		in := s.input(frame.now, wall, 7*ms)
		if in.Tick != frame.tick || in.GameTime != frame.game || in.FirstFixedStep != frame.first || in.FixedSteps != frame.steps || in.Fraction != frame.alpha || s.steps.skipped != frame.jumped {
			t.Errorf("at %v, with tick 1 due at %v: tick %d at %v, %d steps from %d on and %v of the next, %d left out, want %+v",
				frame.now, frame.epoch, in.Tick, in.GameTime, in.FixedSteps, in.FirstFixedStep, in.Fraction, s.steps.skipped, frame)
		}
		if in.Delta != 7*ms || in.Start != frame.now || in.Deadline != frame.now || in.Wall != wall {
			t.Errorf("the frame at %v of 7 ms is %+v", frame.now, in)
		}
	}
	for tick, want := range map[uint64]time.Duration{24: 50 * ms, 20: 450 * ms, 25: -50 * ms} {
		if age := s.age(2550*ms, tick); age != want {
			t.Errorf("tick %d has the age %v, want %v", tick, age, want)
		}
	}
	if s.epochMoved(loop.Epoch{Tick: 1, At: time.Hour}); s.gameTime(0) != 0 {
		t.Errorf("an hour before the first tick it is %v", s.gameTime(0))
	}
}

// A room that sleeps measures no inputs. Once the last sample is old, a target above the estimate
// falls to it, and one below remains.
func TestOldSamplesDoNotKeepALongLead(t *testing.T) {
	line := loop.Timeline{Rate: loop.Hz(10), Fixed: loop.Hz(20)}
	s := serverTime{timeline: line}
	s.epochMoved(loop.Epoch{Tick: 1})
	s.lead.begin(0, 100*ms, s.sync.RTT(), line)
	first, old := s.lead.target, max(leadSampleSpan, s.lead.samples.span)
	s.lead.samples.add(0, 500*ms)
	for _, frame := range []struct{ now, target, want time.Duration }{
		{old, first + time.Second, first + time.Second}, {old + 1, first + time.Second, first}, {old + 2, 10 * ms, 10 * ms},
	} {
		s.lead.target = frame.target
		if s.input(frame.now, time.Unix(1, 0), ms); s.lead.target != frame.want {
			t.Errorf("at %v a target of %v is then %v, want %v", frame.now, frame.target, s.lead.target, frame.want)
		}
	}
}

// A flush may be a quarter of a tick early, and one late flush is made up for. While the server is
// silent there are ten a second.
func TestFlushesHaveTheirPace(t *testing.T) {
	for name, c := range map[string]struct {
		next, now, heard time.Duration
		due              bool
		then             time.Duration // the next one
	}{
		"the first":                {0, 0, 0, true, 100 * ms},
		"a quarter early":          {300 * ms, 275 * ms, 275 * ms, true, 400 * ms},
		"earlier":                  {300 * ms, 275*ms - 1, 275 * ms, false, 300 * ms},
		"at its time":              {300 * ms, 300 * ms, 300 * ms, true, 400 * ms},
		"a little late":            {300 * ms, 380 * ms, 380 * ms, true, 400 * ms},
		"by more than one":         {300 * ms, 900 * ms, 900 * ms, true, 900 * ms},
		"nothing heard for 500 ms": {900 * ms, 900 * ms, 400 * ms, true, 1000 * ms},
	} {
		p := pace{period: 100 * ms, next: c.next}
		if due := p.due(c.now, c.heard, 25*ms); due != c.due || p.next != c.then {
			t.Errorf("%s: due %v, the next at %v, want %v, %v", name, due, p.next, c.due, c.then)
		}
	}
	for heard, want := range map[time.Duration]time.Duration{0: 520 * ms, -1: 600 * ms} {
		if p := (pace{period: 20 * ms, next: 500 * ms}); !p.due(500*ms, heard, 5*ms) || p.next != want {
			t.Errorf("of a server that was heard %v ago the next is at %v, want %v", 500*ms-heard, p.next, want)
		}
	}
}

// The frame in which the steps begin to lead runs the first of them.
func TestTheFirstFrameThatLeadsRunsAStep(t *testing.T) {
	hz := &netloopv1.Rate{Num: 60, Den: 1}
	var s serverTime
	w := &netloopv1.Welcome{TickRate: hz, FixedRate: hz, Epoch: &netloopv1.Epoch{Tick: 1}, ServerNs: uint64(10 * time.Second)}
	if err := s.welcome(0, 0, w, newServer); err != nil {
		t.Fatal(err)
	}
	for range clock.SyncReady {
		s.sync.Sample(0, 10*time.Second, 10*time.Second, 0)
	}
	if s.startLead(time.Second); !s.lead.on {
		t.Fatal("it does not lead")
	}
	if in := s.input(time.Second, time.Time{}, 16*ms); in.FixedSteps != 1 || in.FirstFixedStep != s.lead.first {
		t.Errorf("the frame runs %d steps from %d on, want that of %d", in.FixedSteps, in.FirstFixedStep, s.lead.first)
	}
}

// A client with a long round trip for two seconds flushes half as often for ten. Over a path that
// has become longer it then flushes as before.
func TestAClientSparesAThinLink(t *testing.T) {
	flushes := func(p *pace, from time.Duration, srtt, least time.Duration) (n int) {
		for now := from; now < from+time.Second; now += 10 * ms {
			p.watch(now, srtt, least)
			if p.due(now, now, 0) {
				n++
			}
		}
		return n
	}
	p := &pace{period: 20 * ms}
	for n, c := range []struct {
		at, srtt, least time.Duration
		want            int
	}{
		{0, 60 * ms, 60 * ms, 50},
		{1 * time.Second, 160 * ms, 60 * ms, 50},
		{2 * time.Second, 161 * ms, 60 * ms, 50},
		{3 * time.Second, 160 * ms, 60 * ms, 50}, // It was a spike.
		{4 * time.Second, 161 * ms, 60 * ms, 50},
		{5 * time.Second, 161 * ms, 100 * ms, 50}, // The least grows with the queue.
		{6 * time.Second, 161 * ms, 100 * ms, 25},
		{7 * time.Second, 60 * ms, 60 * ms, 25},
		{15 * time.Second, 60 * ms, 60 * ms, 25},
		{16 * time.Second, 60 * ms, 60 * ms, 50},
		{18 * time.Second, 200 * ms, 120 * ms, 50},
		{20 * time.Second, 200 * ms, 120 * ms, 25},
		{30 * time.Second, 200 * ms, 195 * ms, 50}, // The path is longer.
		{31 * time.Second, 294 * ms, 195 * ms, 50},
		{35 * time.Second, 296 * ms, 195 * ms, 50},
		{37 * time.Second, 296 * ms, 195 * ms, 25},
	} {
		if got := flushes(p, c.at, c.srtt, c.least); got < c.want-1 || got > c.want+1 {
			t.Errorf("row %d: %d flushes in a second, want %d", n, got, c.want)
		}
	}
}
