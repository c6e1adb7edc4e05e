package netvar

// A field may have a priority (`net:"priority=4"`). Where not everything fits, an object is needed as much as the most
// needed of its fields that have changed since the version which the client has acknowledged. So a change counts until it is
// acknowledged, on its way or not, and one that was set back counts too: the client may have the value in between.
// What the client may not read raises nothing, or it could tell from when a record comes that there was a change.

// setPriorities keeps what the tags say. Most classes have none, and then nothing is kept and nothing looked for.
func (c *Class) setPriorities() {
	for _, p := range c.plan.Priorities() {
		c.priorities = append(c.priorities, fixed(p))
	}
}

// lacking returns the largest priority of the fields that have changed since a baseline, or, if that is 0, of all, among
// those that may be read. A change of owner has 1. Whether the version of the baseline is still there makes no difference:
// the record may have to be a full one, but what the client lacks is the same, and if a full one counted as all fields do,
// whatever changes all the time would be needed most as soon as its baseline is Horizon ticks old.
func (o *Object) lacking(base uint64, withheld Rules) uint32 {
	most := uint32(0)
	if base != 0 && o.fields[0] > base {
		most = weightOne
	}
	for i, p := range o.class.priorities {
		if p > most && o.fields[1+i] > base && !o.class.ruled(1+i, withheld) {
			most = p
		}
	}
	if most == 0 { // there is no such field: only the object itself is news
		return weightOne
	}
	return most
}
