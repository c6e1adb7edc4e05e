package client

import (
	"time"

	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/netvar/replica"
	"github.com/netloop/netloop/internal/netvar/state"
)

// The prediction for a step is compared with the server's state after that step. The client knows
// the server's state of an object only in two cases. If an object is in no packet, it may be
// unchanged; but its packet may also be lost, or the object may wait for its turn in the budget.
//
//   - A packet of tick T contains a version of the object: it is the newest one at T, so the server
//     has this version at T.
//   - A whole snapshot reports that the client has all objects as of tick R, and no packet is lost
//     or in flight: every packet has arrived since the last gap in their numbers, and the server
//     knew of that gap when it made the snapshot, because the snapshot starts from a later
//     acknowledgement by the client (replica.Applied.AsOf). The server counts changes lost before
//     that as unsent, and R stays before them until they are sent again. So the client has the
//     server's version of every object at R.
//
// Between these cases the client continues to predict. With 5 % loss, every other snapshot is an
// example of the second case.

// update processes the metadata of an applied packet; certain means that the client has all objects
// as of the tick that the packet has reached. It runs after the watchers.
func (p *prediction) update(a *replica.Applied, certain bool) {
	p.applied = true
	p.addOwned(a.Tick)
	for _, by := range p.classes {
		for _, d := range by.objects {
			switch version := d.o.Changed(); {
			case d.spawn.unconfirmed:
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
		reached := p.time.timeline.FixedSteps(a.Reached)
		p.withdrawIf(func(b *spawnInfo) bool { return b.step <= reached })
	}
}

// addOwned begins to predict objects that now belong to the client. A packet of this tick
// contained a record of each, because ownership is part of a record.
func (p *prediction) addOwned(tick uint64) {
	if p.conn.id == 0 {
		return
	}
	for o := range p.replica.OwnedHere(uint64(p.conn.id)) {
		if by := p.of(o.Class()); by != nil && p.objects[o] == nil {
			p.add(by, o, tick)
		}
	}
}

// add begins to predict an object. At tick known the server has the client's version of the object.
func (p *prediction) add(by *predictor, o *state.Object, known uint64) *predicted {
	d := newPredicted(by, o, p.window)
	d.version, d.known = o.Changed(), known
	d.shown, d.newOwner = o.Shown, o.Shown
	by.insert(d)
	p.objects[o] = d
	v := o.Newest()
	d.plan.Restore(d.live, &v, nil)
	return d
}

// reconcile compares the predictions with the server's states that arrived, once a frame.
func (p *prediction) reconcile() {
	p.frame = p.clock.Now()
	p.pruneLost()
	if !p.applied && p.rerunFrom == 0 {
		return
	}
	for _, by := range p.classes {
		p.prune(by)
	}
	if p.rerunFrom > 0 { // Rerun these steps before they are compared.
		p.replay(min(p.rerunFrom-1, p.last))
		p.rerunFrom = 0
	}
	p.applied = false
	if status := &p.inputs.status; status.Missed != p.missed || status.Early < 0 {
		p.missed, p.lateAt = status.Missed, p.time.timeline.FixedSteps(p.time.tick)
	}
	from, any := p.last, false
	for _, by := range p.classes {
		for _, d := range by.objects {
			if !d.spawn.unconfirmed && d.known > d.compared {
				if step := p.time.timeline.FixedSteps(d.known); p.compare(d, step) {
					from, any = min(from, step), true
				}
			}
		}
	}
	p.expireSpawns()
	if any {
		p.replay(from)
	}
}

// compare compares the prediction for a step with the server's state, and reports whether the
// object has to be corrected.
func (p *prediction) compare(d *predicted, step uint64) (wrong bool) {
	d.compared = d.known
	now := d.o.Newest()
	if d.has(step) {
		was := d.values(step)
		if !d.plan.Shows(&was, &now) {
			d.base = max(d.base, step)
			return false
		}
		p.stats.Prediction.Mispredicted++
		if p.lateAt > d.base {
			p.stats.Prediction.MispredictedLate++
		}
		d.by.count(d.plan, &was, &now)
	} else if step+p.window <= p.last && d.newest > 0 {
		return false // It is too old to continue from. A newer state will arrive.
	}
	d.wrong, d.base = true, step
	return true
}

// replay resets all objects to a step, applies the server's state to mispredicted objects, and runs
// the steps after it again.
func (p *prediction) replay(from uint64) {
	if from+p.window <= p.last {
		from = p.last - p.window + 1
	}
	for _, by := range p.classes {
		for _, d := range by.objects {
			d.saveDrawn(p.frame)
			if d.spawn.step > from && d.spawn.inStep {
				d.spawn.pending = d.spawn.unconfirmed
			}
			if d.wrong {
				now := d.o.Newest()
				d.put(d.base, &now)
			}
			d.back(from)
		}
	}
	for step := from + 1; step <= p.last; step++ {
		p.run(p.current(), step)
		p.stats.Prediction.Replayed++
	}
	for _, by := range p.classes {
		for _, d := range by.objects {
			d.wrong = false
			d.smooth(p.frame)
		}
	}
	p.withdrawIf(func(b *spawnInfo) bool { return b.pending })
}

// restartAt restarts prediction at a step and drops later predictions. If no prediction of the
// step is stored, it continues from the server's last state.
func (p *prediction) restartAt(step uint64) {
	p.last = step
	for _, by := range p.classes {
		for _, d := range by.objects {
			d.saveDrawn(p.frame)
			switch {
			case d.has(step):
				d.back(step)
			case !d.spawn.unconfirmed:
				now := d.o.Newest()
				d.put(step, &now)
			}
			d.smooth(p.frame)
		}
	}
	p.expireSpawns()
}

// reset restarts prediction in another room, or as another client.
func (p *prediction) reset() {
	for _, by := range p.classes {
		p.prune(by)
	}
	p.last, p.rerunFrom, p.missed, p.lateAt = 0, 0, 0, 0
	p.atJoin = p.stats.Prediction.Mispredicted
	p.expireSpawns()
}

// reportEvery is the time between two reports of mispredictions. Each report has the number since
// the join, and it is repeated, so that a lost report does no harm.
const reportEvery = time.Second

// report tells the server the number of mispredictions since the join, if there are any.
func (p *prediction) report(now time.Duration) {
	if n := p.stats.Prediction.Mispredicted - p.atJoin; n > 0 && now >= p.reportFrom {
		p.reportFrom = now + reportEvery
		p.conn.session.TellMispredicted(n)
	}
}

// count counts the fields that were predicted wrongly.
func (by *predictor) count(p *codec.Plan, was, is *codec.Values) {
	for i := range p.Leaves() {
		if p.Shown(i) && p.Differs(i, was, is) {
			by.wrong[p.LeafName(i)]++
		}
	}
}

// insert inserts an object in order: objects that the server has are sorted by id, and unconfirmed
// objects follow.
func (by *predictor) insert(d *predicted) {
	i := len(by.objects)
	for i > 0 && !d.spawn.unconfirmed && (by.objects[i-1].spawn.unconfirmed || by.objects[i-1].o.ID() > d.o.ID()) {
		i--
	}
	by.objects = append(by.objects, nil)
	copy(by.objects[i+1:], by.objects[i:])
	by.objects[i] = d
}

// prune removes objects that no longer exist. Objects that got another owner are marked lost.
func (p *prediction) prune(by *predictor) {
	kept := by.objects[:0]
	for _, d := range by.objects {
		if d.o.Alive() && d.o.Owner() == uint64(p.conn.id) {
			kept = append(kept, d)
		} else {
			delete(p.objects, d.o)
			p.lose(d)
		}
	}
	clear(by.objects[len(kept):])
	by.objects = kept
}
