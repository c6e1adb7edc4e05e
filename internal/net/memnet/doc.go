// Package memnet drives transport sessions in memory: like quicnet, but on one goroutine and in
// virtual time. The sessions and the bytes on the network are the same, including the handshake;
// only the network is a model.
//
// # The flow
//
//  1. Serve sets the handler that admits clients; Dial starts a connection over a Link. The
//     handshake takes two round trips, as QUIC's and ours do.
//  2. Owners flush their sessions at Now.
//  3. Advance takes the flushed data, then runs the network up to a later time: it passes each
//     arriving packet to its transport.Link at the time of arrival.
//
// All events happen inside of Advance and Take, including callbacks (Handler.Admit,
// Admitted.Joined, and done of Dial).
//
// # The model
//
// Each direction of a connection is a netem.Path: a router's queue and a bottleneck, and then a
// delay with jitter. A packet has 60 bytes in addition to its payload. Link sets the rates at which
// datagrams are lost, duplicated and overtaken. Reliable bytes travel as packets of the same link:
// a lost packet is sent again one and a half round trips later, later packets wait for it, and all
// arrive. They are not sent faster than the bottleneck transfers them, so that a long queue of
// reliable packets does not displace datagrams in the router.
//
// Of QUIC's other features only effects that a session can notice are modelled: there is no
// congestion window (datagrams are sent at once, so a slot is free again right after Take), the
// keep-alive costs no packets, and there is an idle timeout when no packets can arrive.
//
// # Determinism
//
// Events run in the order of (time, sequence of scheduling), and each direction of each
// connection draws from its own source, seeded by the network's seed and the order of
// dialling. The same calls with the same seed give the same run, bit for bit.
package memnet
