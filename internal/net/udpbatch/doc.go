// Package udpbatch is the UDP socket of a server, made for many small datagrams at a tick rate.
// What QUIC does with a socket of package net costs more in waking up than in bytes: the
// runtime's poller is woken by each datagram that arrives, and by each that was sent once the
// network has let go of it. The socket here is not in that poller.
//
// # The flow
//
//	kernel ── a round: recvmmsg until nothing is left ──▶ ReadBatch ──▶ QUIC
//	  │         rounds are at least Pause apart; who has been quiet is read at once
//	  └─ the kernel's time of arrival ──▶ Peers, by address ──▶ the session's time sync
//
//	QUIC ── WriteMsgUDP copies, waits for no kernel ──▶ the batch that fills
//	                                                      │ a goroutine takes all
//	kernel ◀── sendmmsg, one message per peer ◀───────────┘
//
// # What holds
//
// Packets to one peer leave in the order in which they were written, each of them once. A
// batch that is full makes the writer wait, and never loses anything. What the kernel says
// about a packet comes too late for its writer: it is counted, and costs no other packet
// anything. Close sends what was written.
//
// It exists for Linux. Elsewhere Open returns the socket that it was given.
package udpbatch
