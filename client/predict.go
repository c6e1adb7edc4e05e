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
	"github.com/netloop/netloop/internal/netvar"
	"github.com/netloop/netloop/internal/panicguard"
	"github.com/netloop/netloop/internal/schema"
)

// Predict lets the client run ahead with the objects of a class that it owns: what the player does
// shows at once, and not a round trip later. In each fixed step, behind the input of that step,
// step is called for each of these objects with its predicted state, the tick of the server that
// will run the step, and the input. It does what the server's [netloop.Input.Handle] and its
// systems do to such an object in that step, so both mostly share one method:
//
//	client.Inputs(c, Controls, sample)
//	client.Predict(c, Ships, Controls, (*Ship).Steer)
//
// When a snapshot brings an object as it was at a step and that differs from what was predicted for
// the step, in any field, the client goes back to that state and runs the steps after it again,
// with the same inputs: step must depend on its arguments alone, and do nothing else. It may look
// at other predicted objects by [Predicted], and make new ones by [Spawn]. Objects of all classes
// run in each step in the order of the calls of Predict, those of one class in the order of their
// ids. Fields that are local, `net:"-"`, do not go back.
//
// [View] draws what is predicted, and [netloop.Object.State] is the confirmed state as ever. The
// class must be declared [netloop.Predicted], which says what the server has to do with it. Predict
// panics if it is not, if [Inputs] was not called before with the same input, and when it is called
// twice for a class.
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
	p := &predictor{class: class, smooth: defaultSmoothing, born: bornField[S](), wrong: make(map[string]uint64), copy: copyState[S], drawn: unsafe.Pointer(new(S)), spare: unsafe.Pointer(new(S)), place: panicguard.Place{Name: "Predict", Of: k.Name()}}
	for _, apply := range o {
		apply(p)
	}
	scratch := new(M)
	p.step = func(s unsafe.Pointer, t *netloop.Tick, codec *schema.InputCodec, v *codec.Values, missed int) {
		m, err := schema.OpenInput(codec, v, scratch)
		if err != nil { // It was written by this client, so this cannot be.
			return
		}
		if missed > 0 {
			m = bridge.Netloop.Repeat(in, m, missed).(M)
		}
		step((*S)(s), t, m)
	}
	c.prediction.add(c, p)
}

// PredictOption is an option of [Predict].
type PredictOption func(*predictor)

// defaultSmoothing is for how long a correction is drawn: long enough that none is seen as a jump,
// short enough that nobody plays with a wrong picture.
const defaultSmoothing = 100 * time.Millisecond

// Smoothing sets for how long a correction of the prediction is drawn: [View] goes over from what
// it showed to what is right in this time, in a straight line, and the state itself is right at
// once. Without it that takes 100 ms; 0 and less draw what is right at once. An object that becomes
// the client's, or somebody else's, is drawn in the same way: it goes over from the past, in which
// others are drawn, to the moment for which is predicted, or back.
func Smoothing(d time.Duration) PredictOption { return func(p *predictor) { p.smooth = d } }

// Snap says which corrections are too large to be smoothed: was is what would have been drawn, is
// what is right now. A change of a field with the tag teleport is never smoothed.
func Snap[S any](when func(was, is *S) bool) PredictOption {
	return func(p *predictor) { p.snap = func(was, is unsafe.Pointer) bool { return when((*S)(was), (*S)(is)) } }
}

// predictor predicts the objects of a class.
type predictor struct {
	class  bridge.Class
	place  panicguard.Place
	step   func(s unsafe.Pointer, t *netloop.Tick, codec *schema.InputCodec, in *codec.Values, missed int)
	copy   func(to, from unsafe.Pointer)
	drawn  unsafe.Pointer // *S: what View returns
	spare  unsafe.Pointer // *S
	smooth time.Duration
	snap   func(was, is unsafe.Pointer) bool
	born   int // the offset of its netloop.Born, or -1

	objects []*predicted // in the order in which they run
	wrong   map[string]uint64
}

const predictSystem = "state.predict"

// add registers a predictor, and with the first one what runs them.
func (p *prediction) add(c *Client, one *predictor) {
	if p.byClass == nil {
		p.byClass = make([]*predictor, len(c.schema.Classes().Classes()))
		p.objects = make(map[*netvar.Object]*predicted)
		_, err := c.loop.Add(loop.Spec[*netloop.Tick]{
			Name: predictSystem, Place: loop.Head, BuiltIn: "what the player does would show a round trip later",
			Ask: func(s netloop.Stage) func(*netloop.Tick) {
				if s != netloop.FixedUpdate {
					return nil
				}
				return c.predict
			},
		})
		if err != nil {
			panic(fmt.Sprintf("client: Predict: %v", err))
		}
	}
	p.byClass[one.class.State.Index()] = one
	if p.classes = append(p.classes, one); p.kept == 0 {
		p.keep(&c.time.timeline)
	}
	c.adoptOwned(c.replica.Tick())
}

// of returns the predictor of a class, or nil.
func (p *prediction) of(class *netvar.Class) *predictor {
	if i := class.Index(); i < len(p.byClass) {
		return p.byClass[i]
	}
	return nil
}

// Predicted returns the predicted state of an object as of the newest fixed step, or, in a step
// function, as of the step that runs or runs again. It reports false for an object that is not
// predicted.
func Predicted[S any](c *Client, o *netloop.Object[S]) (S, bool) {
	if d := c.prediction.objects[bridge.Netloop.Object(o)]; d != nil {
		return *(*S)(d.live), true
	}
	var none S
	return none, false
}

// Misprediction is how often a field of a class was predicted wrongly.
type Misprediction struct {
	Field string // the path in the struct, such as Pos.X
	Count uint64
}

// Mispredictions returns which fields of a class were found to be predicted wrongly, in the order
// of the struct, and how often. A steady count of one of them is a step function that does
// something else than the server.
func Mispredictions[S any](c *Client, k *netloop.Class[S]) (all []Misprediction) {
	p := c.prediction.of(bridge.Netloop.Class(k).State)
	if p == nil {
		return nil
	}
	for _, f := range k.Fields() {
		if n := p.wrong[f.Name]; n > 0 {
			all = append(all, Misprediction{f.Name, n})
		}
	}
	return all
}
