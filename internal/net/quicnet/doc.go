// Package quicnet listens and dials with QUIC, by quic-go.
//
// A [Listener] has one UDP socket for each [Protocol] over QUIC: netloop's own, and others that its
// owner configures. The two ends select one in TLS. Package admission admits the connections, and
// package driver moves their bytes, the same for each protocol.
//
//	Door.AskForProof  first packet: a Retry, or
//	opening           a place among the unadmitted connections, or a refusal before TLS
//	accept            handshake complete: admission.Place.Enter
//
// Many clients may share a [Dialer], which is one UDP socket.
package quicnet
