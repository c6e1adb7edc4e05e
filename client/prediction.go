package client

import (
	"reflect"
	"time"
	"unsafe"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/input"
	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/netvar"
)

// A client predicts the objects that it owns. Of each it keeps what it has predicted for the newest
// steps, as the wire carries it. What the server says of a step is compared with that
// (reconcile.go): if it is another value, all objects go back, and the steps after it run again.
//
//	a frame     poll ─▶ what is known of which step ─▶ equal: forget what is older
//	              │                                    else: go back, run the steps again
//	              ▼
//	            fixed step: input.sample ─▶ state.predict: step, round, keep
//	              │
//	              ▼
//	            View: between the two newest steps, and an offset that decays (smooth.go)

// prediction is all that is predicted. It belongs to Step's goroutine.
type prediction struct {
	classes []*predictor // in the order in which they run
	byClass []*predictor // nil: not predicted
	objects map[*netvar.Object]*predicted

	// kept is how many steps back a prediction is kept: as many as an input may be ahead of its
	// server. A later state cannot be compared, and prediction starts anew from it.
	kept    uint64
	last    uint64       // the newest step that was predicted, 0 before the first
	shown   []loop.Now   // what the tick showed in each step
	again   uint64       // the first step that ran before its time scale was known, 0 is none
	running uint64       // the step whose functions run, 0 is none
	turn    int          // and the class whose turn it is
	spawned uint8        // so many objects has the newest step spawned so far
	awaited int          // objects of Spawn for which the server's have not come
	lost    []*predicted // which are somebody else's of late

	applied bool   // a packet, since the last reconcile
	missed  uint64 // inputs that the server has missed, as it has told
	// lateAt is the step that the server was at, at most, when it missed the last of them.
	lateAt uint64
	frame  time.Duration // when the frame began
	stats  PredictionStats
}

// PredictionStats counts what predicting came to, as a part of [Stats].
type PredictionStats struct {
	Mispredicted uint64 // objects that were found to be predicted wrongly
	// MispredictedLate is how many of those were wrong after the server had missed inputs of the
	// client, or while these came too late. The others are what somebody else did to the object.
	MispredictedLate uint64
	Replayed         uint64 // fixed steps that ran again
	SpawnsMatched    uint64 // objects of Spawn for which the server's have come
	SpawnsWithdrawn  uint64 // and those that the server has not spawned
}

// predicted is one object that is predicted.
type predicted struct {
	by   *predictor
	o    *netvar.Object
	plan *codec.Plan
	live unsafe.Pointer // *S, as of the step held
	was  unsafe.Pointer // *S: scratch of replay
	held uint64

	// What was predicted, by step: that of the steps from first to newest is there, 0 for none. Up
	// to the step base it is the server's word.
	kept   uint64 // steps
	words  []uint64
	blobs  [][]byte
	first  uint64
	newest uint64
	base   uint64

	version uint64 // of the object, when it was last looked at
	known   uint64 // the tick as of which that is what the server has, 0 if that is unknown
	judged  uint64 // up to which tick what was predicted has been compared
	wrong   bool   // it is to be corrected

	shown   bool          // it has been drawn
	handed  bool          // it has changed hands since
	lost    time.Duration // when it became somebody else's
	before  []uint64      // scratch of replay: the words of the state
	offset  []float64     // of what is drawn
	since   time.Duration
	offside bool // the offset has not decayed yet

	birth birth // of an object of Spawn
}

// predict is the system state.predict.
func (c *Client) predict(t *netloop.Tick) {
	p, step := &c.prediction, c.now.FixedStep
	if !c.live() || step > c.time.steps.done {
		return // In this frame the steps were set back.
	}
	if step <= p.last || step > p.last+p.kept { // The clock was set back, or all is too old.
		c.predictFrom(step - 1)
	}
	for p.last < step { // Steps that a frame has left out run too: the server runs them.
		p.last++
		c.run(t, p.last)
	}
}

// shows returns what the tick shows in a step: what it showed when the step ran first, or what it
// would have shown in one that was left out.
func (c *Client) shows(step uint64) *loop.Now {
	p := &c.prediction
	now := &p.shown[step%p.kept]
	switch {
	case now.FixedStep == step:
	case c.now.Stage == netloop.FixedUpdate && c.now.FixedStep == step:
		*now = c.now
		rescaleStep(now, c.loop.Scale()) // The frame began with that of before.
	default:
		*now = c.now
		line, scale := &c.time.timeline, c.loop.Scale()
		now.FixedStep, now.Tick, now.Delta = step, line.StepTick(step), line.Fixed.Period()
		now.GameTime = line.GameTime(now.Tick)
		now.ScaledTime = scale.At(now.GameTime)
		now.ScaledDelta = scale.At(now.GameTime+now.Delta) - now.ScaledTime
		now.Stage, now.System = netloop.FixedUpdate, predictSystem
	}
	return now
}

// rescale gives the steps that have run ahead of a change of the time scale that of the server, and
// lets them run again.
func (p *prediction) rescale(s loop.Scale) {
	for i := range p.shown {
		now := &p.shown[i]
		if rescaleStep(now, s) && (p.again == 0 || now.FixedStep < p.again) {
			p.again = now.FixedStep
		}
	}
}

