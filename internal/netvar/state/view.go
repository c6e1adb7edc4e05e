package state

// View is the set of fields of an object that a client may read, and the tick from which it may.
// The zero view has all fields since the start of the lifetime.
type View struct {
	Since    uint64 // tick of the last change of the view within the lifetime, 0 = none
	Withheld Rules
}

// Version returns the tick of the newest change in the view, or the tick at which the view changed
// if that is later, so that versions never decrease within a lifetime.
func (v View) Version(o *Object) uint64 {
	if v.Withheld == 0 {
		return max(v.Since, o.changed)
	}
	newest := max(v.Since, o.Fields[0])
	for i, rule := range o.class.reads.rule {
		if v.Withheld>>rule&1 == 0 {
			newest = max(newest, o.Fields[1+i])
		}
	}
	return newest
}

// AsOf returns the version that the view had at a tick, or 0 if it can no longer be derived.
// Versions with equal readable fields count as one version, even if the first of them was dropped.
func (v View) AsOf(o *Object, tick uint64) uint64 {
	if tick < v.Since {
		return 0
	}
	if newest := v.Version(o); newest <= tick {
		return newest
	}
	i := o.Floor(tick, v.Withheld)
	if i < 0 {
		return 0
	}
	if v.Withheld != 0 {
		for i > 0 && o.class.looksSame(&o.Hist, i, i-1, v.Withheld) {
			i--
		}
		if first := o.Hist.Tick(0); i == 0 && o.Hist.Evicted && first != o.Born && first > v.Since {
			return 0
		}
		if i == 0 {
			return max(v.Since, o.oldest(v.Withheld))
		}
	}
	return max(v.Since, o.Hist.Tick(i))
}

// NoteDropped compares the versions that the capture of a tick is about to drop with their
// successors. It updates began, the tick from which the oldest kept version has its values.
func (o *Object) NoteDropped(tick uint64) {
	if o.Published() && o.Hist.oldest+Horizon < tick { // small, so that the compiler inlines it
		o.noteDropped(tick)
	}
}

func (o *Object) noteDropped(tick uint64) {
	if o.began == nil {
		o.began = make([]uint64, len(o.class.reads.rules))
		for rule := range o.began {
			o.began[rule] = o.Born
		}
	}
	h, c := &o.Hist, o.class
	for i := 1; i < int(h.n) && h.Tick(i)+Horizon <= tick; i++ {
		a, b := h.Values(i-1), h.Values(i)
		if c.Owner(&a) != c.Owner(&b) {
			o.began[0] = h.Tick(i)
		}
		for leaf, rule := range c.reads.rule {
			if !c.plan.Same(leaf, &a, &b) {
				o.began[rule] = h.Tick(i)
			}
		}
	}
}

// oldest returns the tick from which the readable fields have the values of the oldest kept
// version. Changes of other fields are ignored, so they do not drop a baseline of the client.
func (o *Object) oldest(withheld Rules) (tick uint64) {
	if o.began == nil {
		return o.Born
	}
	for rule, began := range o.began {
		if withheld>>rule&1 == 0 {
			tick = max(tick, began)
		}
	}
	return tick
}

// Floor returns the index of the version that was the newest at a tick, as History.Floor does. If
// that version was dropped, it returns the index of the oldest kept version, provided that its
// readable fields have not changed since the tick.
func (o *Object) Floor(tick uint64, withheld Rules) int {
	i := o.Hist.Floor(tick, o.changed)
	if i < 0 && withheld != 0 && !o.Hist.Evicted && tick >= o.oldest(withheld) {
		return 0
	}
	return i
}
