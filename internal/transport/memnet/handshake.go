package memnet

import (
	"context"
	"time"

	"github.com/netloop/netloop/internal/transport"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

const (
	// HandshakeTimeout bounds a dial, as quic-go bounds its handshake.
	HandshakeTimeout = 5 * time.Second
	// initialSize is the payload of QUIC's first packets, which are padded.
	initialSize = 1200
)

// dial performs the client's half of the handshake: one round trip for QUIC's own, then
// the hello and its answer on the stream.
func (c *Conn) dial(hello *netloopv1.Hello, cfg transport.SessionConfig, done func(*transport.Session, *netloopv1.Welcome, error)) {
	e := &c.client
	cfg.Client = true
	finished := false
	finish := func(w *netloopv1.Welcome, err error) {
		if finished {
			return
		}
		finished = true
		if err != nil {
			c.client.gone = true
			done(nil, nil, err)
			return
		}
		if cfg.ID == 0 {
			cfg.ID = w.GetClientId()
		}
		s := e.start(cfg)
		done(s, w, nil)
		e.handOver()
	}
	first, err := transport.AppendHello(nil, hello)
	if err != nil {
		c.server.gone = true
		c.net.after(0, func() { finish(nil, &transport.Closed{Code: transport.CodeProtocol, Text: err.Error()}) })
		return
	}
	c.net.after(HandshakeTimeout, func() {
		if !finished {
			late := transport.Closed{Code: transport.CodeTimeout, Text: "no answer within " + HandshakeTimeout.String()}
			e.quit(late)
			finish(nil, &late)
		}
	})
	e.read = func() { e.readAnswer(finish) }
	c.server.read = c.server.readHello
	e.sure(initialSize, func() bool {
		if c.net.handler == nil {
			return true // Nobody is there to answer.
		}
		c.server.sure(initialSize, func() bool {
			e.stream.waiting = first
			e.takeStream()
			return true
		})
		return true
	})
}

// readAnswer is the client's reader until the server has answered.
func (e *end) readAnswer(finish func(*netloopv1.Welcome, error)) {
	frame, rest, err := transport.CutFrame(e.begun, transport.MaxHandshake)
	if err != nil {
		broken := transport.Closed{Code: transport.CodeProtocol, Text: err.Error()}
		e.quit(broken)
		finish(nil, &broken)
		return
	}
	if frame == nil {
		return
	}
	e.begun = rest
	w, err := transport.DecodeAnswer(frame)
	if err != nil {
		e.quit(transport.Closed{Code: transport.CodeLeft})
	}
	finish(w, err)
}

// readHello is the server's reader until it has a whole hello.
func (e *end) readHello() {
	frame, rest, err := transport.CutFrame(e.begun, transport.MaxHandshake)
	if err == nil && frame == nil {
		return
	}
	stats := e.conn.net.Stats
	stats.Handshakes.Add(1)
	var hello *netloopv1.Hello
	if err != nil {
		err = &transport.Refusal{Code: transport.CodeProtocol, Text: err.Error()}
	} else {
		hello, err = transport.DecodeHello(frame)
	}
	if err != nil {
		stats.Drop(transport.DropHello, 1)
		e.refuse(err)
		return
	}
	e.begun = rest
	e.admit(hello)
}

// admit asks the handler, and makes the session of whom it lets in.
func (e *end) admit(hello *netloopv1.Hello) {
	a, err := e.conn.net.handler.Admit(context.Background(), hello, e.conn.remote)
	if err != nil {
		e.refuse(err)
		return
	}
	welcome, err := transport.AppendWelcome(nil, a.Welcome)
	e.stream.waiting = welcome
	if a.Session.Stats == nil {
		a.Session.Stats = e.conn.net.Stats
	}
	s := e.start(a.Session)
	a.Joined(s)
	if err != nil {
		s.Shutdown(transport.CodeInternal, err.Error())
	}
	e.handOver()
}

// refuse answers a hello with what the client may read. The client hangs up.
func (e *end) refuse(err error) {
	e.conn.net.Stats.Refused.Add(1)
	r, _ := transport.Declined(err)
	e.read = nil
	e.stream.waiting = transport.AppendRefused(nil, r)
	e.takeStream()
}

// handOver ends the handshake at this end: the bytes behind its frame are the session's.
func (e *end) handOver() {
	rest := e.begun
	e.begun, e.read = nil, nil
	if len(rest) > 0 {
		e.deliver(rest)
	}
	e.pump()
}
