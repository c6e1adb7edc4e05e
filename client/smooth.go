package client

import (
	"slices"
	"time"
	"unsafe"

	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/netvar/state"
)

// A correction is applied to the state at once, and to the picture gradually: the drawn state is
// the predicted state plus an offset, which at first is the whole correction and decays to zero. A
// further correction adds to the remaining offset.

// saveDrawn stores the drawn state of an object before it is corrected in a frame.
func (d *predicted) saveDrawn(frame time.Duration) {
	d.by.copy(d.was, d.live)
	d.shift(d.was, frame)
	copy(d.before, d.values(d.liveStep).Words)
}

// shift moves a state by the offset that remains in a frame.
func (d *predicted) shift(v unsafe.Pointer, frame time.Duration) {
	left := 1 - float64(frame-d.since)/float64(max(d.by.smooth, 1))
	if d.smoothing = d.smoothing && left > 0; d.smoothing {
		d.plan.Shift(v, d.offset, left)
	}
}

// smooth starts the transition of the picture from the saved to the corrected state.
func (d *predicted) smooth(frame time.Duration) {
	now := d.values(d.liveStep)
	if slices.Equal(d.before, now.Words) {
		return
	}
	was := codec.Values{Words: d.before, Blobs: now.Blobs}
	if d.smoothing = false; d.shown && !d.plan.Teleports(&was, &now) {
		d.transition(d.was, d.live, frame)
	}
}

// transition starts the transition of the picture from one state to another.
func (d *predicted) transition(was, is unsafe.Pointer, frame time.Duration) {
	d.smoothing, d.since = d.by.smooth > 0 && (d.by.snap == nil || !d.by.snap(was, is)), frame
	if d.smoothing {
		d.plan.Apart(d.offset, was, is)
	}
}

// between writes the state for this frame, without the offset, to v, a copy of the live state:
// interpolated between the two newest steps, or extrapolated if later steps did not run for the
// object.
func (d *predicted) between(v unsafe.Pointer, last uint64, fraction float64) {
	if newest := d.liveStep; newest > 0 && d.has(newest-1) {
		from, to := d.values(newest-1), d.values(newest)
		since := max(last, newest) - newest
		d.plan.Between(v, &to, &from, &to, fraction+float64(since))
	}
}

// draw returns the state to draw of an object of a predicted class, or nil if it is not drawn. For
// the client's own objects it is the prediction, or nil after the despawn; for other objects it is
// the interpolated state.
func (p *prediction) draw(by *predictor, o *state.Object) unsafe.Pointer {
	if d := p.objects[o]; d != nil && o.Alive() {
		by.copy(by.drawn, d.live)
		d.between(by.drawn, p.last, p.now.Fraction)
		if d.newOwner {
			d.newOwner = false
			if was := p.drawOther(by, o, by.spare); was != nil {
				d.changeOwner(was, by.drawn, p.frame)
			}
		}
		d.shift(by.drawn, p.frame)
		d.shown = true
		return by.drawn
	}
	if !o.Alive() && o.Owner() == uint64(p.conn.id) {
		return nil
	}
	o.Shown = true
	return p.drawOther(by, o, by.drawn)
}

// When the owner of an object changes, its drawn time jumps from one frame to the next: own objects
// are drawn in the future, others in the past. The picture makes a transition as after a
// correction, from the state drawn in the frame that first shows the change.

// drawOther returns the state to draw of an object that another client owns, or owned until now.
// During the transition from the prediction, the state is written to v.
func (p *prediction) drawOther(by *predictor, o *state.Object, v unsafe.Pointer) unsafe.Pointer {
	is := p.views.interpolated(o)
	for _, d := range p.lost {
		if d.o == o && is != nil {
			by.copy(v, is)
			if d.newOwner {
				d.newOwner = false
				by.copy(d.was, d.live)
				d.between(d.was, p.last, p.now.Fraction)
				d.shift(d.was, p.frame)
				d.changeOwner(d.was, v, p.frame)
			}
			d.shift(v, p.frame)
			return v
		}
	}
	return is
}

// changeOwner starts the transition of the picture from the previously drawn state to the state
// drawn now.
func (d *predicted) changeOwner(was, is unsafe.Pointer, frame time.Duration) {
	if d.plan.HasTeleports() {
		before, now := captured(d.plan, was), captured(d.plan, is)
		if d.plan.Teleports(&before, &now) {
			d.smoothing = false
			return
		}
	}
	d.transition(was, is, frame)
}

func captured(p *codec.Plan, s unsafe.Pointer) codec.Values {
	v := codec.Values{Words: make([]uint64, p.Words()), Blobs: make([][]byte, p.Blobs())}
	p.Capture(s, &v)
	return v
}

// lose records an object that now has another owner, for the transition of its picture. An object
// that was not drawn as predicted needs no transition.
func (p *prediction) lose(d *predicted) {
	if d.o.Alive() && d.shown && !d.newOwner {
		p.lost = slices.DeleteFunc(p.lost, func(other *predicted) bool { return other.o == d.o })
		p.lost = append(p.lost, d)
		d.newOwner, d.lost = true, p.frame
	}
}

// pruneLost removes lost objects with a decayed offset.
func (p *prediction) pruneLost() {
	p.lost = slices.DeleteFunc(p.lost, func(d *predicted) bool { return !d.o.Alive() || p.frame-max(d.since, d.lost) >= d.by.smooth })
}
