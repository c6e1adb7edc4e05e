package room

import "github.com/netloop/netloop/internal/transport"

// enters notes a session that begins. One that comes too late is told how the room has ended: no
// tick will ever take it.
func (s *seats) enters(session *transport.Session) {
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

// gone forgets a session.
func (s *seats) gone(session *transport.Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, session)
}

// close ends all sessions of a room that has ended, those of clients that were on their way in
// among them.
func (s *seats) close(code transport.Code, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed == nil {
		s.closed = &transport.Closed{Code: code, Text: text}
	}
	for session := range s.sessions {
		session.Abandon(code, text) // Unless its client was told already.
	}
	s.sessions = nil
}

// ended is what those are told who are there when the room has ended.
func (s *seats) ended() *transport.Closed {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed == nil { // Its end has failed.
		return &transport.Closed{Code: transport.CodeInternal, Text: "the server has failed"}
	}
	return s.closed
}
