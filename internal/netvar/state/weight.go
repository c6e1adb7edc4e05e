package state

// Weights are fixed-point numbers, so that the order is the same on every machine.
const (
	WeightOne = 1 << 10

	// MinWeight and MaxWeight bound the weight of an object. The default weight is 1.
	MinWeight, MaxWeight = 1.0 / 64, 64
)

// FixedWeight converts a weight to fixed point. NaN is converted to MinWeight.
func FixedWeight(weight float64) uint32 {
	if !(weight > MinWeight) {
		weight = MinWeight
	}
	return uint32(min(weight, MaxWeight) * WeightOne)
}

// A field may have a weight (`net:"weight=4"`). Under a shortage the field weight of an object is
// the largest weight of the fields that have changed since the version that the client has
// acknowledged. A change therefore counts until it is acknowledged, even while it is in flight. A
// reverted change counts too, because the client may have the intermediate value. A field that the
// client may not read never counts, because the time of a record would reveal that the field has
// changed.

// setFieldWeights stores the weights of the tags; nil if no field has one, as in most classes.
func (c *Class) setFieldWeights() {
	for _, p := range c.plan.Weights() {
		c.fieldWeights = append(c.fieldWeights, FixedWeight(p))
	}
}

// HasFieldWeights reports whether a field has a weight other than 1.
func (c *Class) HasFieldWeights() bool { return c.fieldWeights != nil }

// ChangedWeight returns the largest weight of the readable fields that have changed since version
// base. If base is 0, all fields count as changed. A change of owner has weight 1, and so has an
// object without changed fields.
//
// The result does not depend on whether the history still has the version. Without the version the
// record is a full one, but the client lacks the same fields. If a full record counted as a change
// of all fields, an object that changes all the time would get the highest priority as soon as its
// baseline is Horizon ticks old.
func (o *Object) ChangedWeight(base uint64, withheld Rules) uint32 {
	most := uint32(0)
	if base != 0 && o.Fields[0] > base {
		most = WeightOne
	}
	for i, p := range o.class.fieldWeights {
		if o.Fields[1+i] > base && !o.class.Withheld(1+i, withheld) {
			most = max(most, p)
		}
	}
	if most == 0 {
		return WeightOne
	}
	return most
}
