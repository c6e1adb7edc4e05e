// Package quicnet listens and dials with QUIC, by quic-go.
//
// A [Listener] has one UDP socket for all protocols over QUIC (see [Protocol]): netloop's own
// protocol, and others that its owner configures. The two ends select a protocol in TLS. For every
// protocol, package admission admits the connections, and package driver moves their bytes.
//
//	MustProveAddress   first packet: a Retry, or
//	Listener.reserve   an entry among the unadmitted connections, or a refusal before TLS
//	Listener.accept    handshake complete: admission.Pending.Serve
//
// Many clients may share a [Dialer], which is one UDP socket.
package quicnet
