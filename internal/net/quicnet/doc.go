// Package quicnet listens and dials with QUIC, by quic-go.
//
// A [Listener] has one UDP socket for each [Protocol] over QUIC: netloop's own, and others that its
// owner configures. The two ends select one in TLS. Package admission admits the connections, and
// package driver moves their bytes, the same for each protocol.
//
//	MustProveAddress   first packet: a Retry, or
//	Listener.reserve   an entry among the unadmitted connections, or a refusal before TLS
//	Listener.accept    handshake complete: admission.Pending.Serve
//
// Many clients may share a [Dialer], which is one UDP socket.
package quicnet
