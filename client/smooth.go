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
	if d.offside = false; d.by.smooth <= 0 || !d.shown || d.plan.Teleports(&was, &now) || d.by.snap != nil && d.by.snap(d.was, d.live) {
		return
	}
	d.plan.Apart(d.offset, d.was, d.live)
	d.offside, d.since = true, c.prediction.frame
}

// drawn returns what is to be drawn of an object whose class is predicted. It reports that the
// object is the client's own also of one that was when it despawned, with nil: it is not shown any
// more at all.
func (c *Client) drawn(by *predictor, o *netvar.Object) (v unsafe.Pointer, ours bool) {
	if d := c.prediction.objects[o]; d != nil && o.Alive() {
		by.copy(by.drawn, d.live)
		c.draw(d, by.drawn)
		return by.drawn, true
	}
	return nil, !o.Alive() && o.Owner() == uint64(c.id)
}

// draw writes into a copy of the live state what is to be drawn in this frame: what lies between
// the two newest steps, and the offset.
func (c *Client) draw(d *predicted, v unsafe.Pointer) {
	d.shown = true
	if last := d.held; last > 0 && d.has(last-1) {
		from, to := d.values(last-1), d.values(last)
		d.plan.Between(v, &to, &from, &to, c.now.Fraction)
	}
	c.shift(d, v)
}
