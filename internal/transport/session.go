package transport

import "time"

// SessionConfig is what a session needs to know.
type SessionConfig struct {
	// ID is the client's id, on either end.
	ID uint64
	// Conn tells apart the connections that a client has had, on the server.
	Conn uint64
	// Client says that this is the client's end.
	Client bool
	// Inbox takes what arrives.
	Inbox *Inbox
	// Clock is the monotonic clock by which the driver stamps; drivers fill in their
	// own when it is nil.
	Clock func() time.Duration
	// Stats counts; nil counts for nobody.
	Stats *Stats
	// Decode finds the owner's declaration of a message's method, and turns the payload into
	// what the owner wants to see, on the I/O goroutine. An error, or a panic, drops that one
	// message and is counted. The message's Payload is only valid during the call, and is
	// handed on only if decoded is nil. A nil Decode hands on every payload.
	Decode func(m *Message) (method, decoded any, err error)
	// Size estimates what Decode would allocate for a message, without decoding it: that is
	// what the message counts with, and beyond MaxDecoded it is dropped. A nil Size counts the
	// payload.
	Size func(m *Message) int
	// Limits bounds what the peer may send.
	Limits Limits
	// Moves says that the client can go on to another session over the same connection.
	Moves bool
	// AskMoves says that the client may ask to, on a server. Otherwise such a frame is a violation.
	AskMoves bool
	// Sent, if set, is told of every message that the owner gives to Send, whatever
	// becomes of it, on the owner's goroutine.
	Sent func(m Message)
}

// Session is one connection after its handshake as its owner sees it, a room or a client:
// what to send, what the link is like, and when to close. What arrives comes through the
// Inbox. But for Accepted, Cause, Closing, Held, ID, Inbox and RequestTime, which any goroutine may
// call, all methods are for the owner's goroutine, and none waits for the network.
type Session struct {
	*conn
	out     outbox   // owner's goroutine
	backlog *Backlog // owner's goroutine; nil without Keep
}

// NewSession makes a connection and returns its two sides: one for the owner, one for the
// driver. Its Inbox must be set.
func NewSession(cfg SessionConfig) (*Session, *Link) {
	l := new(Link)
	s, first := newSession(cfg, l)
	l.leg.Store(first)
	return s, l
}

// newSession makes a session of a link.
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

// ID returns SessionConfig.ID.
func (s *Session) ID() uint64 { return s.cfg.ID }

// Conn returns SessionConfig.Conn.
func (s *Session) Conn() uint64 { return s.cfg.Conn }

// Inbox returns the inbox in which what arrives is found.
func (s *Session) Inbox() *Inbox { return s.cfg.Inbox }

// Keep lets b keep the reliable messages from now on, until the peer has said that it has them.
// Without it the session keeps none: what the connection loses is lost.
func (s *Session) Keep(b *Backlog) { s.backlog = b }

// Accepted returns a channel that is closed once the room has said that it has taken the client in,
// or back. The arrival Accepted comes as well.
func (s *Session) Accepted() <-chan struct{} { return s.accepted }

// LinkFacts is what an owner may know of the link.
type LinkFacts struct {
	SRTT        time.Duration // 0: not known yet
	SlotFree    bool          // the last snapshot has left
	StreamFree  bool          // less than half of the reliable data that may wait does
	LastArrival time.Duration // when the last sound datagram or frame arrived
}

// LinkFacts returns the facts of the moment.
func (s *Session) LinkFacts() LinkFacts {
	return LinkFacts{
		SRTT:        time.Duration(s.srtt.Load()),
		SlotFree:    !s.slotBusy.Load(),
		StreamFree:  !s.streamBehind.Load(),
		LastArrival: time.Duration(s.lastArrival.Load()),
	}
}

// TakeFlushLag returns the time from the newest flush that has left to its last datagram
// being accepted by the link. It reports false if none has left since it was last called.
func (s *Session) TakeFlushLag() (time.Duration, bool) {
	lag := s.flushLag.Swap(0)
	return time.Duration(lag), lag > 0
}

// Abandon ends the session without its owner, whose goroutine may hang: what the owner has not
// flushed is not sent. Any goroutine may call it.
func (s *Session) Abandon(code Code, text string) { s.shutdown(code, text) }

// Close ends the session on the owner's behalf, after all that it has sent: the peer gets
// code and text. What is sent or flushed after it is dropped and counted.
func (s *Session) Close(code Code, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.collectLocked()
	s.out.closed = true
	s.shutdownLocked(Closed{Code: code, Text: clip(text)})
}
