package transport

import (
	"time"

	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// leg is what one session takes of a link: what the link's driver calls is for the session that it
// carries. One goroutine calls receiveDatagram, one receiveStream, one sendDatagrams, and one
// appendStream and closeRequested; the other methods are for any goroutine.
type leg struct {
	*conn
	session *Session // names the connection in arrivals, and for nothing else

	dup                      dupWindow     // datagram reader
	datagrams, datagramBytes meter         // datagram reader
	frames, streamBytes      meter         // stream reader
	ranges                   []Range       // datagram reader: scratch
	nextBeat                 time.Duration // datagram reader: until then another one is too soon
	stream                   []byte        // stream reader: an incomplete frame
	messages                 uint64        // stream reader: that have come over the stream
	taken                    bool          // stream reader: the room has taken the client
	datagram, tail           []byte        // datagram writer: scratch
}

// welcome queues the server's answer to the hello as the first bytes of the session. An answer that
// cannot be encoded ends the session.
func (l *leg) welcome(w *netloopv1.Welcome) error {
	b, err := AppendWelcome(nil, w)
	if err != nil {
		l.shutdown(CodeInternal, "the welcome could not be encoded")
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.box.reliable.append(b)
	return nil
}

// moved tells at which address the peer is now, when that has changed, and reports whether the
// inbox has taken it.
func (l *leg) moved(addr string) bool {
	a := Arrival{Kind: Moved, Session: l.session, At: l.now(), Message: Message{Text: addr}}
	return l.cfg.Inbox.push(&a, len(addr))
}

// closeRequested reports, with the reason, that this end wants the connection closed and
// that appendStream has nothing more to give.
func (l *leg) closeRequested() (Closed, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.box.cause == nil || l.box.reliable.size() > 0 {
		return Closed{}, false
	}
	return *l.box.cause, true
}

// end says that the link is gone. The owner gets the arrival Gone, exactly once: with the
// reason why this end closed, if it did, otherwise with c.
func (l *leg) end(c Closed) {
	l.mu.Lock()
	if l.box.ended {
		l.mu.Unlock()
		return
	}
	l.box.ended = true
	if l.box.cause == nil {
		c.Text = clip(c.Text)
		if c.Remote && !l.cfg.Client && c.Code < CodeGame && c.Code != CodeTimeout {
			// A client may claim to have been kicked; all it can do is leave, or hear nothing.
			c.Code = CodeLeft
		}
		l.box.cause = &c
		close(l.closing)
	}
	final, next := *l.box.cause, l.box.follows
	l.box.follows = nil
	l.box.reliable = byteQueue{}
	l.box.unreliable = messageQueue{}
	l.deaf.Store(true)
	l.mu.Unlock()
	l.wakeStream()
	l.wakeDatagrams()
	l.stats.Disconnect(final.Code)
	l.cfg.Inbox.push(&Arrival{Kind: Gone, Session: l.session, At: l.now(), Closed: &final}, 0)
	if next != nil {
		next.Done(nil, nil, final.refusal())
	}
}

// refusal is what the end of a connection says to who waits to be let in.
func (c *Closed) refusal() error {
	if c.Remote {
		return &Refusal{Code: c.Code, Text: c.Text}
	}
	return c
}
