package transport

import "time"

// Link is one connection after its handshake as its driver sees it: bytes that have arrived
// go in, bytes to send come out. One goroutine calls ReceiveDatagram or ReceiveWaited, one
// ReceiveStream, one SendDatagrams, and one AppendStream and CloseRequested; the other methods
// are for any goroutine. A driver with a single goroutine may call them all from there.
type Link struct {
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

// OnWake lets functions be called whenever there may be datagrams, or stream bytes, to send, or the
// end has begun. Any goroutine calls them, the owner's too and with the connection locked, so they
// must neither wait nor call the link. What there is when OnWake is called they are not told.
func (l *Link) OnWake(datagrams, stream func()) { l.wakers.Store(&wakers{datagrams, stream}) }

// SetRTT tells the smoothed round trip that the link measures.
func (l *Link) SetRTT(srtt time.Duration) { l.srtt.Store(int64(srtt)) }

// Moved tells at which address the peer is now, when that has changed, and reports whether the
// inbox has taken it.
func (l *Link) Moved(addr string) bool {
	a := Arrival{Kind: Moved, Session: l.session, At: l.now(), Message: Message{Text: addr}}
	return l.cfg.Inbox.push(&a, len(addr))
}

// Shutdown ends the connection on the driver's behalf: the peer gets code and text after all
// that the owner has flushed.
func (l *Link) Shutdown(code Code, text string) { l.shutdown(code, text) }

// CloseRequested reports, with the reason, that this end wants the connection closed and
// that AppendStream has nothing more to give.
func (l *Link) CloseRequested() (Closed, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.box.cause == nil || l.box.reliable.size() > 0 {
		return Closed{}, false
	}
	return *l.box.cause, true
}

// End says that the link is gone. The owner gets the arrival Gone, exactly once: with the
// reason why this end closed, if it did, otherwise with c.
func (l *Link) End(c Closed) {
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
	final := *l.box.cause
	l.box.reliable = byteQueue{}
	l.box.unreliable = messageQueue{}
	l.deaf.Store(true)
	l.mu.Unlock()
	l.wakeStream()
	l.wakeDatagrams()
	l.stats.Disconnect(final.Code)
	l.cfg.Inbox.push(&Arrival{Kind: Gone, Session: l.session, At: l.now(), Closed: &final}, 0)
}
