package netvar

// maxClampLooks bounds how often a class is asked which of its fields did not fit, which costs as
// much as a capture and mostly has the answer of the time before.
const maxClampLooks = 64

// clamps notes the fields that have been told.
type clamps struct {
	asked int
	told  map[string]bool
}

// OnClamp sets who is told, once for each field, that its value had to be cut or clamped. The
// field is named by its path in Go; what the elements of a slice hold counts as the slice.
func (w *World) OnClamp(tell func(class, field string)) {
	w.tellClamp, w.clamps = tell, make([]clamps, len(w.table.classes))
}

// clamped looks which fields of o, which has just been captured, did not fit.
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
