// Package sealed carries the datagrams of QUIC connections as sealed UDP packets, on the socket of
// QUIC and beside it: quic-go spends several times as much on a datagram. QUIC keeps the handshake,
// the stream, and the datagrams of peers that no record reaches.
//
// A packet is an SRTP record (RFC 3711) with AES-GCM (RFC 7714), and RFC 9443 says how a socket
// tells it from QUIC. As in DTLS-SRTP (RFC 5764), the keys are exported from the TLS connection
// (RFC 8446, section 7.5), so that each connection has its own. Nothing is negotiated: the id of a
// connection is exported as well, and a peer that knows no records drops them.
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
// The client challenges the server with records. Each end sends datagrams as records from the first
// response to a challenge of its own, and over QUIC again once challenges are not answered, or once
// the peer returns to QUIC. It then probes the path, less and less often.
//
// A client's new address is challenged before records are sent there. Each challenge to it, and
// each response, is caused by an authentic record from it: together they are at most three times as
// large.
package sealed
