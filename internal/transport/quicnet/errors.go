package quicnet

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"

	"github.com/quic-go/quic-go"

	"github.com/netloop/netloop/internal/transport"
)

// closedBy says in the transport's words why a connection ended.
func closedBy(err error) transport.Closed {
	var (
		app   *quic.ApplicationError
		wire  *quic.TransportError
		idle  *quic.IdleTimeoutError
		reset *quic.StatelessResetError
	)
	switch {
	case errors.As(err, &app):
		code := transport.CodeUnspecified
		if uint64(app.ErrorCode) <= math.MaxUint32 {
			code = transport.Code(app.ErrorCode)
		}
		return transport.Closed{Code: code, Text: app.ErrorMessage, Remote: app.Remote}
	case errors.As(err, &idle):
		return transport.Closed{Code: transport.CodeLost, Text: "no sign of the peer for " + idleTimeout.String()}
	case errors.As(err, &reset):
		return transport.Closed{Code: transport.CodeLost, Text: "the peer has restarted"}
	case errors.As(err, &wire):
		return transport.Closed{Code: transport.CodeLost, Text: wire.Error(), Remote: wire.Remote}
	case err == nil, errors.Is(err, net.ErrClosed), errors.Is(err, context.Canceled), errors.Is(err, quic.ErrTransportClosed):
		return transport.Closed{Code: transport.CodeLost, Text: "the socket was closed"}
	}
	return transport.Closed{Code: transport.CodeLost, Text: err.Error()}
}

// dialError says why a dial failed: a *transport.Refusal if the server said so. The caller
// adds the address.
func dialError(ctx context.Context, err error) error {
	var (
		app     *quic.ApplicationError
		refusal *transport.Refusal
		closed  *transport.Closed
		idle    *quic.IdleTimeoutError
		quiet   *quic.HandshakeTimeoutError
	)
	switch {
	case errors.As(err, &refusal), errors.As(err, &closed):
		return err
	case errors.As(err, &app) && app.Remote:
		c := closedBy(err)
		return &transport.Refusal{Code: c.Code, Text: c.Text}
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("nobody has answered in time: %w", context.Cause(ctx))
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &idle), errors.As(err, &quiet):
		return fmt.Errorf("nobody answers there: %w", err)
	}
	return err
}

// closeConn closes a connection with a code and a text.
func closeConn(conn *quic.Conn, code transport.Code, text string) {
	// The only error is that the connection is closed already.
	_ = conn.CloseWithError(quic.ApplicationErrorCode(code), text)
}
