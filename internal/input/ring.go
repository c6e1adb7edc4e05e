package input

import "github.com/netloop/netloop/internal/codec"

// Kept is how many inputs a client keeps: as many as a server may hold, and those that have run and
// of which the client has not heard yet.
const Kept = 2 * Window

// Ring holds the newest inputs that a client has made, by their steps. None goes before its step is
// known to have run, so that an input can be sent again, and none has to be made twice.
type Ring struct {
	form   *Form
	slots  [Kept]made
	newest uint64 // step; 0 before the first
	done   uint64 // the server has run the steps up to this one
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

// Wants reports whether the input of a step is to be made: none was made for the step or a later
// one, and there is room. A server in which no step runs for long would not take it either.
func (r *Ring) Wants(step uint64) bool { return step > r.newest && step <= r.done+Kept }

// Add makes room for the input of a step that the ring wants and returns it, to be filled in.
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

// AppendPacket appends a packet of at most limit bytes: the input of a step, and those before it
// down to the oldest that may still have to come. Without any it appends nothing.
func (r *Ring) AppendPacket(dst []byte, limit int, newest uint64) []byte {
	n, open := 0, 0
	for step := newest; step > r.done && n < Repeats && newest-step < Kept; step-- {
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
