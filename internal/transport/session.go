package transport

import "time"

// SessionConfig configures a session.
type SessionConfig struct {
	// ID is the client's id, on either end.
	ID uint64
	// Conn distinguishes the successive connections of a client, on the server.
	Conn uint64
	// Client is true at the client's end.
	Client bool
	// Inbox receives the arrivals.
	Inbox *Inbox
	// Clock is the monotonic clock of the driver's timestamps; nil: drivers set their own.
	Clock func() time.Duration
	// Stats gets the counts of the session; nil: none.
	Stats *Stats
	// Decode returns the owner's declaration of a message's method, and the decoded payload, on the
	// I/O goroutine. An error, or a panic, drops the message and is counted. The message's Payload
	// is valid only during the call. The arrival has it only if decoded is nil, or if Decode is
	// nil.
	Decode func(m *Message) (method, decoded any, err error)
	// Size estimates, without decoding, the memory that Decode would allocate for a message. The
	// message counts with this size, and is dropped above MaxDecoded. If Size is nil, it counts
	// with the size of its payload.
	Size func(m *Message) int
	// Limits bounds the data that the peer may send.
	Limits Limits
	// Moves reports that the client can continue with another session over the same connection.
	Moves bool
	// Travels reports that the client can move to a room of another server.
	Travels bool
	// AskMoves permits the client to request a move, on a server. Without it such a frame is a
	// protocol violation.
	AskMoves bool
	// Sent, if set, is called for every message passed to Send, even if it is dropped, on the
	// owner's goroutine.
	Sent func(m Message)
}

// Session is the owner's side (a room or a client) of one connection after its handshake: it sends
// data, reports facts of the link, and closes. Arrivals are pushed to the Inbox. Any goroutine may
// call Accepted, Cause, Closing, Held, ID, Inbox and RequestTime; all other methods are for the
// owner's goroutine. None waits for the network.
type Session struct {
	*conn
	out     outbox   // owner's goroutine
	backlog *Backlog // owner's goroutine; nil without Keep
}

// NewSession creates a connection and returns its two sides: the Session for the owner, and the
// Link for the driver. cfg.Inbox must be set.
func NewSession(cfg SessionConfig) (*Session, *Link) {
	l := new(Link)
	s, first := newSession(cfg, l)
	l.leg.Store(first)
	return s, l
}

// newSession creates a session of a link.
func newSession(cfg SessionConfig, link *Link) (*Session, *leg) {
	c := &conn{
		cfg:      cfg,
		link:     link,
		stats:    cfg.Stats,
		closing:  make(chan struct{}),
		accepted: make(chan struct{}),
	}
	if c.stats == nil {
		c.stats = new(Stats)
	}
	s := &Session{conn: c}
	return s, &leg{conn: c, session: s}
}

// Transport returns Link.Transport.
func (s *Session) Transport() string { return s.link.Transport }

// ID returns SessionConfig.ID.
func (s *Session) ID() uint64 { return s.cfg.ID }

// Conn returns SessionConfig.Conn.
func (s *Session) Conn() uint64 { return s.cfg.Conn }

// Inbox returns the inbox to which arrivals are pushed.
func (s *Session) Inbox() *Inbox { return s.cfg.Inbox }

// Keep stores the reliable messages from now on in b, until the peer confirms them. Without it,
// messages that the connection loses are lost.
func (s *Session) Keep(b *Backlog) { s.backlog = b }

// Accepted returns a channel that is closed once the room has admitted or resumed the client. The
// arrival Accepted is pushed as well.
func (s *Session) Accepted() <-chan struct{} { return s.accepted }

// LinkFacts are facts of the link for the owner.
type LinkFacts struct {
	SRTT        time.Duration // 0: not known yet
	SlotFree    bool          // the last snapshot was sent
	StreamFree  bool          // at most half of maxReliableBytes is queued
	LastArrival time.Duration // arrival of the last valid datagram or frame
}

// LinkFacts returns the current facts.
func (s *Session) LinkFacts() LinkFacts {
	return LinkFacts{
		SRTT:        time.Duration(s.srtt.Load()),
		SlotFree:    !s.slotBusy.Load(),
		StreamFree:  !s.streamBehind.Load(),
		LastArrival: time.Duration(s.lastArrival.Load()),
	}
}

// Load is the data that a session has carried, and the data that waits in it.
type Load struct {
	Received, Sent uint64 // bytes of datagrams and of the stream, without the headers below
	Reliable       int    // bytes of reliable messages and state records that wait to be sent
	Unreliable     int    // unreliable messages that wait to be sent
}

// Load returns the bytes that the session has carried so far, and its queues. It takes the lock
// that Flush takes.
func (s *Session) Load() Load {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Load{
		Received: s.received.Load(), Sent: s.box.sent,
		Reliable: s.box.reliable.size() + s.out.reliable.size(), Unreliable: s.box.unreliable.len() + s.out.unreliable.len(),
	}
}

// TakeFlushLag returns the time from the newest flush that was sent completely until the link
// accepted its last datagram. It reports false if no flush was sent since the last call.
func (s *Session) TakeFlushLag() (time.Duration, bool) {
	lag := s.flushLag.Swap(0)
	return time.Duration(lag), lag > 0
}

// Abandon ends the session without its owner's goroutine, which may hang: data that the owner has
// not flushed is not sent. Any goroutine may call it.
func (s *Session) Abandon(code Code, text string) { s.shutdown(code, text) }

// Close ends the session on the owner's behalf, after all data that it has sent: the peer gets code
// and text. Later sends and flushes are dropped and counted.
func (s *Session) Close(code Code, text string) {
	s.mu.Lock()
	s.collectLocked()
	s.out.closed = true
	s.shutdownLocked(Closed{Code: code, Text: clip(text)})
	s.mu.Unlock()
	s.wakeDatagrams()
}
