package input

import (
	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/wire"
)

const (
	stepBits       = 16
	olderBits      = 8
	generationBits = 2
	// generations is the number of different generations: generation numbers are modulo this
	// number.
	generations = 1 << generationBits
)

// widen returns the step nearest to near with the lowest 16 bits of low.
func widen(near, low uint64) uint64 {
	d := int64(int16(uint16(low) - uint16(near)))
	if d < 0 && near < uint64(-d) {
		return near + uint64(d+1<<stepBits)
	}
	return near + uint64(d)
}

// Reader reads packets, one after the other. Only one goroutine may use it.
type Reader struct {
	form *Form
	most int // inputs in a packet
	bits wire.BitReader
	left int // remaining inputs
	read int
	gaps bool
	step uint64
	turn uint8 // the generation
	line viewLine
	// The input read last, the input before it, and space for the next input.
	now, newer, spare codec.Values
	scratch, encoded  []byte
}

// NewReader returns a reader of packets in this form, with at most repeats inputs.
func NewReader(f *Form, repeats int) *Reader {
	return &Reader{form: f, most: repeats, now: f.values(), newer: f.values(), spare: f.values()}
}

// Begin starts to read a packet; near is the approximate step of its sender.
func (r *Reader) Begin(packet []byte, near uint64) {
	r.bits = wire.NewBitReader(packet, 0)
	r.step = widen(near, r.bits.Take(stepBits))
	r.left = 1 + int(r.bits.Take(olderBits))
	r.gaps = r.bits.Bit()
	r.turn = uint8(r.bits.Take(generationBits))
	if r.read = 0; r.step == 0 || r.left > r.most {
		r.bits.Fail(ErrPacket)
	}
	r.line = viewLine{advance: places}
	r.scratch = r.scratch[:0]
}

// Next moves to the next older input. It reports false at the end of the packet, and at an error,
// which Err returns.
func (r *Reader) Next() bool {
	if r.left == 0 || r.bits.Err() != nil {
		return false
	}
	r.left--
	if r.read > 0 {
		r.back()
	}
	return r.bits.Err() == nil
}

// Step returns the step of the current input.
func (r *Reader) Step() uint64 { return r.step }

// Generation returns the generation of the packet's inputs.
func (r *Reader) Generation() uint8 { return r.turn }

// Read reads the current input. Call it before Next, because older inputs are differences from
// newer ones. It reports false if the input is invalid. The values are valid until the next call.
func (r *Reader) Read() (v *codec.Values, view View, ok bool) {
	base, newer := &r.now, &r.newer
	if r.read == 0 {
		base = &r.form.zero
	}
	if r.read < 2 {
		newer = nil
	}
	view = r.line.take(&r.bits, r.step)
	r.form.alias(&r.spare, base)
	r.scratch = r.form.take(&r.bits, &r.spare, newer, r.scratch)
	r.newer, r.now, r.spare = r.now, r.spare, r.newer
	r.read++
	return &r.now, view, r.bits.Err() == nil
}

// Message returns an input encoded as a message, valid until the next call.
func (r *Reader) Message(v *codec.Values) []byte {
	r.encoded = r.form.message(r.encoded[:0], v)
	return r.encoded
}

// back moves to the step of the next older input.
func (r *Reader) back() {
	gap := uint64(0)
	if r.gaps {
		gap = r.bits.Len()
	}
	if gap >= r.step-1 {
		r.bits.Fail(ErrPacket)
		return
	}
	r.step -= 1 + gap
}

// Err returns the reason why the packet could not be read completely, or nil.
func (r *Reader) Err() error { return r.bits.Err() }

// writer writes packets.
type writer struct {
	form *Form
	bits wire.BitWriter
}

// item is an input to write.
type item struct {
	step uint64
	view View
	v    codec.Values
}

// append writes inputs of a generation, the newest first, as many as fit limit.
func (w *writer) append(dst []byte, limit int, generation uint8, list []*item) []byte {
	if len(list) == 0 {
		return dst
	}
	newest, n := list[0].step, len(list)
	gaps := newest-list[n-1].step != uint64(n-1)
	w.bits.Reset(dst)
	w.bits.Put(newest&(1<<stepBits-1), stepBits)
	w.bits.Put(0, olderBits) // set below
	w.bits.Bit(gaps)
	w.bits.Put(uint64(generation), generationBits)
	line := viewLine{advance: places}
	written := 0
	base, newer := &w.form.zero, (*codec.Values)(nil)
	next := newest + 1 // the step of the previous input
	for i, it := range list {
		before := w.bits.Mark()
		if gaps && i > 0 {
			w.bits.PutLen(next - it.step - 1)
		}
		line.put(&w.bits, it.view, it.step)
		w.form.put(&w.bits, &it.v, base, newer)
		if w.bits.Len() > 8*(len(dst)+limit) {
			w.bits.Rewind(before)
			break
		}
		if i > 0 {
			newer = base
		}
		base, next = &it.v, it.step
		written++
	}
	if written == 0 {
		return dst
	}
	w.bits.Flush()
	b := w.bits.Bytes()
	b[len(dst)+stepBits/8] |= byte(written - 1)
	return b
}
