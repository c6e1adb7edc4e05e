package seats

import "slices"

// places are the seats that are the places of their players: see Cluster.Duplicate of the root.
type places struct {
	// Free is called when a seat is no longer the place of a player. It must not wait, and not
	// call the Seats. Nil: no Request is Placed.
	Free func(subject string)
	of   map[string][]*Seat // by subject
}

// Refuses returns the refusal of a request if that is known before Assign: a player keeps its
// place elsewhere then.
func (s *Seats) Refuses(q *Request) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	own, err := s.ownLocked(q)
	switch {
	case err != nil || own != nil || q.Ticket != nil:
		return err
	case q.Otherwise != nil:
		return q.Otherwise
	case s.locked:
		return errLocked
	}
	if kind := s.kindLocked(q.Who.Spectator); kind.full() && s.yieldingLocked(q) == nil {
		return ErrFull(kind.Most)
	}
	return nil
}

// Of returns the ids of the seats that are the place of a player. Their clients may not have
// entered the room yet.
func (s *Seats) Of(subject string) (ids []uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range s.Places.of[subject] {
		ids = append(ids, at.ID)
	}
	return ids
}

// Player returns the player that has its place in a seat, or "".
func (s *Seats) Player(at *Seat) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return at.place
}

// placeLocked makes a seat the place of the player of a request. A player that becomes a spectator
// keeps the place until the seat ends.
func (s *Seats) placeLocked(at *Seat, q *Request) {
	subject := q.Who.Subject
	switch {
	case at.place == subject:
		if q.Placed {
			s.Places.Free(subject) // The seat has it already.
		}
		return
	case at.place != "":
		s.freePlaceLocked(at)
	}
	switch {
	case !q.Placed:
	case s.closed != nil:
		s.Places.Free(subject)
	default:
		if s.Places.of == nil {
			s.Places.of = map[string][]*Seat{}
		}
		at.place = subject
		s.Places.of[subject] = append(s.Places.of[subject], at)
	}
}

// freePlaceLocked ends the place of a seat, if it is one.
func (s *Seats) freePlaceLocked(at *Seat) {
	if at.place == "" {
		return
	}
	all := slices.DeleteFunc(s.Places.of[at.place], func(other *Seat) bool { return other == at })
	if s.Places.of[at.place] = all; len(all) == 0 {
		delete(s.Places.of, at.place)
	}
	s.Places.Free(at.place)
	at.place = ""
}

// freePlacesLocked ends the places of all seats, at the end of the room.
func (s *Seats) freePlacesLocked() {
	for _, all := range s.Places.of {
		for _, at := range slices.Clone(all) {
			s.freePlaceLocked(at)
		}
	}
}
