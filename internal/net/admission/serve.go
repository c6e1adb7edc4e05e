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
func (d *Door) serve(v Visitor, st *stranger) {
	defer d.left(v)
	defer d.strangers.leave(st)
	peer := v.RemoteAddr()
	conn, adm, err := d.handshake(v, st, peer.String())
	if err != nil {
		d.decline(v, conn, err)
		return
	}
	d.strangers.leave(st)
	d.cfg.Stats.Joined[v.Carrier()].Add(1)
	if adm.Session.Clock == nil {
		adm.Session.Clock = d.cfg.Clock
	}
	if adm.Session.Stats == nil {
		adm.Session.Stats = d.cfg.Stats
	}
	session, link := transport.NewSession(adm.Session)
	d.letMove(v, st, link, adm.Who)
	if err := link.Welcome(adm.Welcome); err != nil {
		d.Failed("the welcome could not be encoded", "error", err)
	}
	adm.Joined(session) // Always called: each admitted client ends with a Gone.
	d.entered(v, link)
	run := driver.Config{Conn: conn, Link: link, Clock: adm.Session.Clock, Chunks: &d.chunks, Peer: peer}
	if timed, ok := v.(Timed); ok {
		run.Follow = timed.Follow
	}
	link.End(driver.Run(run))
}

// letMove lets a client move to another room over the same connection.
func (d *Door) letMove(v Visitor, st *stranger, link *transport.Link, who any) {
	link.LetMove(transport.Moves{
		Admit: func(hello *netloopv1.Hello, known bool) (*transport.Admission, error) {
			ctx := v.Context()
			if known {
				ctx = transport.WithWho(ctx, who)
			}
			adm, err := d.admit(ctx, st, hello, v.RemoteAddr().String())
			if err != nil {
				d.cfg.Stats.Refused.Add(1)
				if _, said := transport.Declined(err); !said {
					d.Failed("admission failed", "remote", v.RemoteAddr().String(), "error", err)
				}
				return nil, err
			}
			who = adm.Who
			return adm, nil
		},
		Later: func(fn func()) { time.AfterFunc(d.cfg.HelloTimeout, fn) },
	})
}

// errLeft is the error of a client that closed the connection because it cannot use the server's
// tables. The client reports the reason to its own user.
var errLeft = errors.New("door: the client cannot play by the server's schema")

// handshake waits for the stream, reads the hello, sends the server's schema to a client with
// another one, and asks the handler.
func (d *Door) handshake(v Visitor, st *stranger, remote string) (driver.Conn, *transport.Admission, error) {
	ctx, cancel := context.WithTimeout(v.Context(), d.cfg.HelloTimeout)
	defer cancel()
	conn, err := v.Open(ctx)
	if err != nil {
		return nil, nil, d.noHello(st, err)
	}
	deadline, _ := ctx.Deadline()
	setDeadline(conn, deadline)
	r := transport.Reception{Handler: d.cfg.Handler, Stats: d.cfg.Stats}
	for {
		frame, err := transport.ReadFrame(conn, transport.MaxHandshake)
		switch {
		case err != nil && r.Waits() && !errors.Is(err, os.ErrDeadlineExceeded) && driver.Ended(conn) && conn.Closed().Remote:
			return conn, nil, errLeft
		case err != nil:
			return conn, nil, d.noHello(st, err)
		}
		answer, hello, err := r.Take(frame)
		if err != nil {
			return conn, nil, err
		}
		if hello != nil {
			setDeadline(conn, time.Time{})
			adm, err := d.admit(v.Context(), st, hello, remote)
			return conn, adm, err
		}
		if _, err := conn.Write(answer); err != nil {
			return conn, nil, d.noHello(st, err)
		}
	}
}

// setDeadline bounds reads and writes. Setting a stream's deadline does not fail.
func setDeadline(conn driver.Conn, at time.Time) {
	_ = conn.SetReadDeadline(at)
	_ = conn.SetWriteDeadline(at)
}

// noHello returns the refusal for a hello that did not arrive.
func (d *Door) noHello(st *stranger, err error) error {
	var r *transport.Refusal
	switch {
	case errors.As(err, &r):
		return err
	case d.strangers.dismisses(st): // Counted already.
		return errBusy
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		d.cfg.Stats.Drop(transport.DropHelloTimeout, 1)
		return &transport.Refusal{Code: transport.CodeTimeout, Text: fmt.Sprintf("no hello within %v", d.cfg.HelloTimeout)}
	case errors.Is(err, transport.ErrFrameTooLarge):
		d.cfg.Stats.Drop(transport.DropHello, 1)
		return &transport.Refusal{Code: transport.CodeProtocol, Text: fmt.Sprintf("a hello has at most %d bytes", transport.MaxHandshake)}
	}
	d.cfg.Stats.Drop(transport.DropHello, 1)
	return &transport.Refusal{Code: transport.CodeProtocol, Text: "no hello"}
}

// admit asks the handler. A panic in it is returned as an error.
func (d *Door) admit(ctx context.Context, st *stranger, hello *netloopv1.Hello, remote string) (adm *transport.Admission, err error) {
	ctx, cancel := context.WithTimeout(ctx, d.cfg.AdmitTimeout)
	defer cancel()
	ctx = transport.WithApproved(ctx, func() { d.strangers.leave(st) })
	defer func() {
		if v := recover(); v != nil {
			adm, err = nil, fmt.Errorf("door: admission panicked: %v\n%s", v, debug.Stack())
		}
	}()
	adm, err = d.cfg.Handler.Admit(ctx, hello, remote)
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = &transport.Refusal{Code: transport.CodeTimeout, Text: "the admission took too long"}
	}
	return adm, err
}

// decline sends the refusal to the peer. conn is nil if the peer opened no stream.
func (d *Door) decline(v Visitor, conn driver.Conn, err error) {
	if errors.Is(err, errLeft) {
		d.cfg.Stats.Refused.Add(1)
	}
	if v.Context().Err() != nil {
		return // The peer has closed the connection.
	}
	r, said := transport.Declined(err)
	if !said {
		d.Failed("admission failed", "remote", v.RemoteAddr().String(), "error", err)
	}
	d.cfg.Stats.Refused.Add(1)
	if conn == nil {
		v.Close(r.Code, r.Text)
		return
	}
	_ = conn.SetWriteDeadline(time.Now().Add(driver.Linger))
	_, _ = conn.Write(transport.AppendRefused(nil, r)) // The close below repeats it.
	conn.Close(r.Code, r.Text)
}
