package input

// Idle reports whether all inputs of a packet are the zero value, the input of an idle player. A
// packet that cannot be read, or has more inputs than allowed, is not idle. Any goroutine may call
// it.
func (f *Form) Idle(packet []byte, repeats int) bool {
	r := NewReader(f, repeats)
	none := f.None()
	for r.Begin(packet, 1<<stepBits); r.Next(); {
		if v, _, ok := r.Read(); !ok || string(r.Message(v)) != string(none) {
			return false
		}
	}
	return r.Err() == nil
}

// None returns the zero value encoded as a message.
func (f *Form) None() []byte { return f.message(nil, &f.zero) }
