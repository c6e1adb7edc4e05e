package netvar

// maxClampLooks bounds the searches for misfit fields per class. A search costs as much as a
// capture and mostly has the same result as before.
const maxClampLooks = 64

// clamps is the set of fields of a class that were reported.
type clamps struct {
	asked int
	told  map[string]bool
}

// OnClamp sets a function that is called once for each field with a value that was cut or clamped.
// The field is named by its path in Go; the elements of a slice count as the slice.
func (w *World) OnClamp(tell func(class, field string)) {
	w.tellClamp, w.clamps = tell, make([]clamps, len(w.table.classes))
}

// clamped reports the fields of o, which was just captured, that did not fit.
func (w *World) clamped(o *Object) {
	if w.tellClamp == nil {
		return
	}
	m := &w.clamps[o.class.index]
	if m.asked >= maxClampLooks {
		return
	}
	m.asked++
	for _, field := range o.class.plan.Misfits(o.live) {
		if !m.told[field] {
			if m.told == nil {
				m.told = make(map[string]bool)
			}
			m.told[field] = true
			w.tellClamp(o.class.name, field)
		}
	}
}
