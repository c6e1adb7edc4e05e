package client

import (
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/clock"
	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/input"
	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/netvar/replica"
	"github.com/netloop/netloop/internal/netvar/state"
	"github.com/netloop/netloop/internal/transport"
)

var (
	loneSchema = netloop.NewSchema("fleet", 1, 0)
	loneInput  = netloop.NewInput(loneSchema, func(last stick, _ int) stick { return last })
	loneShips  = netloop.NewClass[vessel](loneSchema, "vessel", netloop.Predicted())
)

type stick struct {
	Turn, Thrust int8
	Fire         bool
}

type vessel struct {
	X, Y   float32 `net:"quant=1/256"`
	VX, VY float32 `net:"quant=1/256"`
	Angle  float32 `net:"quant=1/1024,lerp=angle"`
	Fuel   float32 `net:"quant=1/16,range=0:100"`
	Health int32
	Until  netloop.Deadline
}

func (s *vessel) steer(t *netloop.Tick, in stick) {
	dt := float32(t.Delta().Seconds())
	s.Angle += float32(in.Turn) * dt
	s.VX, s.VY = s.VX+float32(in.Thrust)*dt, s.VY+s.Angle*dt
	s.X, s.Y = s.X+s.VX*dt, s.Y+s.VY*dt
}

// loneShip is a client without a server that predicts one ship, and has done so for a while.
func loneShip(tb testing.TB) (*Client, *predicted) {
	tb.Helper()
	c, err := newClient(Config{Schema: loneSchema}, clock.NewSystem())
	if err != nil {
		tb.Fatal(err)
	}
	c.conn.id = 1
	c.time.timeline = loop.Timeline{Rate: loop.Hz(60), Fixed: loop.Hz(60)}
	c.loop.SetScale(loop.Unscaled)
	Inputs(c, loneInput, func(*netloop.Tick) stick { return stick{} })
	Predict(c, loneShips, loneInput, (*vessel).steer)
	if !c.inputs.adapt() {
		tb.Fatal("nobody reads inputs")
	}
	ship := c.replica.AddLocal(c.prediction.classes[0].class.State, unsafe.Pointer(new(vessel)), 1)
	d := newPredicted(c.prediction.classes[0], ship, c.prediction.window)
	d.by.insert(d)
	c.prediction.objects[ship] = d
	d.shown = true
	c.prediction.last = 99
	for step := uint64(100); step < 200; step++ {
		v := c.inputs.ring.Add(step, input.View{})
		v.Words[0], v.Words[1] = 3, 20
		c.prediction.last = step
		c.prediction.run(c.tick.Tick.(*netloop.Tick), step)
	}
	return c, d
}

// Resetting 16 steps and running them again takes at most 20 µs without an allocation.
func BenchmarkReplay16Steps(b *testing.B) {
	c, _ := loneShip(b)
	b.ReportAllocs()
	for b.Loop() {
		c.prediction.replay(c.prediction.last - 16)
	}
}

// The transition of a picture ends at a correction of an object that is not drawn. Without a
// connection, and after the clock was set back, no step is predicted.
func TestCorrectionsAndStepsThatAreNotShown(t *testing.T) {
	c, d := loneShip(t)
	now := d.values(d.liveStep)
	d.before, d.shown, d.smoothing = slices.Clone(now.Words), false, true
	d.before[0]++
	if d.smooth(0); d.smoothing {
		t.Error("an object that is not drawn continues its transition")
	}
	p := c.prediction
	before := p.last
	p.now.FixedStep, p.time.steps.done = before+1, before+1
	p.predict(c.tick.Tick.(*netloop.Tick))
	if p.last != before {
		t.Errorf("step %d is predicted without a connection", p.last)
	}
}

// Replaying repeats the first predictions, counts its steps, and does not allocate; nor does
// drawing predictions.
func TestReplayingAllocatesNothing(t *testing.T) {
	c, d := loneShip(t)
	before := *(*vessel)(d.live)
	n := testing.AllocsPerRun(100, func() { c.prediction.replay(c.prediction.last - 16) })
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
	if after := *(*vessel)(d.live); after != before || after.X == 0 {
		t.Errorf("replayed to %+v, want %+v", after, before)
	}
	if got := c.stats.Prediction.Replayed; got != 16*101 {
		t.Errorf("%d steps", got)
	}
	if n := testing.AllocsPerRun(100, func() {
		c.prediction.update(&replica.Applied{Tick: 150, Reached: 150, SnapshotComplete: true}, false)
		c.prediction.reconcile()
	}); n != 0 {
		t.Errorf("%v allocations to learn from a packet", n)
	}
	var drawn vessel
	o := c.prediction.classes[0].class.Wrap(d.o).(*netloop.Object[vessel])
	if n := testing.AllocsPerRun(100, func() { drawn, _ = View(c, o) }); n != 0 || drawn == (vessel{}) {
		t.Errorf("%v allocations to draw %+v", n, drawn)
	}
}

