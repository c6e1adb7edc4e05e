package netvar

// Audience says which clients may see an object. It is asked at the capture after an object was
// given it, after [World.Judge] and [World.JudgeFor], and for a client that has joined: not each
// tick. Of what lies in a space it is asked for those near enough.
type Audience interface{ Includes(p *Peer) bool }

// SetAudience lets only the clients of the audience have o; nil is everybody, as it is at first.
// It counts from the next capture on, so hiding and showing before it is nothing.
func (w *World) SetAudience(o *Object, a Audience) {
	if !o.alive {
		return
	}
	w.setAudience(o.id.slot(), a)
	w.Judge(o)
}

// setAudience keeps the audience by slot: objects are the same on clients, which have none, and
// what they do not need costs them cache.
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

// Audience returns what SetAudience has set for a living object.
func (w *World) Audience(o *Object) Audience {
	if slot := o.id.slot(); slot < len(w.audiences) {
		return w.audiences[slot]
	}
	return nil
}

// Judge lets the next capture ask the audience of o again, and the rules of its fields. The capture
// that publishes it asks them anyway.
func (w *World) Judge(o *Object) {
	if o.judge || !o.alive || !o.published() {
		return
	}
	o.judge = true
	w.unjudged = append(w.unjudged, o)
}

// JudgeFor lets the next capture ask the audience of o, and the rules of its fields, again for one
// client alone.
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

// admits asks the audience. One that asks for the observers of its own object gets what holds
// so far.
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

// judge gives each peer what it may see of what is to be judged, and takes what it may not. An
// object that is published in this very capture has been judged by that.
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

// judgeDoubted asks for the pairs that JudgeFor has noted.
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
			// An older version would tell when the object changed while it was hidden.
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

// publish makes the object known to those who may see it. What lies in a space is judged once the
// eyes are where they shall be, and then for those who are near.
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

// hide ends the lifetime of an object that lives on: its changes are owed no more.
func (p *Peer) hide(slot int, tick uint64) {
	p.retire(slot, tick)
	p.hidden.set(slot)
}

// shows reports whether the client shall have the object as of the last judgement.
func (p *Peer) shows(o *Object) bool {
	slot := o.id.slot()
	return slot < len(p.entries) && p.entries[slot].phase == shown
}

// owe adds what has changed to what is owed, unless it is hidden.
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
