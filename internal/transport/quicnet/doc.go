// Package quicnet drives transport sessions over QUIC, with quic-go, which nothing else
// of the project imports.
//
// # The flow of a connection on the server
//
//	accept loop ── Refuse was called, or too many? close with a code, at once
//	  └─ serve, one goroutine per connection
//	       1. the client's only stream, one Hello frame, both within a deadline
//	       2. Handler.Admit, which may block until its own deadline
//	       3. Welcome, Admission.Joined
//	       4. goroutines that end when the connection ends:
//	          datagram reader, stream reader   bytes → Link.Receive…; serve reads the stream
//	          datagram writer                  Link.SendDatagrams → quic-go
//	          and while there is something to write,
//	          stream writer                    Link.AppendStream → quic-go
//	       5. a session that wants to close is not read any more, and gets lingerTimeout to
//	          bring out its stream, by a goroutine that waits for it
//	       6. all of them have ended: Link.End
//
// quic-go's SendDatagram and Write block while the peer does not take data, and only the
// writers ever call them: a peer that stops reading stops its own writers and nobody else.
//
// A client is the same from step 3 on. Many of them may share a Dialer, which is one UDP
// socket.
//
// # How an end is told
//
// A session that closes sends its close frame and the end of the stream behind everything
// else; the peer, once it has read that far, closes the connection. Without its answer
// within lingerTimeout, or when the peer does not read, this end closes the connection
// itself. Code and text are the same in the frame and in QUIC's close.
package quicnet
