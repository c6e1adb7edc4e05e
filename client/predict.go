package client

import (
	"fmt"
	"slices"
	"time"
	"unsafe"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/bridge"
	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/loop"
	"github.com/netloop/netloop/internal/netvar/state"
	"github.com/netloop/netloop/internal/panicguard"
	"github.com/netloop/netloop/internal/schema"
)

// Predict makes the client compute the objects of a class that it owns ahead of the server's state,
// so that the player's actions are visible at once and not a round trip later. In each fixed step,
// after the input of that step, step is called for each of these objects with its predicted state,
// a Tick with the times of the server's step, and the input. It must change the object like the
// server's [netloop.Input.Handle] and systems do in that step, so both usually share one method:
//
//	client.Inputs(c, Controls, sample)
//	client.Predict(c, Ships, Controls, (*Ship).Steer)
//
// When a snapshot contains an object's state at a step and it differs from the prediction for the
// step, in any field, the client resets the object to that state and runs the steps after it
// again, with the same inputs: step must depend only on its arguments, and have no other effects.
// It may read other predicted objects with [PredictedState], and make new objects with [Spawn]. In
// each step the classes run in the order of the calls of Predict, and the objects of a class in
// the order of their ids. Local fields, `net:"-"`, are not reset.
//
// [View] draws the prediction, and [netloop.Object.State] remains the confirmed state. The class
// must be declared with [netloop.Predicted], which documents the server's part. Predict panics if
// the class is not predicted, if [Inputs] was not called before with the same input, and if it is
// called twice for a class.
func Predict[S, M any](c *Client, k *netloop.Class[S], in *netloop.Input[M], step func(s *S, t *netloop.Tick, in M), o ...PredictOption) {
	class := bridge.Netloop.Class(k)
	switch {
	case !slices.Contains(c.schema.Classes().Classes(), class.State):
		panic(fmt.Sprintf("client: Predict: class %q belongs to another schema than Config.Schema", k.Name()))
	case !class.Predicted:
		panic(fmt.Sprintf("client: Predict: class %q is not declared as predicted: add netloop.Predicted() to its NewClass", k.Name()))
	case c.inputs.sample == nil || bridge.Netloop.Input(in) != c.schema.Input():
		panic("client: Predict: call Inputs before, with the same input")
	case c.prediction.of(class.State) != nil:
		panic(fmt.Sprintf("client: Predict is called twice for class %q", k.Name()))
	}
	p := &predictor{class: class, smooth: defaultSmoothing, spawnKeyOffset: spawnKeyField[S](), wrong: make(map[string]uint64), copy: copyState[S], drawn: unsafe.Pointer(new(S)), spare: unsafe.Pointer(new(S)), place: panicguard.Func{Name: "Predict", Class: k.Name()}}
	for _, one := range o {
		one.apply(p)
	}
	scratch := new(M)
	p.step = func(s unsafe.Pointer, t *netloop.Tick, codec *schema.InputCodec, v *codec.Values, missed int) {
		m, err := schema.OpenInput(codec, v, scratch)
		if err != nil { // This cannot happen, because this client has written it.
			return
		}
		if missed > 0 {
			m = bridge.Netloop.Repeat(in, m, missed).(M)
		}
		step((*S)(s), t, m)
	}
	c.prediction.addClass(p)
}

// PredictOption is an option of [Predict].
type PredictOption struct{ apply func(*predictor) }

// defaultSmoothing is the time for which a correction is drawn: long enough that it does not look
// like a jump, and short enough that the player does not act on a wrong picture.
const defaultSmoothing = 100 * time.Millisecond

// Smoothing sets the time for which a correction of the prediction is drawn: in this time [View]
// moves from the shown state to the correct state, in a straight line, while the state itself is
// corrected at once. The default is 100 ms; with 0 or less the correct state is drawn at once. A
// change of owner is drawn in the same way, because other clients' objects are drawn in the past,
// and the client's own objects at the predicted moment.
func Smoothing(d time.Duration) PredictOption {
	return PredictOption{func(p *predictor) { p.smooth = d }}
}

// Snap selects the corrections that are too large to be smoothed: when gets the state that would
// have been drawn (was) and the correct state (is). A change of a field with the tag teleport is
// never smoothed.
func Snap[S any](when func(was, is *S) bool) PredictOption {
	return PredictOption{func(p *predictor) {
		p.snap = func(was, is unsafe.Pointer) bool { return when((*S)(was), (*S)(is)) }
	}}
}

// predictor predicts the objects of a class.
type predictor struct {
	class          bridge.Class
	place          panicguard.Func
	step           func(s unsafe.Pointer, t *netloop.Tick, codec *schema.InputCodec, in *codec.Values, missed int)
	copy           func(to, from unsafe.Pointer)
	drawn          unsafe.Pointer // *S: the result of View
	spare          unsafe.Pointer // *S
	smooth         time.Duration
	snap           func(was, is unsafe.Pointer) bool
	spawnKeyOffset int // the offset of its netloop.SpawnKey, or -1

	objects []*predicted // in the order in which they run
	wrong   map[string]uint64
}

const predictSystem = "state.predict"

// addClass registers a predictor, and with the first one the system that runs them.
func (p *prediction) addClass(by *predictor) {
	if p.byClass == nil {
		p.byClass = make([]*predictor, len(p.schema.Classes().Classes()))
		p.objects = make(map[*state.Object]*predicted)
		_, err := p.loop.Add(loop.Spec[*netloop.Tick]{
			Name: predictSystem, Place: loop.Head, BuiltIn: "input would show a round trip later",
			Ask: at(netloop.FixedUpdate, p.predict),
		})
		if err != nil {
			panic(fmt.Sprintf("client: Predict: %v", err))
		}
	}
	p.byClass[by.class.State.Index()] = by
	if p.classes = append(p.classes, by); p.window == 0 {
		p.resize()
	}
	p.addOwned(p.replica.Tick())
}

// of returns the predictor of a class, or nil.
func (p *prediction) of(class *state.Class) *predictor {
	if i := class.Index(); i < len(p.byClass) {
		return p.byClass[i]
	}
	return nil
}

// PredictedState returns the predicted state of an object as of the newest fixed step or, in a step
// function, as of the running step. It reports false for an object that is not predicted.
func PredictedState[S any](c *Client, o *netloop.Object[S]) (S, bool) {
	if d := c.prediction.objects[bridge.Netloop.Object(o)]; d != nil {
		return *(*S)(d.live), true
	}
	var none S
	return none, false
}

// Misprediction is the number of wrong predictions of a field of a class.
type Misprediction struct {
	Class string
	Field string // the path in the struct, such as Pos.X
	Count uint64
}

// Mispredictions returns the fields of a class that were predicted wrongly, in the order of the
// struct, with the numbers of wrong predictions. A count that keeps growing means that the step
// function differs from the server's code.
func Mispredictions[S any](c *Client, k *netloop.Class[S]) (all []Misprediction) {
	if p := c.prediction.of(bridge.Netloop.Class(k).State); p != nil {
		return p.mispredictions()
	}
	return nil
}

// Mispredictions returns those of all predicted classes, in the order of the calls of [Predict].
func (c *Client) Mispredictions() (all []Misprediction) {
	for _, p := range c.prediction.classes {
		all = append(all, p.mispredictions()...)
	}
	return all
}

func (p *predictor) mispredictions() (all []Misprediction) {
	for _, f := range p.class.State.DescribeLeaves() {
		if n := p.wrong[f.Name]; n > 0 {
			all = append(all, Misprediction{p.class.State.Name(), f.Name, n})
		}
	}
	return all
}
