package wtnet

import (
	"errors"
	"fmt"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"

	"github.com/netloop/netloop/internal/transport"
)

// ALPN is HTTP/3, which browsers negotiate in TLS.
const ALPN = http3.NextProtoH3

// Path is that of the one resource there is.
const Path = "/netloop"

// The numbers of draft-ietf-webtrans-http3, up to draft 15, and of RFC 9114.
const (
	settingEnableDraft06   = 0x2b603742 // drafts 02 to 06; Chromium and Firefox ask for it
	settingMaxSessions     = 0x14e9cd29 // from draft 13 on; Safari asks for it
	settingEnabled         = 0x2c7cf000 // from draft 15 on
	frameBidirectional     = 0x41       // begins a bidirectional stream of a session
	capsuleClose           = 0x2843     // CLOSE_WEBTRANSPORT_SESSION
	bufferedStreamRejected = 0x3994bd84
	frameData              = 0x0
	protocol               = "webtransport"    // :protocol of all drafts but the newest
	protocolNewest         = "webtransport-h3" // from draft 15 on
)

// settings are those of a server beside extended CONNECT and datagrams: a session each.
func settings() map[uint64]uint64 {
	return map[uint64]uint64{settingEnableDraft06: 1, settingMaxSessions: 1, settingEnabled: 1}
}

// firstError is where the numbers of HTTP/3 begin that belong to the applications of WebTransport.
// A session's code stands there when a connection is closed without a capsule.
const firstError = 0x52e4a40fa8db

// errorCode is a code as one of HTTP/3, which leaves out one in 31.
func errorCode(c transport.Code) quic.ApplicationErrorCode {
	return firstError + quic.ApplicationErrorCode(c) + quic.ApplicationErrorCode(c/0x1e)
}

// codeOf returns the code that an error of HTTP/3 stands for.
func codeOf(e quic.ApplicationErrorCode) (c transport.Code, ok bool) {
	if e < firstError || e > errorCode(^transport.Code(0)) || (e-firstError)%0x1f == 0x1e {
		return 0, false
	}
	return transport.Code(e - firstError - (e-firstError)/0x1f), true
}

// why says in the words of package quicnet why a connection ended: an error of HTTP/3 becomes one
// of netloop, or the loss of the connection.
func why(err error) error {
	var app *quic.ApplicationError
	if !errors.As(err, &app) {
		return err
	}
	c, ok := codeOf(app.ErrorCode)
	if !ok {
		return fmt.Errorf("the connection was closed without a reason: HTTP/3 error %#x", uint64(app.ErrorCode))
	}
	return &quic.ApplicationError{Remote: app.Remote, ErrorCode: quic.ApplicationErrorCode(c), ErrorMessage: app.ErrorMessage}
}

// closeConn closes a connection at once. Browsers show nothing of it.
func closeConn(conn *quic.Conn, code transport.Code, text string) {
	// The only error is that the connection is closed already.
	_ = conn.CloseWithError(errorCode(code), text)
}
