package client

import (
	"fmt"
	"iter"
	"slices"
	"time"
	"unsafe"

	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/bridge"
	"github.com/netloop/netloop/internal/netvar/replica"
	"github.com/netloop/netloop/internal/netvar/state"
)

// views holds the state for drawing. Only Step's goroutine uses it.
type views struct {
	playout
	replica *replica.Replica
	time    *serverTime
	reached func(tick uint64) // runs messages that waited for the state of a tick

	classes []viewClass // by the index of the class
	any     bool        // a class is interpolated
	state   uint64      // the tick that the state has reached
	records uint64      // state records received up to the newest whole snapshot
}

type viewClass struct {
	interpolated bool
	extrapolate  time.Duration
	moment       state.Moment // moment that this frame shows

	drawn unsafe.Pointer // *S: the result of View
	copy  func(to, from unsafe.Pointer)
}

// InterpolateOption is an option of [Interpolate].
type InterpolateOption struct{ apply func(*viewClass) }

// Extrapolate continues the motion of numbers for up to d, at most a second, while no newer
// snapshot has arrived; without it the motion stops. This is a guess, which is wrong when an object
// turns: then the object jumps to its true position.
func Extrapolate(d time.Duration) InterpolateOption {
	return InterpolateOption{func(v *viewClass) { v.extrapolate = min(max(d, 0), maxExtrapolation) }}
}

const maxExtrapolation = time.Second

// Interpolate makes [View] show the objects of a class between two snapshots, by the tags lerp= of
// its fields (see [netloop.Lerp]), and not in their newest state. Motion is then even at any frame
// rate, and a little behind the server. The delay is measured, so that nearly always both snapshots
// have arrived: [Stats] has the figures. All classes are shown at the same moment, see
// [Client.ViewTime].
//
// Messages that were sent with [netloop.WithState] then run when the shown moment reaches the tick
// in which they were sent. Interpolate takes effect in the next frame. It panics with a class of
// another schema.
func Interpolate[S any](c *Client, k *netloop.Class[S], o ...InterpolateOption) {
	class := bridge.Netloop.Class(k).State
	if !slices.Contains(c.schema.Classes().Classes(), class) {
		panic(fmt.Sprintf("client: Interpolate: class %q belongs to another schema than Config.Schema", k.Name()))
	}
	v := viewClass{interpolated: true, drawn: unsafe.Pointer(new(S)), copy: copyState[S]}
	for _, one := range o {
		one.apply(&v)
	}
	v.moment = c.views.moment
	c.views.classes[class.Index()], c.views.any = v, true
	c.views.ahead = 0
	for i := range c.views.classes {
		c.views.ahead = max(c.views.ahead, c.views.classes[i].extrapolate)
	}
	c.replica.KeepForDrawing(class)
}

// copyState copies an S.
func copyState[S any](to, from unsafe.Pointer) { *(*S)(to) = *(*S)(from) }

// View returns the state of an object to draw in this frame. For a predicted object (see [Predict])
// this is the prediction for this moment, plus the rest of a smoothed correction. For an
// interpolated class (see [Interpolate]) it is the object's state at [Client.ViewTime]; ok is false
// if the object did not exist at that time, so a despawned object is drawn until that time reaches
// its despawn. For all other classes it is the newest state, and ok is false after the object has
// despawned. Do not change slices and maps in the state.
//
// View may be called in a Step and between two Steps. It allocates memory only once for each change
// of a string, a slice or a similar value.
func View[S any](c *Client, o *netloop.Object[S]) (s S, ok bool) {
	if v := (*S)(c.view(o)); v != nil {
		return *v, true
	}
	return s, false
}

// view is View without the type. It returns a pointer so that View is short enough to be inlined: a
// struct would be copied in each call. The pointer is valid until the next call; nil means that the
// object is not drawn.
func (c *Client) view(o any) unsafe.Pointer {
	nv := bridge.Netloop.Object(o)
	if by := c.prediction.of(nv.Class()); by != nil {
		return c.prediction.draw(by, nv)
	}
	return c.views.interpolated(nv)
}

// interpolated is view for an object that is not predicted.
func (v *views) interpolated(o *state.Object) unsafe.Pointer {
	by := &v.classes[o.Class().Index()]
	if !by.interpolated {
		if !o.Alive() {
			return nil
		}
		return o.Live()
	}
	var d state.Drawing
	if !v.replica.Draw(&d, o, &by.moment) {
		return nil
	}
	by.copy(by.drawn, d.Base)
	d.Write(by.drawn)
	return by.drawn
}

// Views iterates over the objects of a class to draw in this frame, each with the result of [View]:
// first the objects that the client has, in the order of their ids, then despawned objects that
// still exist at the shown moment.
func Views[S any](c *Client, k *netloop.Class[S]) iter.Seq2[*netloop.Object[S], S] {
	class := bridge.Netloop.Class(k)
	return func(yield func(*netloop.Object[S], S) bool) {
		for _, objects := range [...]iter.Seq[*state.Object]{c.replica.All(class.State), c.replica.Gone(class.State)} {
			for nv := range objects {
				o := class.Wrap(nv).(*netloop.Object[S])
				if s, ok := View(c, o); ok && !yield(o, s) {
					return
				}
			}
		}
	}
}

// ViewTime returns the game time at which this frame shows interpolated classes. It decreases only
// when the client has joined another server. Without an interpolated class it is the game time of
// the newest state.
func (c *Client) ViewTime() time.Duration {
	if !c.views.any {
		return c.time.timeline.GameTime(c.replica.Tick())
	}
	return c.views.at
}

// ViewMoment returns the snapshots between which this frame shows interpolated classes. Without an
// interpolated class both are the newest snapshot. The zero Moment means no snapshot.
func (c *Client) ViewMoment() netloop.Moment { return c.views.viewed() }

func (v *views) viewed() netloop.Moment {
	if !v.any {
		tick := v.replica.Tick()
		return netloop.Moment{From: tick, To: tick}
	}
	return netloop.Moment(v.moment)
}

// complete records a snapshot that has arrived completely, and the tick that the state has reached
// with it. records is the number of records that arrived over the stream.
func (v *views) complete(s *Snapshot, reached, records uint64) {
	v.state = max(v.state, reached)
	if !v.any {
		v.reached(v.state)
		return
	}
	records += v.replica.Stats().Records
	v.add(arrival{tick: s.Tick, game: v.time.timeline.GameTime(s.Tick), at: s.At, unchanged: records == v.records})
	v.records = records
}

// show advances the shown moment at now, after all arrivals of the frame are processed, and runs
// the messages that waited for it. every is the number of ticks between snapshots.
func (v *views) show(now, frame time.Duration, every uint64, connected bool) {
	if !v.any {
		return
	}
	v.tick = v.time.timeline.Rate.Period()
	v.period = time.Duration(every) * v.tick
	if connected {
		v.frame(now, v.time.gameTime(now), frame)
	}
	for i := range v.classes {
		class := &v.classes[i]
		class.moment = v.extrapolated(class.extrapolate)
	}
	v.replica.LookFrom(v.oldest())
	v.reached(min(v.state, v.time.timeline.TickAt(v.at)))
}

// reset drops the snapshots to draw, because another room has a different game time.
func (v *views) reset() {
	v.state = 0
	v.playout.reset()
}
