package client

import (
	"reflect"
	"time"
	"unsafe"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/input"
	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/netvar/state"
)

// A client predicts the objects that it owns. For each it stores its predictions for the newest
// steps, encoded as on the wire. The server's state of a step is compared with the prediction
// (reconcile.go): if it differs, all objects are reset to that step, and the steps after it run
// again.
//
//	a frame     poll ─▶ server state of a step ─▶ equal: drop older predictions
//	              │                               else: reset, run the steps again
//	              ▼
//	            fixed step: input.sample ─▶ state.predict: step, round, store
//	              │
//	              ▼
//	            View: between the two newest steps, plus an offset that decays (smooth.go)

// prediction holds all state of prediction. Only Step's goroutine uses it.
type prediction struct {
	*core
	conn     *connection
	time     *serverTime
	inputs   *inputs
	watchers *watchers
	views    *views

	classes []*predictor // in the order in which they run
	byClass []*predictor // nil: not predicted
	objects map[*state.Object]*predicted

	// window is the number of newest steps for which predictions are stored: the number of steps by
	// which an input may be ahead of the server, see input.Window. Server states of older steps are
	// not compared.
	window      uint64
	last        uint64       // the newest step that was predicted, 0 before the first
	times       []loop.Now   // the times and time scale that the tick showed in each step
	rerunFrom   uint64       // the first step that ran before its time scale had arrived; 0: none
	running     uint64       // the running step; 0: none
	classIndex  int          // index of the running class
	stepSpawns  uint8        // number of objects that the newest step has spawned so far
	unconfirmed int          // objects of Spawn that the server has not confirmed yet
	lost        []*predicted // objects that recently got another owner

	applied bool   // a packet was applied since the last reconcile
	missed  uint64 // inputs that the server has missed, as it has reported
	// lateAt is the estimated step of the server at its last report of a missed or late input: the
	// input was for this step or for an earlier step.
	lateAt uint64
	frame  time.Duration // time at which the frame began

	atJoin     uint64        // mispredictions before the client joined the room
	reportFrom time.Duration // time from which mispredictions may be reported again
}

// PredictionStats has the counts of prediction. It is a part of [Stats].
type PredictionStats struct {
	// Mispredicted counts objects found to be predicted wrongly. The client reports the number
	// since its join to the server, see [netloop.LinkStats].
	Mispredicted uint64
	// MispredictedLate counts the mispredictions after the server had missed inputs of the client,
	// or while inputs arrived too late. All others are caused by another client or by the server.
	MispredictedLate uint64
	Replayed         uint64 // fixed steps that ran again
	SpawnsMatched    uint64 // objects of Spawn that the server confirmed
	SpawnsWithdrawn  uint64 // objects of Spawn that the server did not spawn
}

// predicted is one predicted object.
type predicted struct {
	by       *predictor
	o        *state.Object
	plan     *codec.Plan
	live     unsafe.Pointer // *S, as of liveStep
	was      unsafe.Pointer // *S: scratch of replay
	liveStep uint64

	// Predictions by step, for the steps from first to newest; newest is 0 if there are none. Up to
	// the step base they are the server's state.
	window uint64 // steps
	words  []uint64
	blobs  [][]byte
	first  uint64
	newest uint64
	base   uint64

	version  uint64 // version of the object at the last comparison
	known    uint64 // the tick at which the server has this version; 0: unknown
	compared uint64 // the tick up to which predictions have been compared
	wrong    bool   // the object must be corrected

	shown     bool          // it has been drawn
	newOwner  bool          // its owner has changed since it was drawn
	lost      time.Duration // time at which it got another owner
	before    []uint64      // scratch of replay: the words of the state
	offset    []float64     // between the drawn and the predicted state
	since     time.Duration
	smoothing bool // the offset has not decayed yet

	spawn spawnInfo // set for an object of Spawn
}

// predict is the system state.predict.
func (p *prediction) predict(t *netloop.Tick) {
	step := p.now.FixedStep
	if !p.conn.live() || step > p.time.steps.done {
		return // The steps were set back in this frame.
	}
	if step <= p.last || step > p.last+p.window { // The clock was set back, or has jumped.
		p.restartAt(step - 1)
	}
	for p.last < step { // Steps that a frame has skipped run too, because the server runs them.
		p.last++
		p.run(t, p.last)
	}
}

// timesOf returns the times of the Tick in a step: the times of its first run or, for a skipped
// step, the times that it would have had.
func (p *prediction) timesOf(step uint64) *loop.Now {
	now := &p.times[step%p.window]
	switch {
	case now.FixedStep == step:
	case p.now.Stage == netloop.FixedUpdate && p.now.FixedStep == step:
		*now = p.now
		rescaleStep(now, p.loop.Scale()) // The frame began with the previous time scale.
	default:
		*now = p.now
		line, scale := &p.time.timeline, p.loop.Scale()
		now.FixedStep, now.Tick, now.Delta = step, line.StepTick(step), line.Fixed.Period()
		now.GameTime = line.GameTime(now.Tick)
		now.ScaledTime = scale.At(now.GameTime)
		now.ScaledDelta = scale.At(now.GameTime+now.Delta) - now.ScaledTime
		now.Stage, now.System = netloop.FixedUpdate, predictSystem
	}
	return now
}

// rescale applies a change of the time scale to the stored times of steps that already ran with the
// previous scale, and marks these steps to run again.
func (p *prediction) rescale(s loop.Scale) {
	for i := range p.times {
		now := &p.times[i]
		if rescaleStep(now, s) && (p.rerunFrom == 0 || now.FixedStep < p.rerunFrom) {
			p.rerunFrom = now.FixedStep
		}
	}
}

