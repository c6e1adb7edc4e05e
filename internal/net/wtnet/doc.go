// Package wtnet is the WebTransport transport, so that browsers can play, on the UDP port of all
// other clients. It is a [quicnet.Protocol] named h3: the part of HTTP/3 that a session needs, by
// quic-go's http3.
//
// # The connection of a browser
//
//	browser: its streams for control and QPACK      never read: not needed
//	server:  SETTINGS                                extended CONNECT, datagrams, WebTransport
//	browser: CONNECT /netloop, :protocol webtransport, origin
//	server:  200, or 403, 404, 405
//	browser: a bidirectional stream of the session   hello, and all later frames, as on QUIC
//	both:    HTTP datagrams of the session           datagrams, as on QUIC
//
// One goroutine waits for all of this, stream by stream in their order, until the hello's deadline.
// After that the session has one goroutine more than one on QUIC: it reads the CONNECT stream, for
// the capsule with which a page closes. Other streams of the browser are never accepted, so QUIC's
// windows bound the data that they can hold here.
//
// # How a connection ends
//
// As in package driver, and then by the capsule CLOSE_WEBTRANSPORT_SESSION with the code and text
// of the close frame: a page reads them from WebTransport.closed. The QUIC connection is closed
// when the browser has closed its end, or after driver.Linger.
package wtnet
