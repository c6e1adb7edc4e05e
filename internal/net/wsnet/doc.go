// Package wsnet is the WebSocket transport, for browsers without WebTransport and for networks
// without UDP. It uses coder/websocket, which no other package imports.
//
// # Messages
//
// All messages are binary. Their first byte is 0 for bytes of the stream, cut anywhere, or 1 for a
// datagram. The handshake, the frames and the datagrams are the same as on every transport.
//
// # Admission
//
//	ServeHTTP ── a page of a forbidden origin: 403; not our subprotocol: 400
//	  └─ Reserve           charges the site as for QUIC: 503 above its rate
//	       └─ Accept       the connection no longer counts against the HTTP limit (connlimit)
//	            └─ Serve   the admission controller reads the hello and starts the session
//
// # Datagrams on a stream
//
// TCP does not lose data, so it queues: data sent while TCP waits for a lost segment is old when it
// arrives. Each datagram is therefore written only while the kernel has few unsent bytes. It waits
// for that as it would for QUIC's congestion window, so that a snapshot is deferred rather than
// queued, and it is dropped after maxBehind. Stream data is not dropped: it waits until the write
// deadline. It is written only while the kernel has at most maxUnsentStream unsent bytes, half the
// limit of a datagram (maxUnsent), so that the stream cannot keep datagrams out.
package wsnet
