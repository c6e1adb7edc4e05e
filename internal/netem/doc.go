// Package netem emulates a bad network in user space, as the queueing discipline of that name
// does inside of Linux. It stands between a UDP socket and whoever uses it, and decides for
// each datagram whether, when, how often and how damaged it arrives.
//
//	Parse ── Spec: what the network is like, per direction (spec.go, parse.go, value.go)
//
//	the program          Conn (conn.go)                     the other end
//	  WriteTo  ──▶ Exchange.Out ─▶ Schedule ─▶ sender ─▶ socket ──▶
//	  ReadFrom ◀── Schedule ◀─ Exchange.In ◀─ receiver ◀─ socket ◀──
//
// An [Exchange] is the model. It has no socket and no goroutine, and is told the time, so that
// tests play it in virtual time. It keeps a flow for each address at the other end, with a
// [Path] in each direction: clients share neither bottleneck nor luck. Package memnet has its
// links of the same Path.
//
// A [Conn] is the driver around it: a net.PacketConn, with which quic-go works as it would with
// the socket. So one mechanism serves a server, whose clients keep their addresses, a client, and
// the tests.
//
// # Determinism
//
// All decisions are drawn from a seed: the n-th datagram in a direction of the n-th flow has the
// same fate in every run. When datagrams come is the real network's affair.
package netem
