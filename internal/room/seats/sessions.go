package seats

import "github.com/netloop/netloop/internal/transport"

// AddSession registers a new session. After the end of the room it closes the session with the
// reason, because no tick will take it.
func (s *Seats) AddSession(session *transport.Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed != nil {
		session.Abandon(s.closed.Code, s.closed.Text)
		return
	}
	if s.sessions == nil {
		s.sessions = map[*transport.Session]struct{}{}
	}
	s.sessions[session] = struct{}{}
}

// RemoveSession removes a session.
func (s *Seats) RemoveSession(session *transport.Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, session)
}

// Close ends all sessions of a room that has ended, including clients that are being admitted.
func (s *Seats) Close(code transport.Code, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed == nil {
		s.closed = &transport.Closed{Code: code, Text: text}
	}
	for session := range s.sessions {
		session.Abandon(code, text) // No effect if the client was already sent a reason.
	}
	s.sessions = nil
	s.freePlacesLocked()
}

// Ended returns the reason for the end of the room that connected clients are sent.
func (s *Seats) Ended() *transport.Closed {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed == nil { // The room failed while closing.
		return &transport.Closed{Code: transport.CodeInternal, Text: "the server has failed"}
	}
	return s.closed
}
