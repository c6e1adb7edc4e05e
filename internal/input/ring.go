package input

import "github.com/netloop/netloop/internal/codec"

// Kept is how many of its newest inputs a client keeps: as many as a server may hold, and those
// that have run and are not confirmed yet.
const Kept = 2 * Window

// Ring holds the newest inputs that a client has made, by their steps.
type Ring struct {
	form   *Form
	slots  [Kept]made
	newest uint64 // step; 0 before the first
	done   uint64 // steps up to here need not be sent any more
	w      writer
	list   [Repeats]*item // scratch
}

// made is an input, and whether the server is known to have it. Step 0 is none.
type made struct {
	item
	came bool
}

// NewRing makes an empty ring.
func NewRing(f *Form) *Ring {
	r := &Ring{form: f, w: writer{form: f}}
	for i := range r.slots {
		r.slots[i].v = f.values()
	}
	return r
}

// Add makes room for the input of a step and returns it, to be filled in. The step is newer than
// those of all inputs in the ring: Back forgets the others first.
func (r *Ring) Add(step uint64, view View) *codec.Values {
	s := &r.slots[step%Kept]
	s.step, s.view, s.came = step, view.rounded(), false
	r.newest = step
	return &s.v
}

// Newest is the step of the newest input, 0 before the first.
func (r *Ring) Newest() uint64 { return r.newest }

// At returns the input of a step, while it is kept.
func (r *Ring) At(step uint64) (*codec.Values, bool) {
	s := &r.slots[step%Kept]
	return &s.v, step > 0 && s.step == step
}

// Withdraw takes back the input of the newest step: it cannot travel.
func (r *Ring) Withdraw(step uint64) {
	r.slots[step%Kept].step = 0
}

// Back forgets the inputs of the steps after this one, if there are any: they are made anew.
func (r *Ring) Back(step uint64) {
	if r.newest <= step {
		return
	}
	for i := range r.slots {
		if r.slots[i].step > step {
			r.slots[i].step = 0
		}
	}
	r.newest = step
}

// Confirm takes which inputs the server has, as Buffer.Status said.
func (r *Ring) Confirm(newest uint64, before uint16) {
	r.confirm(newest)
	for i := range uint64(Repeats) {
		if before>>i&1 != 0 && newest > i+1 {
			r.confirm(newest - 1 - i)
		}
	}
}

func (r *Ring) confirm(step uint64) {
	if s := &r.slots[step%Kept]; s.step == step {
		s.came = true
	}
}

// Done says that the server has run the steps up to this one.
func (r *Ring) Done(step uint64) { r.done = max(r.done, step) }

// AppendPacket appends a packet of at most limit bytes: the newest input, and those before it
// down to the oldest that may still have to come. Without any it appends nothing.
func (r *Ring) AppendPacket(dst []byte, limit int) []byte {
	n, open := 0, 0
	for step := r.newest; step > r.done && n < Repeats && r.newest-step < Kept; step-- {
		s := &r.slots[step%Kept]
		if s.step != step {
			continue
		}
		r.list[n] = &s.item
		n++
		if !s.came {
			open = n
		}
	}
	return r.w.append(dst, limit, r.list[:open])
}

// Clear forgets all inputs.
func (r *Ring) Clear() {
	for i := range r.slots {
		r.slots[i].step = 0
	}
	r.newest, r.done = 0, 0
}
