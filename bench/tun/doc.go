// Package tun emulates a path between two hosts for whole IP packets, so that the congestion
// control of QUIC and TCP reacts to its delay, loss, rate and queue as on a real path.
//
//	server, in a namespace            this program              clients, in another namespace
//	192.0.2.1 ─ TUN device ──▶ read ─▶ lane, down ─▶ write ──▶ TUN device ─ 192.0.2.2
//	                       ◀── write ◀─ lane, up ◀── read ◀──
//
// A [Host] is a network namespace with a TUN device (host_linux.go). A lane is one direction, a
// model in virtual time around netem.Path (lane.go). A [Link] has both and moves the packets
// (link.go).
//
// Opening a host needs Linux and root. Namespaces and devices have no names outside of this
// program: they disappear with it, also after a signal, and so do programs started in them.
package tun
