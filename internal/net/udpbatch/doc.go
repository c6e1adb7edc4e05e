// Package udpbatch is the UDP socket of a server, made for many small datagrams at a tick rate.
// With a socket of package net, QUIC spends more time on wake-ups than on bytes: each arriving
// datagram wakes the runtime's poller, and so does each sent datagram when the network has released
// it. The runtime's poller does not watch the socket of this package.
//
// # The flow
//
//	kernel ── a round: recvmmsg until none is left ──▶ ReadBatch ──▶ QUIC
//	  │         rounds are at least Pause apart; after a quiet time reads are immediate
//	  └─ the kernel's time of arrival ──▶ Peers, by address ──▶ the session's time sync
//
//	QUIC ── WriteMsgUDP copies, does not wait for the kernel ──▶ the batch being filled
//	                                                      │ a goroutine takes all
//	kernel ◀── sendmmsg, one message per peer ◀───────────┘
//
// # Guarantees
//
// Packets to one peer are sent in the order of writing, each of them once. A full batch blocks the
// writer and loses no packet. The kernel reports an error of a packet too late for its writer: the
// error is counted, and other packets are not affected. Close sends all written packets.
//
// The package works on Linux. On other systems Open returns its argument.
package udpbatch
