package memnet

import (
	"cmp"
	"context"
	"errors"
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
func (c *Conn) dial(g transport.Greeting, cfg transport.SessionConfig, done func(*transport.Session, *netloopv1.Welcome, error)) {
	e := &c.client
	cfg.Client = true
	finished := false
	finish := func(w *netloopv1.Welcome, err error) {
		if finished {
			return
		}
		finished = true
		if err != nil {
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
	first, err := g.Open(nil)
	if err != nil {
		c.server.gone = true
		c.net.after(0, func() { finish(nil, &transport.Closed{Code: transport.CodeProtocol, Text: err.Error()}) })
		return
	}
	limit := min(cmp.Or(g.Limit, HandshakeTimeout), HandshakeTimeout)
	c.net.after(limit, func() {
		if !finished {
			e.quit(g.Goodbye(context.DeadlineExceeded))
			finish(nil, &transport.Closed{Code: transport.CodeTimeout, Text: "no answer within " + limit.String()})
		}
	})
	e.read = func() { e.readAnswer(&g, finish) }
	c.server.read = c.server.readHello
	e.sendReliable(initialSize, func() bool {
		if c.net.handler == nil {
			return true // No handler: the server does not answer.
		}
		c.server.sendReliable(initialSize, func() bool {
			hello := func() {
				if !finished {
					e.stream.waiting = first
					e.takeStream()
				}
			}
			if g.Hold != nil {
				g.Hold(hello)
			} else {
				hello()
			}
			return true
		})
		return true
	})
}

// readAnswer reads the server's frames at the client until the handshake is complete.
func (e *end) readAnswer(g *transport.Greeting, finish func(*netloopv1.Welcome, error)) {
	for {
		frame, rest, err := transport.CutFrame(e.begun, transport.MaxHandshake)
		if err == nil && frame == nil {
			return
		}
		var answer []byte
		var w *netloopv1.Welcome
		if err == nil {
			e.begun = rest
			answer, w, err = g.Take(frame)
		}
		if errors.Is(err, transport.ErrFrameTooLarge) {
			err = &transport.Closed{Code: transport.CodeProtocol, Text: err.Error()}
		}
		if err != nil {
			e.quit(g.Goodbye(err))
		}
		if err != nil || w != nil {
			finish(w, err)
			return
		}
		e.sendHandshake(answer)
	}
}

// sendHandshake sends bytes of the handshake.
func (e *end) sendHandshake(b []byte) {
	e.stream.waiting = append(e.stream.waiting, b...)
	e.takeStream()
}

// readHello reads the client's frames at the server until the client may be admitted.
func (e *end) readHello() {
	for {
		frame, rest, err := transport.CutFrame(e.begun, transport.MaxHandshake)
		if err == nil && frame == nil {
			return
		}
		if e.reception == nil {
			e.conn.net.Stats.Handshakes[transport.QUIC].Add(1)
			e.reception = &transport.Reception{Handler: e.conn.net.handler, Stats: e.conn.net.Stats}
		}
		var answer []byte
		var hello *netloopv1.Hello
		if err != nil {
			e.conn.net.Stats.Drop(transport.DropHello, 1)
			err = &transport.Refusal{Code: transport.CodeProtocol, Text: err.Error()}
		} else {
			e.begun = rest
			answer, hello, err = e.reception.Take(frame)
		}
		switch {
		case err != nil:
			e.refuse(err)
			return
		case hello != nil:
			e.admit(hello)
			return
		}
		e.sendHandshake(answer)
	}
}

// admit asks the handler, and creates the session of an admitted client.
func (e *end) admit(hello *netloopv1.Hello) {
	a, err := e.conn.net.handler.Admit(context.Background(), hello, e.conn.remote)
	if err != nil {
		e.refuse(err)
		return
	}
	if a.Session.Stats == nil {
		a.Session.Stats = e.conn.net.Stats
	}
	s := e.start(a.Session)
	e.letMove(a.Who)
	_ = e.link.Welcome(a.Welcome) // Its error ends the session.
	a.Joined(s)
	e.handOver()
}

// letMove lets the client move to another room over the same connection.
func (e *end) letMove(who any) {
	n := e.conn.net
	e.link.LetMove(transport.Moves{
		Admit: func(hello *netloopv1.Hello, known bool) (*transport.Admitted, error) {
			ctx := context.Background()
			if known {
				ctx = transport.WithWho(ctx, who)
			}
			a, err := n.handler.Admit(ctx, hello, e.conn.remote)
			if err != nil {
				n.Stats.Refused.Add(1)
				return nil, err
			}
			who = a.Who
			return a, nil
		},
		Later: func(fn func()) { n.after(HandshakeTimeout, fn) },
	})
}

// refuse answers a hello with the refusal. The client then closes the connection.
func (e *end) refuse(err error) {
	e.conn.net.Stats.Refused.Add(1)
	r, _ := transport.Declined(err)
	e.read = nil
	e.sendHandshake(transport.AppendRefused(nil, r))
}

// handOver ends the handshake at this end: the session gets the bytes after the last frame.
func (e *end) handOver() {
	if rest := e.begun; len(rest) > 0 {
		e.deliver(rest)
	}
	e.pump()
}