// The rest of a correction decays in a straight line, and a further correction adds to it.
func TestCorrectionsAddUpAndDecay(t *testing.T) {
	c, d := loneShip(t)
	state := (*vessel)(d.live)
	at := func(ms int, want float32) {
		t.Helper()
		c.prediction.frame = time.Duration(ms) * time.Millisecond
		v := *state
		if d.shift(unsafe.Pointer(&v), c.prediction.frame); v.X < want-0.01 || v.X > want+0.01 {
			t.Errorf("after %d ms it is drawn at %v, want %v", ms, v.X, want)
		}
	}
	correct := func(x float32) {
		d.saveDrawn(c.prediction.frame)
		state.X = x
		d.keep(d.liveStep)
		d.smooth(c.prediction.frame)
	}
	state.X = 10
	d.keep(d.liveStep)
	at(0, 10)
	correct(20)
	at(0, 10)
	at(50, 15)
	correct(10) // from where it is drawn
	at(50, 15)
	at(100, 12.5)
	at(150, 10)
	at(999, 10)
}

// Predictions of the steps of two seconds are stored: the server's state of an earlier step is not
// compared.
func TestAPredictionIsKeptForTwoSeconds(t *testing.T) {
	c, d := loneShip(t)
	for step := uint64(200); step < 300; step++ {
		c.prediction.last = step
		c.prediction.run(c.tick.Tick.(*netloop.Tick), step)
	}
	for step, want := range map[uint64]bool{299: true, 300 - 128: true, 299 - 128: false, 300: false, 0: false} {
		if d.has(step) != want {
			t.Errorf("step %d: %v, want %v", step, !want, want)
		}
	}
	now := d.values(299)
	d.put(400, &now)
	if d.has(299) || !d.has(400) {
		t.Error("what lies before a gap is still there")
	}
	d.put(401, &now)
	if d.back(400); d.has(401) || !d.has(400) || d.liveStep != 400 {
		t.Error("what lies after the step to which it goes back is still there")
	}
}

// A correction of a step without a stored prediction runs all stored steps again, and a reset to a
// step with a replay gives the same state.
func TestGoingBackComesToTheSame(t *testing.T) {
	c, d := loneShip(t)
	before := *(*vessel)(d.live)
	c.prediction.replay(100)
	if after := *(*vessel)(d.live); after != before || c.stats.Prediction.Replayed != 99 {
		t.Errorf("%d steps are replayed to %+v, want %+v", c.stats.Prediction.Replayed, after, before)
	}
	c.prediction.restartAt(150)
	if was := d.values(150); c.prediction.last != 150 || d.has(151) || !d.has(150) || !d.plan.Equal(&was, d.state()) {
		t.Errorf("from step 150 on it is %+v", *(*vessel)(d.live))
	}
	for step := uint64(151); step < 200; step++ {
		c.prediction.last = step
		c.prediction.run(c.tick.Tick.(*netloop.Tick), step)
	}
	if after := *(*vessel)(d.live); after != before {
		t.Errorf("it comes to %+v, want %+v", after, before)
	}
}

// state is the live state as values.
func (d *predicted) state() *codec.Values {
	v := codec.Values{Words: make([]uint64, d.plan.Words()), Blobs: make([][]byte, d.plan.Blobs())}
	d.plan.Capture(d.live, &v)
	return &v
}

// A status of inputs counts unless a later one has arrived: with a newer input, or more missed
// ones.
func TestTheNewestStatusOfInputsCounts(t *testing.T) {
	c, _ := loneShip(t)
	for _, say := range []struct {
		newest, missed uint64
		counts         bool
	}{{5, 1, true}, {5, 2, true}, {4, 3, false}, {6, 1, false}, {6, 2, true}, {7, 3, true}, {5, 2, false}} {
		st := transport.InputStatus{Newest: say.newest, Missed: say.missed, Early: time.Duration(say.newest)}
		if c.inputs.reported(&st); (c.inputs.status == st) != say.counts {
			t.Errorf("step %d, %d missed: counts %v", say.newest, say.missed, !say.counts)
		}
	}
}

