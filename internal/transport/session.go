package transport

import (
	"sync"
	"sync/atomic"
	"time"
)

// SessionConfig is what a session needs to know.
type SessionConfig struct {
	// ID is the client's id, on either end.
	ID uint64
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
	// Sent, if set, is told of every message that the owner gives to Send, whatever
	// becomes of it, on the owner's goroutine.
	Sent func(m Message)
}

// Session is one connection after its handshake, either end. See the package doc for who
// may call what.
type Session struct {
	cfg   SessionConfig
	stats *Stats

	out outbox // owner's goroutine

	mu  sync.Mutex
	box mailbox // under mu

	wakeDatagrams chan struct{}
	wakeStream    chan struct{}
	closing       chan struct{}

	srtt        atomic.Int64
	lastArrival atomic.Int64
	flushLag    atomic.Int64 // of the newest flush that has left, since it was last taken; 0 is none
	slotBusy    atomic.Bool  // the mailbox holds the slot's packets

	streamBehind atomic.Bool // half of the reliable data that may wait does
	deaf         atomic.Bool // closing or ended: what still arrives is dropped

	dup      dupWindow     // datagram reader
	ranges   []Range       // datagram reader: scratch
	nextBeat time.Duration // datagram reader: until then another one is too soon
	stream   []byte        // stream reader: an incomplete frame

	datagram []byte // datagram writer: scratch

	usage inboxUsage // under the inbox's mutex
}

// NewSession makes a session. Its Inbox must be set.
func NewSession(cfg SessionConfig) *Session {
	s := &Session{
		cfg:           cfg,
		stats:         cfg.Stats,
		wakeDatagrams: make(chan struct{}, 1),
		wakeStream:    make(chan struct{}, 1),
		closing:       make(chan struct{}),
	}
	if s.stats == nil {
		s.stats = new(Stats)
	}
	return s
}

// ID returns SessionConfig.ID.
func (s *Session) ID() uint64 { return s.cfg.ID }

// Inbox returns the inbox that the session pushes into.
func (s *Session) Inbox() *Inbox { return s.cfg.Inbox }

// Now returns the time of SessionConfig.Clock, 0 without one.
func (s *Session) Now() time.Duration {
	if s.cfg.Clock == nil {
		return 0
	}
	return s.cfg.Clock()
}

// Wake returns the signals that there may be datagrams, and stream bytes, to send. They
// hold at most one signal: whoever receives it takes everything there is.
func (s *Session) Wake() (datagrams, stream <-chan struct{}) {
	return s.wakeDatagrams, s.wakeStream
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// SetRTT tells the smoothed round trip that the link measures.
func (s *Session) SetRTT(srtt time.Duration) { s.srtt.Store(int64(srtt)) }

// LinkFacts is what an owner may know of the link.
type LinkFacts struct {
	SRTT        time.Duration // 0: not known yet
	SlotFree    bool          // the last snapshot has left
	StreamFree  bool          // less than half of the reliable data that may wait does
	LastArrival time.Duration // when the last sound datagram or frame arrived
}

// Link returns the facts of the moment.
func (s *Session) Link() LinkFacts {
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

// Close ends the session on the owner's behalf, after all that it has sent: the peer gets
// code and text. What is sent or flushed after it is dropped and counted.
func (s *Session) Close(code Code, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.collectLocked()
	s.out.closed = true
	s.shutdownLocked(Closed{Code: code, Text: clip(text)})
}

// Shutdown is Close for everybody else: what the owner has not flushed is not sent.
func (s *Session) Shutdown(code Code, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shutdownLocked(Closed{Code: code, Text: clip(text)})
}

// shutdownLocked queues the close frame, unless an end is under way already.
func (s *Session) shutdownLocked(c Closed) {
	if s.box.cause != nil {
		return
	}
	s.box.cause = &c
	if c.Code == CodeSlow {
		// The peer does not read its stream: only the link's own close reaches it.
		s.box.reliable.reset()
	} else {
		s.box.reliable.buf = appendCloseFrame(s.box.reliable.buf, c)
		s.stats.FramesOut.Add(1)
	}
	s.deaf.Store(true)
	close(s.closing)
	signal(s.wakeStream)
	signal(s.wakeDatagrams)
}

// Closing returns a channel that is closed when an end is under way: from then on a
// driver waits for the stream only for so long.
func (s *Session) Closing() <-chan struct{} { return s.closing }

// Cause returns why the session is ending, once it is.
func (s *Session) Cause() (Closed, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.box.cause == nil {
		return Closed{}, false
	}
	return *s.box.cause, true
}

// CloseRequested reports, with the reason, that this end wants the connection closed and
// that AppendStream has nothing more to give.
func (s *Session) CloseRequested() (Closed, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.box.cause == nil || s.box.reliable.size() > 0 {
		return Closed{}, false
	}
	return *s.box.cause, true
}

// End says that the link is gone. The owner gets the arrival Gone, exactly once: with the
// reason why this end closed, if it did, otherwise with c.
func (s *Session) End(c Closed) {
	s.mu.Lock()
	if s.box.ended {
		s.mu.Unlock()
		return
	}
	s.box.ended = true
	if s.box.cause == nil {
		c.Text = clip(c.Text)
		if c.Remote && !s.cfg.Client && c.Code < CodeGame {
			c.Code = CodeLeft // A client may claim to have been kicked; all it can do is leave.
		}
		s.box.cause = &c
		close(s.closing)
	}
	final := *s.box.cause
	s.box.reliable = byteQueue{}
	s.box.unreliable = messageQueue{}
	s.deaf.Store(true)
	s.mu.Unlock()
	signal(s.wakeStream)
	signal(s.wakeDatagrams)
	s.stats.Disconnect(final.Code)
	s.cfg.Inbox.push(&Arrival{Kind: Gone, Session: s, At: s.Now(), Closed: &final}, 0)
}
