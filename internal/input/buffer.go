package input

// Counts counts the results of inputs.
type Counts struct {
	Applied   uint64 // inputs that ran in their step
	Missed    uint64 // steps that ran without their input
	Late      uint64 // inputs that arrived after their step had run
	Duplicate uint64 // packets without a new input
	Ahead     uint64 // inputs for steps that are too far ahead
	Malformed uint64 // packets that could not be read completely
}

// Add adds other counts.
func (c *Counts) Add(o Counts) {
	c.Applied += o.Applied
	c.Missed += o.Missed
	c.Late += o.Late
	c.Duplicate += o.Duplicate
	c.Ahead += o.Ahead
	c.Malformed += o.Malformed
}

// Buffer stores the inputs of one client that wait for their steps, and late inputs until the next
// step runs.
type Buffer struct {
	slots      []waiting // by step; step 0: no input
	last       waiting   // the input that ran last; step 0 before the first input
	missed     int       // consecutive steps that have run without a newer input
	newest     uint64    // newest step with an input; 0 before the first
	late       uint64    // the oldest step with a late input that has not run; 0: none
	generation uint8
	turned     uint64 // the last step before it began
	counts     Counts
	older      uint64 // part of counts.Missed, of earlier client programs
}

// waiting is the input of one step in a Buffer. It is encoded as a message, which is smaller than
// its values.
type waiting struct {
	step    uint64
	view    View
	ran     bool
	size    uint8
	message [MaxSize]byte
}

func (w *waiting) bytes() []byte { return w.message[:w.size] }

// NewBuffer returns a buffer for the inputs of the given number of steps: see [Window].
func NewBuffer(window int) *Buffer { return &Buffer{slots: make([]waiting, window)} }

func (b *Buffer) window() uint64 { return uint64(len(b.slots)) }

func (b *Buffer) slot(step uint64) *waiting { return &b.slots[step%b.window()] }

// Take stores the inputs of a packet that arrived when the steps up to done had run. It stops at
// the first input that it already has, because then it also has the older ones. fresh reports
// whether the packet's newest input is newer than all earlier ones.
func (b *Buffer) Take(r *Reader, packet []byte, done uint64) (counts Counts, fresh bool) {
	r.Begin(packet, done+1)
	for first := true; r.Next(); first = false {
		step := r.Step()
		if first && !b.follow(r.Generation(), done) {
			counts.Late++
			break
		}
		if b.has(step) {
			if first {
				counts.Duplicate++
			}
			break
		}
		v, view, ok := r.Read()
		switch {
		case !ok:
			continue // There is no next input.
		case step > done+b.window():
			counts.Ahead++
			continue
		}
		fresh = fresh || step > b.newest
		b.newest = max(b.newest, step)
		if step <= done {
			counts.Late++
			if done-step >= b.window() {
				continue
			}
			if b.late == 0 || step < b.late {
				b.late = step
			}
		}
		s := b.slot(step)
		s.step, s.view, s.ran, s.size = step, view, false, uint8(copy(s.message[:], r.Message(v)))
	}
	if r.Err() != nil {
		counts.Malformed++
	}
	b.counts.Add(counts)
	return counts, fresh
}

// follow handles the generation of a packet, see Ring.SetBack. A generation other than the current
// generation is newer: waiting inputs of the current generation are discarded, because the client
// makes new inputs for their steps. The exception is the previous generation, while its packets may
// still be in flight: then follow reports false.
func (b *Buffer) follow(generation uint8, done uint64) bool {
	by := (generation - b.generation) % generations
	switch {
	case by == 0:
		return true
	case by == generations-1 && b.newest > 0 && done < b.turned+b.window():
		return false
	}
	b.generation, b.turned, b.newest = generation, done, min(b.newest, done)
	for i := range b.slots {
		if s := &b.slots[i]; s.step > done {
			s.step = 0
		}
	}
	return true
}

// has reports whether the input of a step has arrived, or if its step is too old to know.
func (b *Buffer) has(step uint64) bool {
	return step <= b.newest && (b.newest-step >= b.window() || b.slot(step).step == step)
}

// Due is the input of a client for a step.
type Due struct {
	// Message is the input: the input of the step (Own), or a late input that has not run yet
	// (Missed is 0), or the input that ran last.
	Message []byte
	Own     bool
	Missed  int // consecutive steps without a newer input, including this step
	// Late are the inputs that arrived too late for their steps and have not run, except Message,
	// oldest first.
	Late [][]byte
}

// Next returns the input for a step that is about to run. If the input of the step has not arrived,
// the newest late input runs in its place, once; without a late input the last input runs again. It
// reports false before the first input. The contents of d are valid until the next call of Take.
func (b *Buffer) Next(step uint64, d *Due) bool {
	late := b.takeLate(step, d)
	s := b.slot(step)
	switch d.Own = s.step == step; {
	case d.Own:
		b.run(s)
	case late != nil && late.step > b.last.step:
		d.Late = d.Late[:len(d.Late)-1]
		b.run(late)
	case b.last.step == 0:
		return false
	default:
		b.missed++
	}
	if d.Own {
		b.counts.Applied++
	} else {
		b.counts.Missed++
	}
	d.Message, d.Missed = b.last.bytes(), b.missed
	return true
}

func (b *Buffer) run(s *waiting) {
	s.ran = true
	b.last, b.missed = *s, 0
}

// takeLate collects the late inputs for earlier steps that have not run, and returns the newest of
// them.
func (b *Buffer) takeLate(step uint64, d *Due) (newest *waiting) {
	d.Late = d.Late[:0]
	if b.late == 0 {
		return nil
	}
	for at := max(b.late, step-min(step, b.window()-1)); at < step; at++ {
		if s := b.slot(at); s.step == at && !s.ran {
			s.ran, newest = true, s
			d.Late = append(d.Late, s.bytes())
		}
	}
	b.late = 0
	return newest
}

// View returns the view of the client when it made the last input that Next returned, and the
// number of consecutive steps without a newer input.
func (b *Buffer) View() (v View, missed int) { return b.last.view, b.missed }

// Forget drops all state except the counts, because the inputs belong to a client program that has
// left, and the next program starts with its own first input.
func (b *Buffer) Forget() {
	clear(b.slots)
	*b = Buffer{slots: b.slots, counts: b.counts, older: b.counts.Missed}
}

// Missed returns the number of steps that have run without their input since the first input of the
// current client program.
func (b *Buffer) Missed() uint64 { return b.counts.Missed - b.older }

// Still reports whether all inputs that wait for steps after done equal none, the input of an idle
// player, and no late input waits.
func (b *Buffer) Still(done uint64, none []byte) bool {
	for step := done + 1; step <= b.newest; step++ {
		if s := b.slot(step); s.step == step && string(s.bytes()) != string(none) {
			return false
		}
	}
	return b.late == 0
}

// Status returns the newest step with an input, and a bit for each of the 16 steps before it: bit n
// is set if step newest - 1 - n has an input. It reports false before the first input.
func (b *Buffer) Status() (newest uint64, before uint16, ok bool) {
	for i := range uint64(16) {
		if step := b.newest - 1 - i; b.newest > i+1 && b.slot(step).step == step {
			before |= 1 << i
		}
	}
	return b.newest, before, b.newest > 0
}

// Generation returns the generation of the inputs in Status.
func (b *Buffer) Generation() uint8 { return b.generation }

// Counts returns the results of the inputs of this client.
func (b *Buffer) Counts() Counts { return b.counts }
