package admission

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"time"

	"github.com/netloop/netloop/internal/net/driver"
	"github.com/netloop/netloop/internal/transport"
	netloopv1 "github.com/netloop/netloop/proto/netloop/v1"
)

// serve runs one connection from its handshake to its end.
func (c *Controller) serve(in Incoming, a *entry) {
	defer c.remove(in)
	defer c.unadmitted.remove(a)
	peer := in.RemoteAddr()
	conn, adm, err := c.handshake(in, a, peer.String())
	if err != nil {
		c.sendRefusal(in, conn, err)
		return
	}
	c.unadmitted.remove(a)
	c.cfg.Stats.Joined[in.Kind()].Add(1)
	if adm.Session.Clock == nil {
		adm.Session.Clock = c.cfg.Clock
	}
	if adm.Session.Stats == nil {
		adm.Session.Stats = c.cfg.Stats
	}
	session, link := transport.NewSession(adm.Session)
	link.Transport = in.Kind().String()
	c.allowMoves(in, a, link, adm.Who)
	if err := link.Welcome(adm.Welcome); err != nil {
		c.Failed("encoding the welcome failed", "error", err)
	}
	adm.Joined(session) // Even after an error: each client ends with the arrival Gone.
	c.addSession(in, link)
	run := driver.Config{Conn: conn, Link: link, Clock: adm.Session.Clock, Chunks: &c.chunks, Peer: peer}
	if timed, ok := in.(Timed); ok {
		run.Follow = timed.Follow
	}
	link.End(driver.Run(run))
}

// allowMoves lets a client move to another room over the same connection.
func (c *Controller) allowMoves(in Incoming, a *entry, link *transport.Link, who any) {
	link.LetMove(transport.Moves{
		Admit: func(hello *netloopv1.Hello, known bool) (*transport.Admitted, error) {
			ctx := in.Context()
			if known {
				ctx = transport.WithWho(ctx, who)
			}
			adm, err := c.admit(ctx, a, hello, in.RemoteAddr().String())
			if err != nil {
				c.cfg.Stats.Refused.Add(1)
				if _, said := transport.Declined(err); !said {
					c.Failed("admission failed", "remote", in.RemoteAddr().String(), "error", err)
				}
				return nil, err
			}
			who = adm.Who
			return adm, nil
		},
		Later: func(fn func()) { time.AfterFunc(c.cfg.HelloTimeout, fn) },
	})
}

// errLeft is the error of a client that closed the connection because it cannot use the server's
// tables. The client reports the reason to its own user.
var errLeft = errors.New("admission: the client cannot play by the server's schema")

// handshake waits for the stream, reads the hello, sends the server's schema to a client with a
// different schema, and calls the handler.
func (c *Controller) handshake(in Incoming, a *entry, remote string) (driver.Conn, *transport.Admitted, error) {
	ctx, cancel := context.WithTimeout(in.Context(), c.cfg.HelloTimeout)
	defer cancel()
	conn, err := in.Open(ctx)
	if err != nil {
		return nil, nil, c.noHello(a, err)
	}
	deadline, _ := ctx.Deadline()
	setDeadline(conn, deadline)
	r := transport.Reception{Handler: c.cfg.Handler, Stats: c.cfg.Stats}
	for {
		frame, err := transport.ReadFrame(conn, transport.MaxHandshake)
		switch {
		case err != nil && r.Waits() && !errors.Is(err, os.ErrDeadlineExceeded) && driver.Ended(conn) && conn.Closed().Remote:
			return conn, nil, errLeft
		case err != nil:
			return conn, nil, c.noHello(a, err)
		}
		answer, hello, err := r.Take(frame)
		if err != nil {
			return conn, nil, err
		}
		if hello != nil {
			setDeadline(conn, time.Time{})
			adm, err := c.admit(in.Context(), a, hello, remote)
			return conn, adm, err
		}
		if _, err := conn.Write(answer); err != nil {
			return conn, nil, c.noHello(a, err)
		}
	}
}

// setDeadline bounds reads and writes. Setting a stream's deadline does not fail.
func setDeadline(conn driver.Conn, at time.Time) {
	_ = conn.SetReadDeadline(at)
	_ = conn.SetWriteDeadline(at)
}

// noHello returns the refusal for a hello that did not arrive.
func (c *Controller) noHello(a *entry, err error) error {
	var r *transport.Refusal
	switch {
	case errors.As(err, &r):
		return err
	case c.unadmitted.isDismissed(a): // Counted already.
		return errBusy
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		c.cfg.Stats.Drop(transport.DropHelloTimeout, 1)
		return &transport.Refusal{Code: transport.CodeTimeout, Text: fmt.Sprintf("no hello within %v", c.cfg.HelloTimeout)}
	case errors.Is(err, transport.ErrFrameTooLarge):
		c.cfg.Stats.Drop(transport.DropHello, 1)
		return &transport.Refusal{Code: transport.CodeProtocol, Text: fmt.Sprintf("hello is larger than %d bytes", transport.MaxHandshake)}
	}
	c.cfg.Stats.Drop(transport.DropHello, 1)
	return &transport.Refusal{Code: transport.CodeProtocol, Text: "no hello"}
}

// admit asks the handler. A panic in it is returned as an error.
func (c *Controller) admit(ctx context.Context, a *entry, hello *netloopv1.Hello, remote string) (adm *transport.Admitted, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.AdmitTimeout)
	defer cancel()
	ctx = transport.WithApproved(ctx, func() { c.unadmitted.remove(a) })
	defer func() {
		if v := recover(); v != nil {
			adm, err = nil, fmt.Errorf("admission: the handler panicked: %v\n%s", v, debug.Stack())
		}
	}()
	adm, err = c.cfg.Handler.Admit(ctx, hello, remote)
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = &transport.Refusal{Code: transport.CodeTimeout, Text: "admission timed out"}
	}
	return adm, err
}

// sendRefusal sends the refusal to the peer. conn is nil if the peer opened no stream.
func (c *Controller) sendRefusal(in Incoming, conn driver.Conn, err error) {
	if errors.Is(err, errLeft) {
		c.cfg.Stats.Refused.Add(1)
	}
	if in.Context().Err() != nil {
		return // The peer has closed the connection.
	}
	r, said := transport.Declined(err)
	if !said {
		c.Failed("admission failed", "remote", in.RemoteAddr().String(), "error", err)
	}
	c.cfg.Stats.Refused.Add(1)
	if conn == nil {
		in.Close(r.Code, r.Text)
		return
	}
	_ = conn.SetWriteDeadline(time.Now().Add(driver.Linger))
	_, _ = conn.Write(transport.AppendRefused(nil, r)) // The close below repeats it.
	// The close does not contain the other server: the client closes first.
	if r.Moved != nil {
		_ = driver.Ended(conn)
	}
	conn.Close(r.Code, r.Text)
}
