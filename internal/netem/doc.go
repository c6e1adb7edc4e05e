// Package netem emulates a bad network in user space, as the queueing discipline of that name does
// inside of Linux. It sits between a UDP socket and its user, and decides for each datagram
// whether, when, how often and how damaged it arrives.
//
//	Parse ── Spec: the properties of the network, per direction (spec.go, parse.go, value.go)
//
//	the program          Conn (conn.go)                     the other end
//	  WriteTo  ──▶ Exchange.Out ─▶ Schedule ─▶ sender ─▶ socket ──▶
//	  ReadFrom ◀── Schedule ◀─ Exchange.In ◀─ receiver ◀─ socket ◀──
//
// An [Exchange] is the model. It has no socket and no goroutine, and gets the time as an argument,
// so that tests run it in virtual time. It keeps a flow for each address at the other end, with a
// [Path] in each direction: clients share neither bottleneck nor random numbers. The links of
// package memnet use the same Path.
//
// A [Conn] is the driver around it: a net.PacketConn, which quic-go uses like the socket itself. So
// one mechanism serves a server, a client, and the tests.
//
// # Determinism
//
// All decisions are drawn from a seed: the n-th datagram in a direction of the n-th flow has the
// same fate in every run. The arrival times of datagrams depend on the real network.
package netem
