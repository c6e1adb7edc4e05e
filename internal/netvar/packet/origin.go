package packet

// Origin is the set of acked ticks, ticks with an acknowledged packet, on which the records of a
// packet are based: the client's state as of AsOf, extrapolated by the trend from TrendFrom to
// AsOf. If Bent is set, a third acked tick, as long before TrendFrom, gives the change of that
// trend.
type Origin struct {
	AsOf, TrendFrom uint64
	Bent            bool
}

// Oldest returns the oldest acked tick of the origin.
func (from Origin) Oldest() uint64 {
	if from.Bent {
		return from.ThirdBack()
	}
	return from.TrendFrom
}

// Kept returns the tick from which the client keeps versions after a record of this origin. It is
// the tick at which the third acked tick would be, even if this origin has no third acked tick:
// otherwise no later origin could have one.
func (from Origin) Kept() uint64 { return from.ThirdBack() }

func (from Origin) ThirdBack() uint64 {
	return from.TrendFrom - min(from.AsOf-from.TrendFrom, from.TrendFrom)
}
