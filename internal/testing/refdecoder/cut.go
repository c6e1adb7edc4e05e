package refdecoder

// Cut shortens a packet to at most n of its records, all of them valid. With random bits after a
// valid header it makes unusual packets of which many records are valid. It returns nil if no
// record is valid.
func (r *Reader) Cut(packet []byte, n int) (cut []byte) {
	var err error
	size := 0 // bits of the valid records
	head := 0 // bytes before them
	func() {
		defer caught(&err)
		in := &byteReader{packet}
		h, _ := in.header(r.Tick)
		head = len(packet) - len(in.b)
		bits := newBitReader(in.b, 0)
		x := bits.context(h.tick)
		for range n {
			bits.record(&x, r.Classes, r.shown)
			size = bits.at
		}
	}()
	if size == 0 {
		return nil
	}
	cut = append(cut, packet[:head+(size+7)/8]...)
	const flags, atPadding = 1, 5
	cut[flags] = cut[flags]&(1<<atPadding-1) | byte(-size&7)<<atPadding
	return cut
}