// rescaleStep sets the scaled time of a step from a time scale, and reports whether it changed. The
// scale applies to steps after its beginning.
func rescaleStep(now *loop.Now, s loop.Scale) bool {
	to := s.At(now.GameTime)
	if now.GameTime <= s.From || now.ScaleNum == s.Num && now.ScaleDen == s.Den && now.ScaledTime == to {
		return false
	}
	now.ScaleNum, now.ScaleDen = s.Num, s.Den
	now.ScaledTime, now.ScaledDelta = to, s.At(now.GameTime+now.Delta)-to
	return true
}

// run runs a step, for the first time or again, for all objects without the server's state of that
// step.
func (p *prediction) run(t *netloop.Tick, step uint64) {
	saved := p.now
	p.now = *p.timesOf(step)
	p.running, p.stepSpawns = step, 0
	in, missed := p.inputOf(step)
	for p.classIndex = range p.classes {
		by := p.classes[p.classIndex]
		for i := 0; i < len(by.objects); i++ { // A step may spawn objects.
			switch d := by.objects[i]; {
			case d.spawn.pending:
			case step <= d.base:
				d.load(step)
			default:
				if in != nil {
					p.runOne(t, d, in, missed)
				}
				d.keep(step)
			}
		}
	}
	p.running = 0
	p.now = saved
}

// runOne calls the step function. A panic there skips this step of this object only.
func (p *prediction) runOne(t *netloop.Tick, d *predicted, in *codec.Values, missed int) {
	defer p.guard.Recover(&d.by.place, nil)
	d.by.step(d.live, t, p.inputs.codec, in, missed)
}

// inputOf returns the input that the server has for a step: the input of the step, or the last
// earlier input with the number of steps since then. Before the first input it returns nil, and the
// step runs no function.
func (p *prediction) inputOf(step uint64) (in *codec.Values, missed int) {
	ring := p.inputs.ring
	if ring == nil {
		return nil, 0
	}
	for ; uint64(missed) < min(step, p.window); missed++ {
		if v, ok := ring.At(step - uint64(missed)); ok {
			return v, missed
		}
	}
	return nil, 0
}

// values returns the prediction for a step.
func (d *predicted) values(step uint64) codec.Values {
	i, nw, nb := int(step%d.window), d.plan.Words(), d.plan.Blobs()
	return codec.Values{Words: d.words[i*nw : (i+1)*nw : (i+1)*nw], Blobs: d.blobs[i*nb : (i+1)*nb : (i+1)*nb]}
}

// has reports whether a prediction for a step is stored.
func (d *predicted) has(step uint64) bool { return d.newest > 0 && step >= d.first && step <= d.newest }

// put stores v as the prediction for a step and as the live state, from which later steps run.
func (d *predicted) put(step uint64, v *codec.Values) {
	to := d.values(step)
	copy(to.Words, v.Words)
	for i := range to.Blobs {
		to.Blobs[i] = append(to.Blobs[i][:0], v.Blobs[i]...)
	}
	d.plan.Restore(d.live, &to, nil)
	d.note(step)
}

// keep rounds the live state to the wire's precision, and stores it as the prediction for a step.
func (d *predicted) keep(step uint64) {
	d.plan.Round(d.live)
	v := d.values(step)
	if misfits := d.plan.Capture(d.live, &v); misfits > 0 {
		d.plan.Clamp(d.live)
	}
	d.note(step)
}

// note records that the live state belongs to a step, which becomes the newest. Earlier predictions
// are kept if they reach up to the step without a gap.
func (d *predicted) note(step uint64) {
	if d.newest == 0 || step < d.first || step > d.newest+1 {
		d.first = step
	}
	d.liveStep, d.newest = step, step
	if step >= d.window {
		d.first = max(d.first, step-d.window+1)
	}
}

// load restores the live state of a step, if it is stored.
func (d *predicted) load(step uint64) {
	if d.liveStep == step || !d.has(step) {
		return
	}
	v := d.values(step)
	d.plan.Restore(d.live, &v, nil)
	d.liveStep = step
}

// back resets the object to a step, or to base, the newest step with the server's state, if base is
// later. Predictions for the steps after it are dropped.
func (d *predicted) back(step uint64) {
	d.newest = min(d.newest, max(step, d.base))
	d.load(min(step, d.newest))
}

// resize sets the number of steps for which predictions are stored, from the server's rate, if a
// class is predicted. It is called before any object is predicted.
func (p *prediction) resize() {
	if fixed := p.time.timeline.Fixed; len(p.classes) > 0 && fixed.Num > 0 {
		p.window = uint64(input.Window(fixed.Period()))
		p.times = make([]loop.Now, p.window)
	}
}

// newPredicted returns an object without predictions.
func newPredicted(by *predictor, o *state.Object, window uint64) *predicted {
	d := &predicted{by: by, o: o, window: window, plan: o.Plan(), live: newState(by.class.State), was: newState(by.class.State)}
	d.words = make([]uint64, int(window)*d.plan.Words())
	d.blobs = make([][]byte, int(window)*d.plan.Blobs())
	d.before = make([]uint64, d.plan.Words())
	d.offset = make([]float64, d.plan.Offsets())
	return d
}

func newState(c *state.Class) unsafe.Pointer { return reflect.New(c.Type()).UnsafePointer() }
