// Package driver moves the bytes of a session over a connection, whatever the connection is: QUIC,
// WebTransport or a WebSocket. Packages that know one of them give it a [Conn].
//
//	Run   goroutines that end when the connection ends:
//	        datagram reader, stream reader   bytes → Link.Receive…; the caller reads the stream
//	        datagram writer                  Link.SendDatagrams → Conn, and then Flush ([Flusher])
//	        and while there is something to write,
//	        stream writer                    Link.AppendStream → Conn
//	      or one for both readers, where a connection brings both in one sequence ([Merged])
//	      a session that wants to close is not read any more, and gets Linger to bring out its
//	      stream, by a goroutine that waits for it
//	Greet the client's half of the handshake
//
// SendDatagram and Write may block while the peer does not take data, and only the writers ever
// call them: a peer that stops reading stops its own writers and nobody else.
//
// # How an end is told
//
// A session that closes sends its close frame and the end of the stream behind everything else; the
// peer, once it has read that far, closes the connection. Without its answer within Linger, or when
// the peer does not read, this end closes the connection itself. Code and text are the same in the
// frame and in the carrier's own close.
package driver
