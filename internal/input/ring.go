package input

import (
	"time"

	"github.com/netloop/netloop/internal/codec"
)

// Ring stores the newest inputs that a client has made, by their steps, so that an input can be
// sent again. It has room for two windows: for the inputs that a server may store, and for inputs
// that have run but are not acknowledged yet.
type Ring struct {
	form       *Form
	slots      []made
	newest     uint64 // newest step with an input; 0 before the first
	done       uint64 // the server has run the steps up to done
	sent       uint64 // the newest step of the last packet
	generation uint8
	w          writer
	list       []*item // scratch, as long as a packet may be
}

// made is a slot of a Ring with an input. came is set if the server has confirmed the input. Step 0
// means that the slot is free.
type made struct {
	item
	came bool
}

// NewRing returns an empty ring for fixed steps with the length step.
func NewRing(f *Form, step time.Duration) *Ring {
	r := &Ring{form: f, slots: make([]made, 2*Window(step)), w: writer{form: f}, list: make([]*item, Repeats(step))}
	for i := range r.slots {
		r.slots[i].v = f.values()
	}
	return r
}

func (r *Ring) slot(step uint64) *made { return &r.slots[step%uint64(len(r.slots))] }

// Wants reports whether the input of a step is needed, because no input was made for the step or a
// later step. It does not depend on the server's steps, because a sleeping room sends no status.
func (r *Ring) Wants(step uint64) bool { return step > r.newest }

// Add assigns a slot to the input of a step that the ring wants, and returns its values. They
// contain an older input, so the caller must overwrite all of them.
func (r *Ring) Add(step uint64, view View) *codec.Values {
	s := r.slot(step)
	s.step, s.view, s.came = step, view.rounded(), false
	r.newest = step
	return &s.v
}

// SetBack discards the inputs of later steps and begins another generation, because the server has
// skipped the time in which they had to run, and accepts new inputs for these steps.
func (r *Ring) SetBack(step uint64) {
	r.generation = (r.generation + 1) % generations
	r.newest, r.sent = min(r.newest, step), min(r.sent, step)
	for i := range r.slots {
		s := &r.slots[i]
		s.came = false // The server discards waiting inputs.
		if s.step > step {
			s.step = 0
		}
	}
}

// Newest returns the step of the newest input, or 0 before the first input.
func (r *Ring) Newest() uint64 { return r.newest }

// At returns the input of a step, while it is stored.
func (r *Ring) At(step uint64) (*codec.Values, bool) {
	s := r.slot(step)
	return &s.v, step > 0 && s.step == step
}

// Withdraw removes the input of the newest step, because the caller could not encode it.
func (r *Ring) Withdraw(step uint64) {
	r.slot(step).step = 0
}

// Confirm records which inputs of a generation the server has, as returned by Buffer.Status. It
// reports false for another generation than the current one.
func (r *Ring) Confirm(newest uint64, before uint16, generation uint8) bool {
	if generation != r.generation {
		return false
	}
	r.confirm(newest)
	for i := range uint64(16) {
		if before>>i&1 != 0 && newest > i+1 {
			r.confirm(newest - 1 - i)
		}
	}
	return true
}

func (r *Ring) confirm(step uint64) {
	if s := r.slot(step); s.step == step {
		s.came = true
	}
}

// Done records that the server has run the steps up to this one.
func (r *Ring) Done(step uint64) { r.done = max(r.done, step) }

// AppendPacket appends a packet of at most limit bytes: the newest input, and earlier ones back to
// the oldest that the server may lack. Each input is sent at least once, even if its step has run,
// because late inputs run too. If there are no inputs, it appends no bytes.
func (r *Ring) AppendPacket(dst []byte, limit int) []byte {
	n, open := 0, 0
	for step := r.newest; step > min(r.done, r.sent) && n < len(r.list) && r.newest-step < uint64(len(r.slots)); step-- {
		s := r.slot(step)
		if s.step != step {
			continue
		}
		r.list[n] = &s.item
		n++
		if !s.came {
			open = n
		}
	}
	r.sent = r.newest
	return r.w.append(dst, limit, r.generation, r.list[:open])
}
