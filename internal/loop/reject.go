package loop

// Reject ends the time in which an anchor may be unknown, as the first Check does, for an owner
// that goes on with the others: whoever names what nobody has registered is taken out, and fn is
// told of each. OnRemove is not, because what is rejected never ran. Once the time is over
// it does nothing.
func (l *Loop[C]) Reject(fn func(err error)) {
	for l.seal() != nil { // Again, because who names one that was rejected is misplaced too.
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

// Err is why Reject has taken the system out, or nil.
func (s *System[C]) Err() error { return s.err }
