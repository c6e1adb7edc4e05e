// Package wsnet carries sessions over WebSockets, with coder/websocket, which nothing else of the
// project imports: for browsers without WebTransport, and for networks without UDP.
//
// # Messages
//
// All messages are binary, and their first byte says what follows: 0 some bytes of the stream, cut
// anywhere, or 1 a datagram. The greeting, the frames and the datagrams themselves are those of
// every carrier.
//
// # The way in
//
//	ServeHTTP ── a page that may not connect: 403; no WebSocket of ours: 400
//	  └─ door.Begin        the site pays as for QUIC: 503 if it cannot
//	       └─ Accept       the connection leaves the pool of pages
//	            └─ Enter   the door reads the hello, and carries the session
//
// # Datagrams on a stream
//
// TCP loses nothing, and so it queues: what is sent while it waits for a lost segment is old when
// it arrives. Each datagram is therefore handed over only while the kernel has little that it has
// not sent yet. It waits for that as it would for QUIC's congestion window, so that a snapshot is
// deferred rather than queued, and is given up when it has become old meanwhile. Stream data waits
// for as long as it takes, and leaves datagrams a share.
package wsnet
