package client

import (
	"github.com/netloop/netloop"
	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/netvar"
)

// The prediction for a step is compared with the server's state after that step. The client has the
// server's state of an object in two cases only. An object that is in no packet may be unchanged,
// but the packet may also be lost, or the object waits for its turn in the budget.
//
//   - A packet of tick T contains a version of the object: it is the newest one at T, so the server
//     has this version at T.
//   - A whole snapshot reports that the client has all objects as of tick R, and no packet is lost
//     or in flight: every packet has arrived since the last gap in their numbers, and the server
//     knew of that gap when it made the snapshot, because the snapshot starts from a later
//     acknowledgement by the client (netvar.Applied.AsOf). Changes lost before that are then unsent
//     again, and count in R. So the client has the server's version of every object at R.
//
// In between the client predicts on. With 5 % loss the second case is met by every other snapshot.

// learn processes the metadata of an applied packet. It runs after the watchers.
func (c *Client) learn(a *netvar.Applied) {
	p := &c.prediction
	if len(p.classes) == 0 {
		return
	}
	p.applied = true
	c.adoptOwned(a.Tick)
	certain := a.SnapshotComplete && c.reception.gapless(a.AsOf)
	for _, by := range p.classes {
		for _, d := range by.objects {
			switch version := d.o.Changed(); {
			case d.birth.awaited:
				continue
			case version != d.version:
				d.version, d.known = version, max(d.known, a.Tick)
			}
			if certain {
				d.known = max(d.known, a.Reached)
			}
		}
	}
	if certain {
		c.withdraw(c.time.timeline.FixedSteps(a.Reached))
	}
}

// adoptOwned begins to predict objects that now belong to the client. A packet of this tick
// contained a record of each, because ownership is part of a record.
func (c *Client) adoptOwned(tick uint64) {
	if c.id == 0 {
		return
	}
	for o := range c.replica.OwnedHere(uint64(c.id)) {
		if by := c.prediction.of(o.Class()); by != nil && c.prediction.objects[o] == nil {
			c.adopt(by, o, tick)
		}
	}
}

// adopt begins to predict an object. The server has the client's version of it at tick known.
func (c *Client) adopt(by *predictor, o *netvar.Object, known uint64) *predicted {
	d := newPredicted(by, o, c.prediction.kept)
	d.version, d.known = o.Changed(), known
	d.shown, d.handed = o.Shown, o.Shown
	by.insert(d)
	c.prediction.objects[o] = d
	v := o.Newest()
	d.plan.Restore(d.live, &v, nil)
	return d
}

// reconcile compares the predictions with the server's states that arrived, once a frame.
func (c *Client) reconcile() {
	p := &c.prediction
	p.frame = c.clock.Now()
	p.forgetLost()
	if !p.applied && p.again == 0 {
		return
	}
	for _, by := range p.classes {
		by.prune(c)
	}
	if p.again > 0 { // Before they are compared.
		c.replay(min(p.again-1, p.last))
		p.again = 0
	}
	p.applied = false
	if told := &c.inputs.told; told.Missed != p.missed || told.Early < 0 {
		p.missed, p.lateAt = told.Missed, c.time.timeline.FixedSteps(c.time.tick)
	}
	from, any := p.last, false
	for _, by := range p.classes {
		for _, d := range by.objects {
			if !d.birth.awaited && d.known > d.judged {
				if step := c.time.timeline.FixedSteps(d.known); c.judge(d, step) {
					from, any = min(from, step), true
				}
			}
		}
	}
	c.timeOut()
	if any {
		c.replay(from)
	}
}

// judge compares the prediction for a step with the server's state, and reports whether the object
// has to be corrected.
func (c *Client) judge(d *predicted, step uint64) (wrong bool) {
	p := &c.prediction
	d.judged = d.known
	now := d.o.Newest()
	if d.has(step) {
		was := d.values(step)
		if !d.plan.Shows(&was, &now) {
			d.base = max(d.base, step)
			return false
		}
		p.stats.Mispredicted++
		if p.lateAt > d.base {
			p.stats.MispredictedLate++
		}
		d.by.count(d.plan, &was, &now)
	} else if step+p.kept <= p.last && d.newest > 0 {
		return false // It is too old to continue from. A newer state will arrive.
	}
	d.wrong, d.base = true, step
	return true
}

// replay resets all objects to a step, applies the server's state to mispredicted objects, and runs
// the steps after it again.
func (c *Client) replay(from uint64) {
	p := &c.prediction
	if from+p.kept <= p.last {
		from = p.last - p.kept + 1
	}
	for _, by := range p.classes {
		for _, d := range by.objects {
			c.remember(d)
			if d.birth.step > from && d.birth.inStep {
				d.birth.unborn = d.birth.awaited
			}
			if d.wrong {
				now := d.o.Newest()
				d.put(d.base, &now)
			}
			d.back(from)
		}
	}
	for step := from + 1; step <= p.last; step++ {
		c.run(c.tick.Tick.(*netloop.Tick), step)
		p.stats.Replayed++
	}
	for _, by := range p.classes {
		for _, d := range by.objects {
			d.wrong = false
			c.smoothen(d)
		}
	}
	c.withdrawIf(func(b *birth) bool { return b.unborn })
}

// predictFrom restarts prediction at a step and drops later predictions. If no prediction of the
// step is stored, it continues from the server's last state.
func (c *Client) predictFrom(step uint64) {
	p := &c.prediction
	p.last = step
	for _, by := range p.classes {
		for _, d := range by.objects {
			c.remember(d)
			switch {
			case d.has(step):
				d.back(step)
			case !d.birth.awaited:
				now := d.o.Newest()
				d.put(step, &now)
			}
			c.smoothen(d)
		}
	}
	c.timeOut()
}

// forgetPrediction restarts prediction in another room, or as another client.
func (c *Client) forgetPrediction() {
	p := &c.prediction
	for _, by := range p.classes {
		by.prune(c)
	}
	p.last, p.again, p.missed, p.lateAt = 0, 0, 0, 0
	c.timeOut()
}

// count counts the fields that were predicted wrongly.
func (by *predictor) count(p *codec.Plan, was, is *codec.Values) {
	for i := range p.Leaves() {
		if p.Shown(i) && p.Differs(i, was, is) {
			by.wrong[p.LeafName(i)]++
		}
	}
}

// insert inserts an object in order: objects that the server has by id, unconfirmed ones after
// them.
func (by *predictor) insert(d *predicted) {
	i := len(by.objects)
	for i > 0 && !d.birth.awaited && (by.objects[i-1].birth.awaited || by.objects[i-1].o.ID() > d.o.ID()) {
		i--
	}
	by.objects = append(by.objects, nil)
	copy(by.objects[i+1:], by.objects[i:])
	by.objects[i] = d
}

// prune removes objects that no longer exist. Objects that passed to another owner are marked lost.
func (by *predictor) prune(c *Client) {
	kept := by.objects[:0]
	for _, d := range by.objects {
		if d.o.Alive() && d.o.Owner() == uint64(c.id) {
			kept = append(kept, d)
		} else {
			delete(c.prediction.objects, d.o)
			c.prediction.lose(d)
		}
	}
	clear(by.objects[len(kept):])
	by.objects = kept
}
