// Package quicnet listens and dials with QUIC, by quic-go.
//
// A [Listener] has one UDP socket for every [Protocol] that is spoken over QUIC: netloop's own, and
// whatever else its owner names. The two ends agree on one in TLS. Who comes is let in by package
// door, and what a connection carries is moved by package carrier, the same for each protocol.
//
//	Door.AskForProof  its first packet: a Retry, or
//	opening           its place among the strangers, or a refusal before TLS
//	accept            its handshake is complete: door.Place.Enter
//
// Many clients may share a [Dialer], which is one UDP socket.
package quicnet
