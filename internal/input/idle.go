package input

// Idle reports whether all inputs of a packet are the zero value, which is what a player makes who
// does nothing. A packet that cannot be read is not idle. Any goroutine may call it.
func (f *Form) Idle(packet []byte) bool {
	r := NewReader(f)
	none := f.None()
	for r.Begin(packet, 1<<stepBits); r.Next(); {
		if v, _, ok := r.Read(); !ok || string(r.message(v)) != string(none) {
			return false
		}
	}
	return r.Err() == nil
}

// None is the zero value in the form of a message.
func (f *Form) None() []byte { return f.message(nil, &f.zero) }
