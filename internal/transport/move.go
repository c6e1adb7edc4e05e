package transport

import (
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// A client moves to another room over its connection: one session ends, and another session begins
// on the same link.
//
//	client                                    server
//	Session.AskMove  ── move ───────────────▶ MoveAsked: its room lets it leave
//	MoveTold         ◀────────────── moved ── Session.Move, the session's last frame
//	Session.Follow   ── hello ──────────────▶ Moves.Admit: known, if it has the ticket of moved
//	Next.Done        ◀──────────── welcome ── Admitted.Joined
//
// After its last frame an end neither sends nor accepts datagrams of the old session. Datagram
// numbers continue, and hello and welcome contain the first number of the new session: so late
// datagrams of the old session are detected without another field in each datagram.

// Moves lets the client of a server's link move to another session.
type Moves struct {
	// Admit is called like Handler.Admit, by the goroutine that reads the stream. known reports
	// that the hello has the ticket of the frame moved and no other credential. Only then the
	// server reuses its data of the client. Any other hello is checked like the hello of a new
	// client.
	Admit func(hello *netloopv1.Hello, known bool) (*Admitted, error)
	// Later calls fn after the time limit for the client's hello.
	Later func(fn func())
}

// LetMove lets the client move. It is called before the session's owner has the session.
func (l *Link) LetMove(m Moves) { l.moves.Store(&m) }

// Next describes the next session of a client that moves: its hello, its configuration, and the
// function to call when it has begun or was refused.
type Next struct {
	Hello   *netloopv1.Hello
	Session SessionConfig
	// Done is called once, by any goroutine: with the session and the server's welcome, or with an
	// error, a *Refusal if the server refused.
	Done func(*Session, *netloopv1.Welcome, error)
}

// handover is the error of a stream on which another session begins.
type handover struct {
	frame []byte // the first frame of the new session
	rest  []byte // the following bytes of the stream
}

func (*handover) Error() string { return "transport: another session follows" }

// AskMove requests a move to another room, on a client.
func (s *Session) AskMove(ticket string) {
	if !s.out.closed {
		s.out.reliable.buf = appendMoveFrame(s.out.reliable.buf, frameMove, ticket)
		s.stats.FramesOut.Add(1)
	}
}

// Move ends the session, on the server, after all data that its owner has sent, and tells the
// client to continue with a ticket. A client that cannot move is closed with CodeMoved and the
// ticket as the text.
func (s *Session) Move(ticket string) {
	moves := s.link.moves.Load()
	if moves == nil || !s.cfg.Moves {
		s.Close(CodeMoved, ticket)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.collectLocked()
	s.out.closed = true
	if s.box.cause == nil {
		s.box.ticket = ticket
		s.moveLocked(appendMoveFrame(nil, frameMoved, ticket))
		moves.Later(s.idle)
	}
}

// idle ends the connection of a client that was told to move and has not sent its hello. Once the
// hello has arrived, the driver bounds the time of the admission.
func (s *Session) idle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.box.ended && !s.box.greeted {
		s.shutdownLocked(Closed{Code: CodeTimeout, Text: "no hello after moved"})
	}
}

// Follow ends the session, on a client that was told to move, and requests the next session.
func (s *Session) Follow(n Next) {
	frame, why, err := s.follow(&n)
	switch {
	case err != nil:
		n.Done(nil, nil, err)
	case frame == nil:
		n.Done(nil, nil, why.refusal())
	}
}

func (s *Session) follow(n *Next) (frame []byte, why *Closed, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.collectLocked()
	s.out.closed = true
	if s.box.cause != nil {
		return nil, s.box.cause, nil
	}
	n.Hello.Datagram = s.box.number + 1
	if frame, err = AppendHello(nil, n.Hello); err != nil {
		return nil, nil, err
	}
	s.box.follows = n
	s.moveLocked(frame)
	return frame, nil, nil
}

// moveLocked queues the session's last frame.
func (c *conn) moveLocked(frame []byte) {
	c.box.reliable.append(frame)
	c.stats.FramesOut.Add(1)
	c.box.moving = true
	c.deaf.Store(true)
	c.wakeStream()
}

// maxFrame returns the size limit of a received frame: MaxFrame, or MaxHandshake once the session
// is closing or has ended, because the hello or welcome of another session may follow.
func (l *leg) maxFrame() int {
	if l.deaf.Load() {
		return MaxHandshake
	}
	return MaxFrame
}

// receiveTicket handles a frame that contains only a ticket.
func (l *leg) receiveTicket(at time.Duration, k ArrivalKind, body []byte) error {
	ticket, err := parseMove(body)
	if err != nil {
		return l.broken(err)
	}
	l.pushReliable(&Arrival{Kind: k, At: at, Message: Message{Text: ticket}}, len(ticket))
	return nil
}

// receiveMoved handles the frame that tells a client to move.
func (l *leg) receiveMoved(at time.Duration, body []byte) error {
	ticket, to, err := parseMoved(body)
	if err != nil {
		return l.broken(err)
	}
	a := Arrival{Kind: MoveTold, At: at, Message: Message{Text: ticket}}
	if to != nil {
		a.Decoded = to
	}
	l.pushReliable(&a, len(ticket))
	return nil
}

// receiveHandover handles a frame after the session's last frame: the first frame of the next
// session, or a late frame of the old session, which is dropped.
func (l *leg) receiveHandover(kind protowire.Number, frame []byte) error {
	begins := frameHello
	if l.cfg.Client {
		begins = frameWelcome
	}
	l.mu.Lock()
	b := &l.box
	follows := kind == begins && b.moving && b.cause == nil && b.reliable.size() == 0
	b.greeted = b.greeted || follows
	l.mu.Unlock()
	if follows {
		return &handover{frame: frame}
	}
	l.stats.Drop(DropInboxGone, 1)
	return nil
}

// moveOn begins the session for which the peer has sent a hello or a welcome.
func (l *Link) moveOn(frame []byte) error {
	old := l.leg.Load()
	if old.cfg.Client {
		return l.followed(old, frame)
	}
	hello, err := DecodeHello(frame)
	var adm *Admitted
	if err == nil {
		adm, err = l.moves.Load().Admit(hello, old.knows(hello))
	}
	if err != nil {
		r, _ := Declined(err)
		l.Shutdown(r.Code, r.Text)
		return &Closed{Code: r.Code, Text: r.Text}
	}
	adm.Welcome.Datagram = old.lastDatagram() + 1
	session, next := l.succeed(old, adm.Session, hello.GetDatagram())
	_ = next.welcome(adm.Welcome) // An error of welcome ends the session.
	adm.Joined(session)
	l.begin(old, next)
	return nil
}

// knows reports whether a hello has the ticket of the frame moved and no other credential.
func (l *leg) knows(hello *netloopv1.Hello) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	ticket := l.box.ticket
	return ticket != "" && hello.GetTicket() == ticket && len(hello.GetResume().GetToken()) == 0
}

