// Package inproc connects clients to a server of the same process, without a network. What goes
// over it are the same bytes as over any other carrier, so a game behaves as it does over a perfect
// link.
//
// The flow:
//
//	client   Dialer.Dial ── pair ──▶ Host.serve   the handshake, as over a network
//	both     carrier.Run                          moves what the sessions have
//	the end  Dialer.Close, or Host.Close          closes the sessions, and waits for them
//
// Goroutines that wait for the other end sleep; nothing is asked again and again.
package inproc
