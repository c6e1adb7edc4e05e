package client

import (
	"slices"
	"unsafe"

	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/netvar"
)

// A correction is right in the state at once, and in the picture after a while: what is drawn is
// the state, and an offset that was the whole correction at first and decays to nothing. A
// correction that comes meanwhile adds to what is left.

// remember notes what is drawn of an object before it is corrected.
func (c *Client) remember(d *predicted) {
	d.by.copy(d.was, d.live)
	c.shift(d, d.was)
	v := d.values(d.held)
	copy(d.before, v.Words)
}

// shift moves a state by what is left of the offset.
func (c *Client) shift(d *predicted, v unsafe.Pointer) {
	left := 1 - float64(c.prediction.frame-d.since)/float64(max(d.by.smooth, 1))
	if d.offside = d.offside && left > 0; d.offside {
		d.plan.Shift(v, d.offset, left)
	}
}

// smoothen lets the picture go over from what was remembered to what is right now.
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

// goOver lets the picture go over from one state to another.
func (c *Client) goOver(d *predicted, was, is unsafe.Pointer) {
	d.offside, d.since = d.by.smooth > 0 && (d.by.snap == nil || !d.by.snap(was, is)), c.prediction.frame
	if d.offside {
		d.plan.Apart(d.offset, was, is)
	}
}

// drawn returns what is to be drawn of an object whose class is predicted, and nil if that is not
// shown. Of the client's own that is what is predicted, and nothing once it has despawned; of
// others it is what a view shows of those.
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

// draw writes into a copy of the live state what is to be drawn in this frame, but for the offset:
// what lies between the two newest steps, or beyond them if no newer one ran for the object.
func (c *Client) draw(d *predicted, v unsafe.Pointer) {
	if last := d.held; last > 0 && d.has(last-1) {
		from, to := d.values(last-1), d.values(last)
		since := max(c.prediction.last, last) - last
		d.plan.Between(v, &to, &from, &to, c.now.Fraction+float64(since))
	}
}

// An object that changes hands is drawn in another time from one frame to the next: the own ones
// are drawn in the future, and the others in the past. The picture goes over as after a correction,
// from what was drawn of it in the frame that shows the change first.

// drawnOfOthers is what a view shows of an object that is not the client's, or was not until now.
// While it goes over from what was predicted, that is written to v.
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

// handOver lets the picture go over from what was drawn before to what is drawn now.
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

// lose takes an object that is the client's no more. One that was not drawn as such is drawn as
// before.
func (p *prediction) lose(d *predicted) {
	if d.o.Alive() && d.shown && !d.handed {
		p.lost = slices.DeleteFunc(p.lost, func(other *predicted) bool { return other.o == d.o })
		p.lost = append(p.lost, d)
		d.handed, d.lost = true, p.frame
	}
}

// forgetLost forgets the objects that were lost so long ago that nothing is left of the offset.
func (p *prediction) forgetLost() {
	p.lost = slices.DeleteFunc(p.lost, func(d *predicted) bool { return !d.o.Alive() || p.frame-max(d.since, d.lost) >= d.by.smooth })
}
