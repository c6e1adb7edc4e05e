package netvar

// A field may have a weight (`net:"weight=4"`). Under a shortage the field weight of an object is
// the largest weight of the fields that have changed since the version that the client has
// acknowledged. A change therefore counts until it is acknowledged, whether it is in flight or not.
// A reverted change counts too, because the client may have the value in between. A field that the
// client may not read never counts: the time of a record would reveal that the field has changed.

// setFieldWeights stores the weights of the tags; nil if no field has one, as in most classes.
func (c *Class) setFieldWeights() {
	for _, p := range c.plan.Weights() {
		c.fieldWeights = append(c.fieldWeights, fixed(p))
	}
}

// changedWeight returns the largest weight of the readable fields that have changed since version
// base. If base is 0, all fields count as changed. A change of owner has weight 1. So has an object
// without changed fields: its existence is the change.
//
// The result does not depend on whether the history still has the version. Without it the record is
// a full one, but the client lacks the same fields as before. If a full record counted as a change
// of all fields, an object that changes all the time would get the highest priority as soon as its
// baseline is Horizon ticks old.
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
