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

// settings returns the server's HTTP/3 settings for WebTransport. There is one setting for each
// draft; each permits one session per connection. http3 adds the settings for extended CONNECT and
// datagrams.
func settings() map[uint64]uint64 {
	return map[uint64]uint64{settingEnableDraft06: 1, settingMaxSessions: 1, settingEnabled: 1}
}

// firstError is the first HTTP/3 error code of WebTransport applications. If a connection is closed
// without a capsule, its code of netloop is converted to one of these codes, see errorCode.
const firstError = 0x52e4a40fa8db

// errorCode converts a code of netloop to a code of HTTP/3. It skips every 31st code, which HTTP/3
// reserves.
func errorCode(c transport.Code) quic.ApplicationErrorCode {
	return firstError + quic.ApplicationErrorCode(c) + quic.ApplicationErrorCode(c/0x1e)
}

// codeOf converts an error code of HTTP/3 to the code of netloop.
func codeOf(e quic.ApplicationErrorCode) (c transport.Code, ok bool) {
	if e < firstError || e > errorCode(^transport.Code(0)) || (e-firstError)%0x1f == 0x1e {
		return 0, false
	}
	return transport.Code(e - firstError - (e-firstError)/0x1f), true
}

// why converts the error of an ended connection for package quicnet: a WebTransport code to a code
// of netloop, and any other HTTP/3 error to the loss of the connection.
func why(err error) error {
	var app *quic.ApplicationError
	if !errors.As(err, &app) {
		return err
	}
	c, ok := codeOf(app.ErrorCode)
	if !ok {
		return fmt.Errorf("connection was closed without a reason: HTTP/3 error %#x", uint64(app.ErrorCode))
	}
	return &quic.ApplicationError{Remote: app.Remote, ErrorCode: quic.ApplicationErrorCode(c), ErrorMessage: app.ErrorMessage}
}

// closeConn closes a connection at once. Browsers do not show the code and the text.
func closeConn(conn *quic.Conn, code transport.Code, text string) {
	// The only possible error is that the connection is closed already.
	_ = conn.CloseWithError(errorCode(code), text)
}
