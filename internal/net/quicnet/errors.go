package quicnet

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"math"
	"net"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/netloop/netloop/internal/transport"
)

// ClosedBy converts the error of an ended connection to a code and a text.
func ClosedBy(err error) transport.Closed {
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
		return transport.Closed{Code: transport.CodeLost, Text: "no packet from the peer for " + idleTimeout.String()}
	case errors.As(err, &reset):
		return transport.Closed{Code: transport.CodeLost, Text: "peer does not know this connection: it restarted, or received no packet for " + idleTimeout.String()}
	case errors.As(err, &wire):
		return transport.Closed{Code: transport.CodeLost, Text: wire.Error(), Remote: wire.Remote}
	case err == nil, errors.Is(err, net.ErrClosed), errors.Is(err, context.Canceled), errors.Is(err, quic.ErrTransportClosed):
		return transport.Closed{Code: transport.CodeLost, Text: "socket is closed"}
	}
	return transport.Closed{Code: transport.CodeLost, Text: err.Error()}
}

// dialError converts the error of a failed dial: a *transport.Refusal if the server sent one. The
// caller adds the address.
func dialError(ctx context.Context, err error) error {
	var (
		app     *quic.ApplicationError
		refusal *transport.Refusal
		closed  *transport.Closed
		idle    *quic.IdleTimeoutError
		quiet   *quic.HandshakeTimeoutError
		dates   x509.CertificateInvalidError
	)
	switch {
	case errors.As(err, &refusal), errors.As(err, &closed):
		return err
	case errors.As(err, &app) && app.Remote:
		c := ClosedBy(err)
		return &transport.Refusal{Code: c.Code, Text: c.Text}
	case refusedAtOnce(err):
		return &transport.Refusal{Code: transport.CodeBusy, Text: "server accepts no clients now: it is full or overloaded, or has too many new connections"}
	case errors.As(err, &dates) && dates.Reason == x509.Expired && dates.Cert != nil:
		return &CertificateDates{dates.Cert.NotBefore, dates.Cert.NotAfter, err}
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("no answer in time: %w", context.Cause(ctx))
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &idle), errors.As(err, &quiet):
		return fmt.Errorf("no answer: %w", err)
	}
	return err
}

// refusedAtOnce reports whether a server refused a connection before its handshake. Such a refusal
// has no reason.
func refusedAtOnce(err error) bool {
	var wire *quic.TransportError
	return errors.As(err, &wire) && wire.Remote && wire.ErrorCode == quic.ConnectionRefused
}

// CertificateDates is the error of a dial to a server with a certificate that is not valid now.
type CertificateDates struct {
	From, Until time.Time
	cause       error
}

// Error implements error.
func (e *CertificateDates) Error() string {
	return fmt.Sprintf("server's certificate is valid from %s to %s: renew it, or correct the clock",
		e.From.UTC().Format(time.DateTime), e.Until.UTC().Format(time.DateTime))
}

// Unwrap returns the error of TLS.
func (e *CertificateDates) Unwrap() error { return e.cause }

// closeConn closes a connection with a code and a text.
func closeConn(conn *quic.Conn, code transport.Code, text string) {
	// The only error is that the connection is closed already.
	_ = conn.CloseWithError(quic.ApplicationErrorCode(code), text)
}
