// Package driver moves the bytes of a session over a connection of any transport: QUIC,
// WebTransport, WebSocket or in memory. The packages of the transports implement [Conn].
//
//	Run   goroutines that end when the connection ends:
//	        datagram reader, stream reader   bytes → Link.Receive…; the caller reads the stream
//	        datagram writer                  Link.SendDatagrams → Conn, and then Flush ([Flusher])
//	        and while there are bytes to write,
//	        stream writer                    Link.AppendStream → Conn
//	      or one for both readers, where a connection has one sequence for both ([Merged])
//	      a closing session is not read any more, and a goroutine waits up to Linger for the
//	      rest of its stream
//	Greet the client's half of the handshake
//
// SendDatagram and Write may block while the peer does not read. Only the writers call them, so a
// peer that stops reading blocks only its own writers.
//
// # How a connection ends
//
// A closing session sends its close frame and the end of the stream after all other data. When the
// peer has read both, it closes the connection. If the peer does not close it within Linger, or
// does not read, this end closes the connection itself. The code and the text are the same in the
// frame and in the transport's own close.
package driver
