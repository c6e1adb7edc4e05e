package netvar

// Audience decides which clients may see an object. It is called at the capture after SetAudience,
// after [World.Judge] and [World.JudgeFor], and for a new client; not each tick. For an object in a
// space it is called only for clients near enough.
type Audience interface{ Includes(p *Peer) bool }

// SetAudience makes o visible to the clients of the audience only; nil, the default, means all
// clients. It takes effect with the next capture, so hiding and showing an object before that has
// no effect.
func (w *World) SetAudience(o *Object, a Audience) {
	if !o.alive {
		return
	}
	w.setAudience(o.id.slot(), a)
	w.Judge(o)
}

// setAudience stores the audience by slot instead of in Object: objects of clients have none, and
// unused fields would cost cache there.
func (w *World) setAudience(slot int, a Audience) {
	if a == nil {
		if w.guarded.unset(slot); slot < len(w.audiences) {
			w.audiences[slot] = nil
		}
		return
	}
	for len(w.audiences) <= slot {
		w.audiences = append(w.audiences, nil)
	}
	w.audiences[slot] = a
	w.guarded.set(slot)
}

// Audience returns the audience set by SetAudience for a living object.
func (w *World) Audience(o *Object) Audience {
	if slot := o.id.slot(); slot < len(w.audiences) {
		return w.audiences[slot]
	}
	return nil
}

// Judge makes the next capture ask the audience of o and the rules of its fields again. It has no
// effect before the object is published, because that asks them anyway.
func (w *World) Judge(o *Object) {
	if o.judge || !o.alive || !o.published() {
		return
	}
	o.judge = true
	w.unjudged = append(w.unjudged, o)
}

// JudgeFor is Judge for one client only.
func (w *World) JudgeFor(o *Object, p *Peer) {
	if o.judge || p.fresh || !o.alive || !o.published() {
		return
	}
	p.doubted.set(o.id.slot())
	if !p.doubtful {
		p.doubtful = true
		w.doubtful = append(w.doubtful, p)
	}
}

// Guarded iterates over the living objects with an audience, in id order.
func (w *World) Guarded(yield func(*Object) bool) {
	for slot := w.guarded.next(0); slot >= 0; slot = w.guarded.next(slot + 1) {
		if !yield(w.slots[slot]) {
			return
		}
	}
}

// admits asks the space and the audience. If an audience asks for the observers of its own object,
// it gets the result of the last check.
func (w *World) admits(o *Object, p *Peer) bool {
	if s := w.positions[o.class.index].space; s != nil && !s.admits(o, p) {
		return false
	}
	a := w.Audience(o)
	if a == nil {
		return true
	}
	if o.asking {
		return p.shows(o)
	}
	o.asking = true
	ok := a.Includes(p)
	o.asking = false
	return ok
}

// judge shows and hides objects as their audiences and spaces decide now. Objects outside of a
// space that this capture publishes were judged by publish.
func (w *World) judge() {
	for _, s := range w.spaces {
		s.moveEyes()
	}
	for _, p := range w.fresh {
		for slot := p.hidden.next(0); slot >= 0; slot = p.hidden.next(slot + 1) {
			if o := w.slots[slot]; o.published() && !o.judge {
				w.judgeFor(o, p)
			}
		}
		p.fresh = false
	}
	clear(w.fresh)
	w.fresh = w.fresh[:0]
	w.judgeDoubted()
	for _, o := range w.newborn {
		w.askRules(o)
		w.positions[o.class.index].space.suspectAround(o)
	}
	for _, o := range w.unjudged {
		if o.judge = false; !o.alive || !o.published() {
			continue
		}
		w.askRules(o)
		for _, p := range w.peers {
			w.judgeFor(o, p)
		}
	}
	clear(w.unjudged)
	w.unjudged = w.unjudged[:0]
	for _, s := range w.spaces {
		s.judgeSuspects()
	}
	for _, o := range w.newborn {
		o.judge = false
	}
	clear(w.newborn)
	w.newborn = w.newborn[:0]
}

// judgeDoubted judges the pairs of JudgeFor.
func (w *World) judgeDoubted() {
	for _, p := range w.doubtful {
		for slot := p.doubted.next(0); slot >= 0; slot = p.doubted.next(slot + 1) {
			if o := w.slots[slot]; o != nil && o.alive && o.published() && !o.judge {
				w.judgeFor(o, p)
			}
		}
		clear(p.doubted)
		p.doubtful = false
	}
	clear(w.doubtful)
	w.doubtful = w.doubtful[:0]
}

func (w *World) judgeFor(o *Object, p *Peer) {
	w.stats.Judged++
	slot := o.id.slot()
	switch may, has := w.admits(o, p), p.shows(o); {
	case may && !has:
		p.hidden.unset(slot)
		p.publish(slot, w.tick)
		w.beginView(o, p)
		if born := o.hist.n == 1 && o.changed == w.tick; born {
			return
		}
		if w.mayBeHidden(o) || p.joined != w.previous {
			// An older version would reveal when the object changed while it was hidden.
			p.views.turn(slot, w.tick)
		}
		if !p.fresh {
			p.entries[slot].full = fullVisible
		}
		w.stats.Shown++
	case may:
		w.review(o, p)
	case !may && has:
		p.hide(slot, w.tick)
		w.stats.Hidden++
	case !may:
		p.hidden.set(slot)
	}
}

// mayBeHidden reports whether an audience or a space decides which clients have the object.
func (w *World) mayBeHidden(o *Object) bool { return w.Audience(o) != nil || w.inSpace(o.class) }

// publish announces the object to the clients that may see it. Objects in a space are judged later
// in the capture, after the eyes have moved, and only for the clients near them.
func (w *World) publish(o *Object) {
	slot := o.id.slot()
	if w.inSpace(o.class) {
		o.judge = true
		w.newborn = append(w.newborn, o)
		for _, p := range w.peers {
			p.hidden.set(slot)
		}
		return
	}
	w.askRules(o)
	for _, p := range w.peers {
		if w.admits(o, p) {
			p.publish(slot, w.tick)
			w.beginView(o, p)
		} else {
			p.hidden.set(slot)
		}
	}
}

// hide ends the lifetime of a living object for the client, so its changes are not pending.
func (p *Peer) hide(slot int, tick uint64) {
	p.retire(slot, tick)
	p.hidden.set(slot)
}

// shows reports whether the object is visible to the client as of the last check.
func (p *Peer) shows(o *Object) bool {
	slot := o.id.slot()
	return slot < len(p.entries) && p.entries[slot].phase == shown
}

// owe marks the changed slots as pending, unless they are hidden.
func (p *Peer) owe(moved bitset) {
	moved = p.readable(moved)
	if len(p.hidden) == 0 {
		p.owed.or(moved)
		p.sentOnce.sub(moved)
		p.sentTwice.sub(moved)
		return
	}
	p.owed.orBut(moved, p.hidden)
	p.sentOnce.subBut(moved, p.hidden)
	p.sentTwice.subBut(moved, p.hidden)
}
