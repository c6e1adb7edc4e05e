package loop

// Reject ends the phase in which an anchor may be unknown, as the first Check does, but removes
// each system with an unknown anchor and passes its error to fn, so that the owner can continue
// with all other systems. OnRemove is not called, because a rejected system never ran. After the
// first Check it has no effect.
func (l *Loop[C]) Reject(fn func(err error)) {
	for l.seal() != nil { // Again, because a system anchored to a rejected one is misplaced too.
		for _, s := range l.pending {
			if s.Removed() || s.leaving {
				continue
			}
			if err := l.misplaced(s); err != nil {
				s.err = err
				s.spec.OnRemove = nil
				s.forget()
				fn(err)
			}
		}
	}
}

// Err returns the reason why Reject has removed the system, or nil.
func (s *System[C]) Err() error { return s.err }