// A new input is sent in its frame, up to half a period early. Without a new input, a flush waits
// for the next one, up to half a period. Before inputs are made, a flush may be a quarter early.
func TestFlushesFollowTheInputs(t *testing.T) {
	c, _ := loneShip(t)
	in := c.inputs
	newest := in.ring.Newest()
	for _, s := range []struct {
		on   bool
		sent uint64
		want time.Duration
	}{{false, 0, 25}, {true, newest - 1, 50}, {true, newest, -50}} {
		in.time.lead.on, in.time.lead.sent = s.on, s.sent
		if got := in.early(100); got != s.want {
			t.Errorf("inputs are made: %v, step %d of %d is sent: %v early, want %v", s.on, s.sent, newest, got, s.want)
		}
	}
	in.reset()
	if got := in.early(100); got != 25 {
		t.Errorf("without inputs: %v early, want 25", got)
	}
}

// The input of a step is the one that the client made for it, or the last one before it, as on the
// server.
func TestTheInputOfAStepWithoutOneIsTheLastOne(t *testing.T) {
	c, _ := loneShip(t)
	for step, want := range map[uint64]int{150: 0, 199: 0, 203: 4, 199 + 127: 127} {
		if in, missed := c.prediction.inputOf(step); in == nil || missed != want {
			t.Errorf("step %d: %v, missed %d, want %d", step, in, missed, want)
		}
	}
	if in, _ := c.prediction.inputOf(199 + 128); in != nil {
		t.Error("an input is repeated for ever")
	}
	if in, _ := c.prediction.inputOf(3); in != nil {
		t.Error("there is an input before the first")
	}
}

// Objects run in the order of their ids, unconfirmed ones last.
func TestObjectsRunInTheOrderOfTheirIds(t *testing.T) {
	by := &predictor{}
	awaited := &predicted{o: new(state.Object), spawn: spawnInfo{unconfirmed: true}}
	first, second := &predicted{o: new(state.Object)}, &predicted{o: new(state.Object)}
	for _, d := range []*predicted{awaited, first, second} {
		by.insert(d)
	}
	if by.objects[0] != first || by.objects[1] != second || by.objects[2] != awaited {
		t.Errorf("%v", by.objects)
	}
}

// When another object is corrected at an older step, an object continues from the server's newest
// state of it.
func TestAnObjectGoesOnFromTheServersNewestWord(t *testing.T) {
	c, d := loneShip(t)
	before := *(*vessel)(d.live)
	d.base = 180
	c.prediction.replay(150)
	if after := *(*vessel)(d.live); after != before || d.newest != c.prediction.last {
		t.Errorf("after a correction at step 150 it is at %+v, want %+v", after, before)
	}
	d.base = d.newest
	c.prediction.replay(150)
	if after := *(*vessel)(d.live); after != before {
		t.Errorf("known up to now it is at %+v, want %+v", after, before)
	}
}

// The server's state of a step is kept when this step runs again for other objects.
func TestTheServersStateOfAStepIsNotPredictedAgain(t *testing.T) {
	c, d := loneShip(t)
	server := (*vessel)(d.live)
	for _, base := range []uint64{151, 160, 199} { // The replay begins with step 151.
		d.load(base)
		server.X = 1000
		d.keep(base)
		want := d.values(base)
		words := slices.Clone(want.Words)
		for step := base + 1; step < 200; step++ {
			c.prediction.run(c.tick.Tick.(*netloop.Tick), step)
		}
		d.base = base
		c.prediction.replay(150)
		if got := d.values(base); !slices.Equal(got.Words, words) || server.X < 1000 {
			t.Errorf("step %d: %v, want %v; the newest state is %+v", base, got.Words, words, *server)
		}
	}
}

// An object of Spawn that the server does not confirm is withdrawn after the steps with stored
// predictions, also without a snapshot.
func TestASpawnIsNotAwaitedForever(t *testing.T) {
	c, d := loneShip(t)
	kept, last := c.prediction.window, c.prediction.last
	old := c.prediction.spawn(d.by, spawnInfo{step: last - kept, unconfirmed: true}, d.live)
	young := c.prediction.spawn(d.by, spawnInfo{step: last - kept + 1, unconfirmed: true}, d.live)
	c.prediction.update(&replica.Applied{Tick: 150, Reached: 150}, false)
	c.prediction.reconcile()
	if old.o.Alive() || !young.o.Alive() || c.prediction.unconfirmed != 1 || c.stats.Prediction.SpawnsWithdrawn != 1 {
		t.Errorf("of two objects %d are awaited, the older one: %v", c.prediction.unconfirmed, old.o.Alive())
	}
}
