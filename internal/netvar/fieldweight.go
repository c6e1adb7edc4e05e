package netvar

// A field may have a weight (`net:"weight=4"`). Under a shortage an object is needed as much as
// the most needed of those of its fields that have changed since the version that the client has
// acknowledged. A change therefore counts until it is acknowledged, whether it is in flight or not.
// A change that was taken back counts too, because the client may have the value in between. A
// field that the client may not read never counts: from when a record comes the client could tell
// that the field has changed.

// setFieldWeights keeps the weights of the tags. Most classes have none, and keep nothing.
func (c *Class) setFieldWeights() {
	for _, p := range c.plan.Weights() {
		c.fieldWeights = append(c.fieldWeights, fixed(p))
	}
}

// changedWeight returns the largest weight of the fields that have changed since a version and
// that may be read; of the version 0 all fields count as changed. A change of owner has weight 1,
// and so has an object without such a field, which is itself the news.
//
// It makes no difference whether the history still has the version. Without it the record is a full
// one, but the client lacks the same fields as before. If a full record counted as a change of all
// fields, an object that changes all the time would be needed most as soon as its baseline is
// Horizon ticks old.
func (o *Object) changedWeight(base uint64, withheld Rules) uint32 {
	most := uint32(0)
	if base != 0 && o.fields[0] > base {
		most = weightOne
	}
	for i, p := range o.class.fieldWeights {
		if o.fields[1+i] > base && !o.class.ruled(1+i, withheld) {
			most = max(most, p)
		}
	}
	if most == 0 {
		return weightOne
	}
	return most
}