// rescaleStep gives a step the scaled time of a line, and reports whether it had another. The line
// is that of the steps after its beginning.
func rescaleStep(now *loop.Now, s loop.Scale) bool {
	to := s.At(now.GameTime)
	if now.GameTime <= s.From || now.ScaleNum == s.Num && now.ScaleDen == s.Den && now.ScaledTime == to {
		return false
	}
	now.ScaleNum, now.ScaleDen = s.Num, s.Den
	now.ScaledTime, now.ScaledDelta = to, s.At(now.GameTime+now.Delta)-to
	return true
}

// run runs a step, for the first time or again, for all objects of which the server's word is not
// in.
func (c *Client) run(t *netloop.Tick, step uint64) {
	p, saved := &c.prediction, c.now
	c.now = *c.shows(step)
	p.running, p.spawned = step, 0
	in, missed := c.inputOf(step)
	for p.turn = range p.classes {
		by := p.classes[p.turn]
		for i := 0; i < len(by.objects); i++ { // A step may spawn.
			switch d := by.objects[i]; {
			case d.birth.unborn:
			case step <= d.base:
				d.load(step)
			default:
				if in != nil {
					c.runOne(t, d, in, missed)
				}
				d.keep(step)
			}
		}
	}
	p.running = 0
	c.now = saved
}

// runOne calls the step function, whose panic costs this object its step.
func (c *Client) runOne(t *netloop.Tick, d *predicted, in *codec.Values, missed int) {
	defer c.guard.Recover(&d.by.place, nil)
	d.by.step(d.live, t, c.inputs.codec, in, missed)
}

// inputOf returns the input that the server has for a step: that of the step, or the last one
// before it, which then is missed so many times. Before the first there is none, and nothing runs.
func (c *Client) inputOf(step uint64) (in *codec.Values, missed int) {
	ring := c.inputs.ring
	if ring == nil {
		return nil, 0
	}
	for ; uint64(missed) < min(step, c.prediction.kept); missed++ {
		if v, ok := ring.At(step - uint64(missed)); ok {
			return v, missed
		}
	}
	return nil, 0
}

// values is what was predicted for a step.
func (d *predicted) values(step uint64) codec.Values {
	i, nw, nb := int(step%d.kept), d.plan.Words(), d.plan.Blobs()
	return codec.Values{Words: d.words[i*nw : (i+1)*nw : (i+1)*nw], Blobs: d.blobs[i*nb : (i+1)*nb : (i+1)*nb]}
}

// has tells whether what was predicted for a step is there.
func (d *predicted) has(step uint64) bool { return d.newest > 0 && step >= d.first && step <= d.newest }

// put makes v what is predicted for a step, and what the object goes on from.
func (d *predicted) put(step uint64, v *codec.Values) {
	to := d.values(step)
	copy(to.Words, v.Words)
	for i := range to.Blobs {
		to.Blobs[i] = append(to.Blobs[i][:0], v.Blobs[i]...)
	}
	d.plan.Restore(d.live, &to, nil)
	d.note(step)
}

// keep rounds the live state to what the wire carries, and makes it what is predicted for a step.
func (d *predicted) keep(step uint64) {
	d.plan.Round(d.live)
	v := d.values(step)
	if misfits := d.plan.Capture(d.live, &v); misfits > 0 {
		d.plan.Clamp(d.live)
	}
	d.note(step)
}

// note notes that the live state is that of a step, which is the newest one now. What is there
// before it stays if it reaches up to the step.
func (d *predicted) note(step uint64) {
	if d.newest == 0 || step < d.first || step > d.newest+1 {
		d.first = step
	}
	d.held, d.newest = step, step
	if step >= d.kept {
		d.first = max(d.first, step-d.kept+1)
	}
}

// load makes the live state that of a step, if it is there.
func (d *predicted) load(step uint64) {
	if d.held == step || !d.has(step) {
		return
	}
	v := d.values(step)
	d.plan.Restore(d.live, &v, nil)
	d.held = step
}

// back goes back to a step, or to the newest one of which the server's word is in if that is later.
// What was predicted for the steps after that is forgotten.
func (d *predicted) back(step uint64) {
	d.newest = min(d.newest, max(step, d.base))
	d.load(min(step, d.newest))
}

// keep sets of how many steps a prediction is kept, by the server's rate, if there is anything to
// predict. No object is predicted yet.
func (p *prediction) keep(line *loop.Timeline) {
	if len(p.classes) > 0 && line.Fixed.Num > 0 {
		p.kept = uint64(input.Window(line.Fixed.Period()))
		p.shown = make([]loop.Now, p.kept)
	}
}

// newPredicted is an object of which nothing is predicted yet.
func newPredicted(by *predictor, o *netvar.Object, kept uint64) *predicted {
	d := &predicted{by: by, o: o, kept: kept, plan: o.Plan(), live: newState(by.class.State), was: newState(by.class.State)}
	d.words = make([]uint64, int(kept)*d.plan.Words())
	d.blobs = make([][]byte, int(kept)*d.plan.Blobs())
	d.before = make([]uint64, d.plan.Words())
	d.offset = make([]float64, d.plan.Offsets())
	return d
}

func newState(c *netvar.Class) unsafe.Pointer { return reflect.New(c.Type()).UnsafePointer() }
