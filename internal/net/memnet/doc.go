// Package memnet drives transport sessions in memory: the twin of quicnet, on one
// goroutine and in virtual time. What crosses the network is the same bytes, through the
// same sessions, handshake included; only what lies between is a model.
//
// # The flow
//
//  1. Serve sets who admits clients; Dial starts a connection over a Link. The handshake
//     takes two round trips, as QUIC's and ours do.
//  2. Owners flush their sessions at Now.
//  3. Advance takes what they flushed, then runs the network up to a later time: every
//     arrival is handed to its transport.Link at its own instant.
//
// Nothing happens outside of Advance and Take, and callbacks (Handler.Admit,
// Admission.Joined, the done of Dial) run inside of them.
//
// # The model
//
// Each direction of a connection is a netem.Path: a bottleneck with a router's queue in
// front, then a delay with jitter. A packet costs 60 bytes on top of its payload.
// Datagrams are lost, duplicated and overtaken as Link says. Reliable bytes travel as
// packets of the same link: a lost one comes again one and a half round trips later, and
// what was sent behind it waits for it, but none is ever lost. They leave no faster than
// the bottleneck carries them, so that a long queue of them does not push datagrams out of
// the router.
//
// What QUIC does besides is reduced to what a session can notice: no congestion window
// (datagrams leave at once, so a slot is free again right after Take), a keep-alive that
// costs nothing, and an idle timeout when nothing can arrive any more.
//
// # Determinism
//
// Events run in the order of (time, sequence of scheduling), and each direction of each
// connection draws from its own source, seeded by the network's seed and the order of
// dialling. The same calls with the same seed give the same run, bit for bit.
package memnet
