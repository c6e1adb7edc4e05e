package wire

// WidenTick returns the tick nearest to near with the low 32 bits low. It is exact while the two
// are less than 2^31 ticks apart (414 days at 60 Hz). Below tick 2^31 there is no earlier wrap, so
// for an early near (0: no tick received yet) it returns low unchanged.
func WidenTick(near uint64, low uint32) uint64 {
	d := int32(low - uint32(near))
	if d < 0 && near < uint64(-int64(d)) {
		return near + uint64(uint32(d))
	}
	return near + uint64(int64(d))
}
