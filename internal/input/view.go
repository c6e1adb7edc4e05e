package input

import (
	"math"

	"github.com/netloop/netloop/internal/wire"
)

// View is a client's view when it made an input: the state at the part Alpha of the way from the
// snapshot of tick From to the snapshot of tick To. The zero View means no view.
type View struct {
	From, To uint64
	Alpha    float32 // from 0 to below 1, in steps of 1/64
}

const (
	alphaBits = 6
	places    = 1 << alphaBits // number of places between two snapshots
	// maxView limits the ticks of a view, far above the ticks that a room reaches. maxSpan limits
	// the ticks between From and To. With these limits sums do not overflow.
	maxView = 1 << 60
	maxSpan = 1 << 16
	// maxAdvance limits the distance between the views of two inputs, in places: there are 64
	// places between two snapshots.
	maxAdvance = 1 << 20
)

// valid reports whether a packet can contain the view.
func (v View) valid() bool {
	return v.To > 0 && v.From <= v.To && v.To < maxView && v.To-v.From < maxSpan && v.Alpha >= 0 && v.Alpha < 1
}

// rounded returns the view as the other side reads it.
func (v View) rounded() View {
	if v.Alpha >= 1 {
		v.From, v.Alpha = v.To, 0
	}
	if !v.valid() {
		return View{}
	}
	v.Alpha = float32(math.Floor(float64(v.Alpha)*places)) / places
	return v
}

func (v View) place() int64 { return int64(v.Alpha * places) }

// viewLine holds the view of the newer input, and advance, the number of places by which that view
// is before the view of the next newer input. Both predict the view of the next older input.
type viewLine struct {
	newer   View
	advance int64
}

// before returns the view that is advance places before the newer view, or false if there is none.
func (l *viewLine) before(advance int64) (View, bool) {
	span := int64(l.newer.To - l.newer.From)
	place := l.newer.place() - advance
	from := int64(l.newer.From) + (place>>alphaBits)*span
	if span == 0 || from < 0 {
		return View{}, false
	}
	return View{uint64(from), uint64(from + span), float32(place&(places-1)) / places}, true
}

// distance returns the number of places by which v is before the newer view, and reports whether
// the two are on the same line: their From and To differ by whole spans.
func (l *viewLine) distance(v View) (advance int64, ok bool) {
	span := l.newer.To - l.newer.From
	if span == 0 || v.To-v.From != span {
		return 0, false
	}
	ticks := int64(l.newer.From - v.From)
	if ticks%int64(span) != 0 {
		return 0, false
	}
	advance = ticks/int64(span)*places + l.newer.place() - v.place()
	_, ok = l.before(advance)
	return advance, ok && advance > -maxAdvance && advance < maxAdvance
}

// put writes the view, already rounded, of the input of a step.
func (l *viewLine) put(w *wire.BitWriter, v View, step uint64) {
	advance, ok := l.distance(v)
	switch {
	case v == View{} && l.newer == View{}:
		w.Bit(false)
	case ok:
		w.Bit(false)
		w.PutRice(wire.Zigzag(advance-l.advance), 0)
		l.advance = advance
	case v == View{}:
		w.Put(1, 2)
	default:
		w.Put(3, 2)
		w.PutLen(wire.Zigzag(int64(step - v.From)))
		w.PutLen(v.To - v.From)
		w.Put(uint64(v.place()), alphaBits)
	}
	l.newer = v
}

// take reads the output of put.
func (l *viewLine) take(r *wire.BitReader, step uint64) View {
	var v View
	switch absolute := r.Bit(); {
	case absolute && r.Bit():
		v.From = step - uint64(wire.Unzigzag(r.Len()))
		span := r.Len()
		v.Alpha = float32(r.Take(alphaBits)) / places
		if v.To = v.From + span; !v.valid() {
			r.Fail(ErrPacket)
			v = View{}
		}
	case !absolute && l.newer != View{}:
		// If the sum overflows, the result is still out of range, because l.advance is small.
		advance := l.advance + wire.Unzigzag(r.Rice(0))
		ok := advance > -maxAdvance && advance < maxAdvance
		if ok {
			v, ok = l.before(advance)
		}
		if !ok || !v.valid() {
			r.Fail(ErrPacket)
			v = View{}
		}
		l.advance = advance
	}
	l.newer = v
	return v
}
