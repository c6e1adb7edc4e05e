// Package wtnet carries sessions over WebTransport, so that browsers can play, on the UDP port
// that everybody else plays on. It is what a [quicnet.Protocol] named h3 does: HTTP/3 as far as a
// session needs it, by quic-go's http3.
//
// # A connection of a browser
//
//	browser: its streams for control and QPACK      never read: nothing in them is needed
//	server:  SETTINGS                                extended CONNECT, datagrams, WebTransport
//	browser: CONNECT /netloop, :protocol webtransport, origin
//	server:  200, or 403, 404, 405
//	browser: a bidirectional stream of the session   hello, and all that follows, as on QUIC
//	both:    HTTP datagrams of the session           datagrams, as on QUIC
//
// One goroutine waits for all of this, stream by stream in their order, until the hello's time is
// over. After that the session has one goroutine more than one on QUIC: it reads the CONNECT
// stream, for the capsule with which a page closes. Whatever else the browser opens is never
// accepted, so what it can store here is what QUIC's windows allow.
//
// # How an end is told
//
// As package carrier has it, and then by the capsule CLOSE_WEBTRANSPORT_SESSION, whose code and
// text are those of the close frame: a page reads them from WebTransport.closed. The QUIC
// connection is closed when the browser has done so, or after carrier.Linger.
package wtnet
