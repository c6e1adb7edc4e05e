// Package inproc connects clients to a server of the same process, without a network. It transfers
// the same bytes as the other transports, so a game behaves as over a perfect link. Its
// connections come from this process, so package admission does not limit them.
//
// The flow:
//
//	client   Dialer.Dial ── pair ──▶ Host.serve   the handshake, as over a network
//	both     driver.Run                           moves the bytes of the sessions
//	the end  Dialer.Close, or Host.Close          closes the sessions and waits for them
//
// Goroutines that wait for the other end sleep; there is no polling.
package inproc
