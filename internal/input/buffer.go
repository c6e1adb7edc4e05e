package input

// Counts are what became of inputs.
type Counts struct {
	Applied   uint64 // that ran in their step
	Missed    uint64 // steps that ran without their input
	Late      uint64 // that came after their step had run
	Duplicate uint64 // packets with nothing new
	Ahead     uint64 // for steps too far ahead
	Malformed uint64 // packets that could not be read, or not to their end
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

// Buffer holds the inputs of one client that wait for their steps. The zero value is empty.
type Buffer struct {
	slots  [Window]waiting // by step; step 0 is none
	last   waiting         // that came for a step which has run; step 0 before the first
	missed int             // steps in a row that have run without theirs since
	newest uint64          // step for which an input has come; 0 before the first
	came   uint64          // bit n: one has come for the step newest - n
	counts Counts
	older  uint64 // of those missed: of programs that have gone
}

// waiting is an input in the form of a message, which takes less than its values.
type waiting struct {
	step    uint64
	view    View
	size    uint8
	message [MaxSize]byte
}

func (w *waiting) bytes() []byte { return w.message[:w.size] }

// Take takes a packet that came when the steps up to done had run. It stops at the first input that
// it has, because it has the older ones then as well, or they came too late. fresh reports whether
// the packet's newest input is newer than all that came before.
func (b *Buffer) Take(r *Reader, packet []byte, done uint64) (counts Counts, fresh bool) {
	r.Begin(packet, done+1)
	for first := true; r.Next(); first = false {
		step := r.Step()
		if b.has(step) {
			if first {
				counts.Duplicate++
			}
			break
		}
		v, view, ok := r.Read()
		switch {
		case !ok:
			continue // There is no next.
		case step > done+Window:
			counts.Ahead++
			continue
		}
		fresh = b.note(step) || fresh
		if step <= done {
			counts.Late++
			continue
		}
		s := &b.slots[step%Window]
		s.step, s.view, s.size = step, view, uint8(copy(s.message[:], r.message(v)))
	}
	if r.Err() != nil {
		counts.Malformed++
	}
	b.counts.Add(counts)
	return counts, fresh
}

// has reports whether the input of a step has come, or its step is so old that nobody knows.
func (b *Buffer) has(step uint64) bool {
	behind := b.newest - step
	return step <= b.newest && (behind >= 64 || b.came>>behind&1 != 0)
}

// note notes that the input of a step has come, and reports whether it is the newest.
func (b *Buffer) note(step uint64) bool {
	if step < b.newest {
		b.came |= 1 << (b.newest - step)
		return false
	}
	b.came = b.came<<min(step-b.newest, 64) | 1
	b.newest = step
	return true
}

// Next returns the input of a step that is about to run, in the form of a message. missed is 0 if
// it has come, and otherwise counts the steps in a row without theirs: then the input is the last
// one that came. It reports false before the first.
func (b *Buffer) Next(step uint64) (message []byte, missed int, ok bool) {
	if s := &b.slots[step%Window]; s.step == step {
		b.last, s.step = *s, 0
		b.missed = 0
		b.counts.Applied++
		return b.last.bytes(), 0, true
	}
	if b.last.step == 0 {
		return nil, 0, false
	}
	b.missed++
	b.counts.Missed++
	return b.last.bytes(), b.missed, true
}

// View returns what the client saw when it made the input that Next returned last: that of an older
// step, if its own is missed.
func (b *Buffer) View() (v View, missed int) { return b.last.view, b.missed }

// Forget forgets all but the counts: the inputs are of a program that has gone, and the next one
// begins with its first.
func (b *Buffer) Forget() { *b = Buffer{counts: b.counts, older: b.counts.Missed} }

// Missed counts the steps that have run without their input since the program's first.
func (b *Buffer) Missed() uint64 { return b.counts.Missed - b.older }

// Status returns the newest step for which an input has come, and which of the 16 before it: bit
// n is that of newest - 1 - n. It reports false before the first.
func (b *Buffer) Status() (newest uint64, before uint16, ok bool) {
	return b.newest, uint16(b.came >> 1), b.newest > 0
}

// Counts returns what became of the inputs of this client.
func (b *Buffer) Counts() Counts { return b.counts }
