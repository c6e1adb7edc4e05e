package netvar

import "github.com/netloop/netloop/internal/netvar/state"

// maxClampLooks bounds the searches for misfit fields per class. A search costs as much as a
// capture, and usually has the same result as the previous search.
const maxClampLooks = 64

// clamps is the state of OnClamp for one class: the number of searches, and the reported fields.
type clamps struct {
	asked int
	told  map[string]bool
}

// OnClamp sets a function that is called once for each field with a value that was cut or clamped.
// The field is named by its path in Go; the elements of a slice count as the slice.
func (w *World) OnClamp(tell func(class, field string)) {
	w.tellClamp, w.clamps = tell, make([]clamps, len(w.table.Classes()))
}

// clamped reports the fields of o, which was just captured, that did not fit.
func (w *World) clamped(o *state.Object) {
	if w.tellClamp == nil {
		return
	}
	m := &w.clamps[o.WireClass().Index()]
	if m.asked >= maxClampLooks {
		return
	}
	m.asked++
	for _, field := range o.Plan().Misfits(o.Live()) {
		if !m.told[field] {
			if m.told == nil {
				m.told = make(map[string]bool)
			}
			m.told[field] = true
			w.tellClamp(o.WireClass().Name(), field)
		}
	}
}
