// Package sealed carries the datagrams of QUIC connections as sealed UDP packets on QUIC's socket,
// outside of QUIC, because quic-go spends several times as much time on a datagram. QUIC still
// carries the handshake, the stream, and the datagrams for peers that records do not reach.
//
// A packet is an SRTP record (RFC 3711) with AES-GCM (RFC 7714). RFC 9443 defines how a socket
// tells it from a packet of QUIC. As in DTLS-SRTP (RFC 5764), the keys are exported from the TLS
// connection (RFC 8446, section 7.5), so that each connection has its own keys. The ends negotiate
// nothing: the id of a connection is exported as well, and a peer without support for records
// drops them.
//
// # The flow
//
//	socket's reader ── Is ──▶ Table.Receive ── id ──▶ Channel.take: opens it in place
//	                                                    │ a datagram ──▶ receive, given to Start
//	                                                    │ a challenge ─▶ its response
//	                                                    └ a response ──▶ the path is active
//	Channel.Send ── seals ──▶ Config.Write ──▶ socket
//	a timer ── Channel.tick ──▶ challenges
//
// # The path
//
// The client challenges the server with records. Each end sends datagrams as records after the
// first response to one of its challenges. It sends them over QUIC again when its challenges are
// not answered, or when the peer returns to QUIC. Then it probes the path at growing intervals.
//
// The server challenges a client's new address before it sends records there. Each challenge and
// each response to this address follows an authentic record from it, and together they are at most
// three times as large as that record.
package sealed
