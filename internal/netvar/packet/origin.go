package packet

// Origin is the set of acked ticks, ticks with an acknowledged packet, that the records of a packet
// lead from: the client's state as of AsOf, extrapolated by the trend from TrendFrom to AsOf. If
// Bent is set, a third acked tick, as long before TrendFrom, gives the change of that trend.
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

// Kept returns the tick since which the client keeps versions after a record of this origin. It is
// the third acked tick, even if the origin has none: otherwise no later origin could have one.
func (from Origin) Kept() uint64 { return from.ThirdBack() }

func (from Origin) ThirdBack() uint64 {
	return from.TrendFrom - min(from.AsOf-from.TrendFrom, from.TrendFrom)
}
