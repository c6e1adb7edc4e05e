package transport

import (
	"sync/atomic"

	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// leg is one session of a link, with its receiving and sending side. The Link's methods call the
// same methods of its current leg. One goroutine calls receiveDatagram, another one receiveStream,
// and another one appendStream and closeRequested; any goroutine may call the other methods.
type leg struct {
	*conn
	session *Session // used only to name the session in arrivals

	dup                      dupWindow              // datagram reader
	datagrams, datagramBytes meter                  // datagram reader
	frames, streamBytes      meter                  // stream reader
	ranges                   []Range                // datagram reader: scratch
	mispredicted             uint64                 // datagram reader: the largest reported number
	stream                   []byte                 // stream reader: an incomplete frame
	messages                 uint64                 // stream reader: number of messages received
	taken                    bool                   // stream reader: the frame accepted has arrived
	tail                     []byte                 // scratch; under mu
	scratch                  atomic.Pointer[[]byte] // of SendDatagrams; nil: in use
}

// welcome queues the server's answer to the hello as the first bytes of the session. An answer that
// cannot be encoded ends the session.
func (l *leg) welcome(w *netloopv1.Welcome) error {
	b, err := AppendWelcome(nil, w)
	if err != nil {
		l.shutdown(CodeInternal, "encoding the welcome failed")
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.box.reliable.append(b)
	return nil
}

// moved pushes the peer's new address to the inbox, and reports whether the inbox accepted it.
func (l *leg) moved(addr string) bool {
	a := Arrival{Kind: Moved, Session: l.session, At: l.now(), Message: Message{Text: addr}}
	return l.cfg.Inbox.push(&a, len(addr))
}

// closeRequested reports whether this end wants to close the connection and appendStream has no
// more bytes. It returns the reason too.
func (l *leg) closeRequested() (Closed, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.box.cause == nil || l.box.reliable.size() > 0 {
		return Closed{}, false
	}
	return *l.box.cause, true
}

// end ends the session after the end of the link. The owner gets the arrival Gone, exactly once:
// with the reason of this end's close, if any, and otherwise with c.
func (l *leg) end(c Closed) {
	l.mu.Lock()
	if l.box.ended {
		l.mu.Unlock()
		return
	}
	l.box.ended = true
	if l.box.cause == nil {
		c.Text = clip(c.Text)
		if c.Remote && !l.cfg.Client && c.Code < CodeGame && c.Code != CodeTimeout && (c.Code != CodeMoved || !l.box.travels) {
			// A client may send any code, but it can only leave, lose the connection, or move to
			// another server after it was told to.
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

// refusal returns the error for a client that waits for its admission while the connection ends.
func (c *Closed) refusal() error {
	if c.Remote {
		return &Refusal{Code: c.Code, Text: c.Text}
	}
	return c
}