// followed begins the session that the client has requested.
func (l *Link) followed(old *leg, frame []byte) error {
	f, err := decodeFrame(frame)
	var w *netloopv1.Welcome
	if err == nil {
		w, err = decodeAnswer(f)
	}
	if err != nil {
		l.Shutdown(CodeProtocol, "answer to hello is malformed")
		return &Closed{Code: CodeProtocol, Text: err.Error()}
	}
	old.mu.Lock()
	asked := old.box.follows
	old.box.follows = nil
	old.mu.Unlock()
	if asked == nil {
		return &Closed{Code: CodeLost}
	}
	asked.Session.Client, asked.Session.ID = true, w.GetClientId()
	session, next := l.succeed(old, asked.Session, w.GetDatagram())
	l.begin(old, next)
	asked.Done(session, w, nil)
	return nil
}

// lastDatagram returns the number of the last datagram that this end has sent.
func (c *conn) lastDatagram() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.box.number
}

// succeed creates the next session; first is the number of the peer's first datagram for it.
func (l *Link) succeed(old *leg, cfg SessionConfig, first uint64) (*Session, *leg) {
	if cfg.Clock == nil {
		cfg.Clock = old.cfg.Clock
	}
	if cfg.Stats == nil {
		cfg.Stats = old.stats
	}
	session, next := newSession(cfg, l)
	next.box.number = old.lastDatagram()
	next.dup.begin(first)
	next.srtt.Store(old.srtt.Load())
	return session, next
}

// begin makes next the current session of the link, and ends the old one. If the connection is
// already ending, next ends with the same reason.
func (l *Link) begin(old, next *leg) {
	next.wakers.Store(l.wakers.Load())
	l.leg.Store(next)
	old.end(Closed{Code: CodeMoved})
	if why, _ := old.Cause(); why.Code != CodeMoved {
		next.shutdown(why.Code, why.Text)
	}
	next.wakeDatagrams()
	next.wakeStream()
}

// appendMoveFrame appends a frame that contains only a ticket.
func appendMoveFrame(dst []byte, kind protowire.Number, ticket string) []byte {
	body := sizeBytesField(len(ticket))
	head := protowire.SizeTag(kind) + protowire.SizeBytes(body)
	dst = appendHead(protowire.AppendVarint(dst, uint64(head)), kind, body)
	return append(appendHead(dst, 1, len(ticket)), ticket...)
}
