package refdecoder

// Cut shortens a packet so that it ends behind some of its records, at most n, all of which are
// sound by themselves. With random bits behind a sound header it makes packets that nobody would
// write and that still come far. It returns nil if not even one record is sound.
func (r *Reader) Cut(packet []byte, n int) (cut []byte) {
	var err error
	size := 0 // bits of the sound records
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
