package input

import (
	"bytes"
	"errors"

	"github.com/netloop/netloop/internal/codec"
	"github.com/netloop/netloop/internal/wire"
)

// ErrPacket is the error of a packet that no writer produces.
var ErrPacket = errors.New("input: packet is malformed")

// Form is the encoding of the inputs of a schema. It is immutable, so any goroutine may use it.
type Form struct {
	plan         *codec.Plan        // nil: an input is one blob, a protobuf message
	check        func([]byte) error // of such a blob
	words, blobs int
	zero         codec.Values
}

// NewForm makes the form of a plain struct or, if plan is nil, of protobuf messages, which are read
// only if check accepts them.
func NewForm(plan *codec.Plan, check func([]byte) error) *Form {
	f := &Form{plan: plan, check: check, blobs: 1}
	if plan == nil {
		f.zero = f.values()
		return f
	}
	f.words, f.blobs = plan.Words(), plan.Blobs()
	f.zero = f.values()
	zero := plan.Zero()
	copy(f.zero.Words, zero.Words)
	copy(f.zero.Blobs, zero.Blobs)
	return f
}

// values allocates one input. It has one additional word at the end, which codec's deltas require.
func (f *Form) values() codec.Values {
	return codec.Values{Words: make([]uint64, f.words+1), Blobs: make([][]byte, f.blobs)}
}

// message appends an input encoded as a message.
func (f *Form) message(dst []byte, v *codec.Values) []byte {
	if f.plan == nil {
		return append(dst, v.Blobs[0]...)
	}
	return f.plan.AppendValues(dst, v)
}

// alias copies the words of an input. The blobs are shared, not copied.
func (f *Form) alias(to, from *codec.Values) {
	copy(to.Words, from.Words)
	copy(to.Blobs, from.Blobs)
}

// trend returns the trend by which the next older input of a packet is predicted: newer is the next
// newer input after the base, or nil if there is none.
func trend(newer *codec.Values) codec.Trend {
	if newer == nil {
		return codec.Trend{}
	}
	return codec.Trend{Older: *newer, Took: 1, Ahead: 1}
}

// put writes an input as the delta from base, with the trend from newer if it is not nil.
func (f *Form) put(w *wire.BitWriter, v, base, newer *codec.Values) {
	if f.plan != nil {
		t := trend(newer)
		f.plan.PutDelta(w, v, base, &t)
		return
	}
	same := bytes.Equal(v.Blobs[0], base.Blobs[0])
	if w.Bit(!same); !same {
		w.PutLen(uint64(len(v.Blobs[0])))
		w.PutBytes(v.Blobs[0])
	}
}

// take reads the output of put into v, which contains the base. New blobs alias scratch, which is
// returned with their bytes appended.
func (f *Form) take(r *wire.BitReader, v, newer *codec.Values, scratch []byte) []byte {
	if f.plan != nil {
		scratch = f.plan.TakeDelta(r, v, trend(newer), scratch)
		if v.Words[f.words] != 0 { // The extra word is not used here.
			r.Fail(ErrPacket)
		}
		return scratch
	}
	if !r.Bit() {
		return scratch
	}
	n, start := r.Len(), len(scratch)
	if n > MaxSize {
		r.Fail(ErrPacket)
		return scratch
	}
	if scratch = r.TakeBytes(scratch, int(n)); r.Err() == nil && f.check(scratch[start:]) != nil {
		r.Fail(ErrPacket)
	}
	v.Blobs[0] = scratch[start:len(scratch):len(scratch)]
	return scratch
}
