package client

import (
	"slices"
	"unsafe"

	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/netvar"
)

// A correction applies to the state at once, and to the picture gradually: the drawn state is the
// predicted state plus an offset, which is the whole correction at first and decays to zero. A
// further correction adds to the remaining offset.

// remember stores the drawn state of an object before it is corrected.
func (c *Client) remember(d *predicted) {
	d.by.copy(d.was, d.live)
	c.shift(d, d.was)
	v := d.values(d.held)
	copy(d.before, v.Words)
}

// shift moves a state by the remaining offset.
func (c *Client) shift(d *predicted, v unsafe.Pointer) {
	left := 1 - float64(c.prediction.frame-d.since)/float64(max(d.by.smooth, 1))
	if d.offside = d.offside && left > 0; d.offside {
		d.plan.Shift(v, d.offset, left)
	}
}

// smoothen starts the transition of the picture from the remembered to the corrected state.
func (c *Client) smoothen(d *predicted) {
	now := d.values(d.held)
	if slices.Equal(d.before, now.Words) {
		return
	}
	was := codec.Values{Words: d.before, Blobs: now.Blobs}
	if d.offside = false; d.shown && !d.plan.Teleports(&was, &now) {
		c.goOver(d, d.was, d.live)
	}
}

// goOver starts the transition of the picture from one state to another.
func (c *Client) goOver(d *predicted, was, is unsafe.Pointer) {
	d.offside, d.since = d.by.smooth > 0 && (d.by.snap == nil || !d.by.snap(was, is)), c.prediction.frame
	if d.offside {
		d.plan.Apart(d.offset, was, is)
	}
}

// drawn returns the state to draw of an object of a predicted class, and nil if it is not
// drawn. For the client's own objects that is the prediction, and nil once the object has
// despawned; for others it is the state of their view.
func (c *Client) drawn(by *predictor, o *netvar.Object) unsafe.Pointer {
	if d := c.prediction.objects[o]; d != nil && o.Alive() {
		by.copy(by.drawn, d.live)
		c.draw(d, by.drawn)
		if d.handed {
			d.handed = false
			if was := c.drawnOfOthers(by, o, by.spare); was != nil {
				c.handOver(d, was, by.drawn)
			}
		}
		c.shift(d, by.drawn)
		d.shown = true
		return by.drawn
	}
	if !o.Alive() && o.Owner() == uint64(c.id) {
		return nil
	}
	o.Shown = true
	return c.drawnOfOthers(by, o, by.drawn)
}

// draw writes the state for this frame into a copy of the live state, without the offset: between
// the two newest steps, or beyond them if no newer one ran for the object.
func (c *Client) draw(d *predicted, v unsafe.Pointer) {
	if last := d.held; last > 0 && d.has(last-1) {
		from, to := d.values(last-1), d.values(last)
		since := max(c.prediction.last, last) - last
		d.plan.Between(v, &to, &from, &to, c.now.Fraction+float64(since))
	}
}

// When the owner of an object changes, its drawn time jumps from one frame to the next: own objects
// are drawn in the future, others in the past. The picture makes a transition as after a
// correction, from the state drawn in the frame that first shows the change.

// drawnOfOthers returns the view of an object that is not the client's, or was not until now.
// During the transition from the prediction, the state is written to v.
func (c *Client) drawnOfOthers(by *predictor, o *netvar.Object, v unsafe.Pointer) unsafe.Pointer {
	is := c.viewOther(o)
	for _, d := range c.prediction.lost {
		if d.o == o && is != nil {
			by.copy(v, is)
			if d.handed {
				d.handed = false
				by.copy(d.was, d.live)
				c.draw(d, d.was)
				c.shift(d, d.was)
				c.handOver(d, d.was, v)
			}
			c.shift(d, v)
			return v
		}
	}
	return is
}

// handOver starts the transition of the picture from the previously drawn state to the one drawn
// now.
func (c *Client) handOver(d *predicted, was, is unsafe.Pointer) {
	if d.plan.HasTeleports() {
		before, now := captured(d.plan, was), captured(d.plan, is)
		if d.plan.Teleports(&before, &now) {
			d.offside = false
			return
		}
	}
	c.goOver(d, was, is)
}

func captured(p *codec.Plan, s unsafe.Pointer) codec.Values {
	v := codec.Values{Words: make([]uint64, p.Words()), Blobs: make([][]byte, p.Blobs())}
	p.Capture(s, &v)
	return v
}

// lose records an object that is no longer the client's. An object that was not drawn as predicted
// needs no transition.
func (p *prediction) lose(d *predicted) {
	if d.o.Alive() && d.shown && !d.handed {
		p.lost = slices.DeleteFunc(p.lost, func(other *predicted) bool { return other.o == d.o })
		p.lost = append(p.lost, d)
		d.handed, d.lost = true, p.frame
	}
}

// forgetLost removes lost objects with a decayed offset.
func (p *prediction) forgetLost() {
	p.lost = slices.DeleteFunc(p.lost, func(d *predicted) bool { return !d.o.Alive() || p.frame-max(d.since, d.lost) >= d.by.smooth })
}
