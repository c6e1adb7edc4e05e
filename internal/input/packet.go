package input

import (
	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/wire"
)

const (
	stepBits  = 16
	olderBits = 4
	headBits  = stepBits + olderBits + 1
)

// widen returns the step nearest to near with these lowest bits.
func widen(near, low uint64) uint64 {
	d := int64(int16(uint16(low) - uint16(near))) //nolint:gosec // That is what wraps.
	if d < 0 && near < uint64(-d) {
		return near + uint64(d+1<<stepBits)
	}
	return near + uint64(d)
}

// Reader reads packets, one after the other. It belongs to one goroutine.
type Reader struct {
	form  *Form
	bits  wire.BitReader
	left  int // inputs
	first bool
	gaps  bool
	step  uint64
	line  viewLine
	// The input that was read last, the one before it, and room for the next.
	now, newer, spare codec.Values
	drawn             bool // newer is an input of the packet
	scratch           []byte
}

// NewReader makes a reader of packets in this form.
func NewReader(f *Form) *Reader {
	return &Reader{form: f, now: f.values(), newer: f.values(), spare: f.values()}
}

// Begin begins a packet of a sender that is about at the step near.
func (r *Reader) Begin(packet []byte, near uint64) {
	r.bits = wire.NewBitReader(packet, 0)
	r.step = widen(near, r.bits.Take(stepBits))
	r.left = 1 + int(r.bits.Take(olderBits))
	r.gaps = r.bits.Bit()
	r.first, r.drawn = true, false
	r.line = viewLine{advance: places}
	r.scratch = r.scratch[:0]
}

// Next reads the next older input. It reports false at the end of the packet, and at what makes no
// sense, which Err tells. The values are valid until the next call.
func (r *Reader) Next() (step uint64, v *codec.Values, view View, ok bool) {
	if r.left == 0 || r.bits.Err() != nil {
		return 0, nil, View{}, false
	}
	r.left--
	base, newer := &r.now, &r.newer
	switch {
	case r.first:
		base = &r.form.zero
		fallthrough
	case !r.drawn:
		newer = nil
	}
	if !r.first {
		r.back()
		r.drawn = true
	}
	view = r.line.take(&r.bits, r.step)
	r.form.alias(&r.spare, base)
	r.scratch = r.form.take(&r.bits, &r.spare, newer, r.scratch)
	r.first = false
	r.newer, r.now, r.spare = r.now, r.spare, r.newer
	if r.bits.Err() != nil {
		return 0, nil, View{}, false
	}
	return r.step, &r.now, view, true
}

// back goes to the step of the next older input.
func (r *Reader) back() {
	gap := uint64(0)
	if r.gaps {
		gap = r.bits.Len()
	}
	if gap >= r.step {
		r.bits.Fail(ErrPacket)
		return
	}
	r.step -= 1 + gap
}

// Err is why the packet could not be read to its end, or nil.
func (r *Reader) Err() error { return r.bits.Err() }

// writer writes packets.
type writer struct {
	form *Form
	bits wire.BitWriter
}

// item is an input that is to be written.
type item struct {
	step uint64
	view View
	v    codec.Values
}

// append writes the newest of the inputs, which are in the order of their steps, the newest
// first, as many as fit limit. It returns how many those are.
func (w *writer) append(dst []byte, limit int, n int, at func(int) *item) ([]byte, int) {
	if n == 0 {
		return dst, 0
	}
	newest := at(0)
	gaps := newest.step-at(n-1).step != uint64(n-1)
	w.bits.Reset(dst)
	w.bits.Put(newest.step&(1<<stepBits-1), stepBits)
	w.bits.Put(0, olderBits) // filled in below
	w.bits.Bit(gaps)
	line := viewLine{advance: places}
	written := 0
	for ; written < n; written++ {
		before, it := w.bits.Mark(), at(written)
		if gaps && written > 0 {
			w.bits.PutLen(at(written-1).step - it.step - 1)
		}
		line.put(&w.bits, it.view, it.step)
		base, newer := &w.form.zero, (*codec.Values)(nil)
		if written > 0 {
			base = &at(written - 1).v
		}
		if written > 1 {
			newer = &at(written - 2).v
		}
		w.form.put(&w.bits, &it.v, base, newer)
		if w.bits.Len() > 8*(len(dst)+limit) {
			w.bits.Rewind(before)
			break
		}
	}
	if written == 0 {
		return dst, 0
	}
	w.bits.Flush()
	b := w.bits.Bytes()
	b[len(dst)+stepBits/8] |= byte(written - 1)
	return b, written
}
