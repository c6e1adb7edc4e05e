// Package admission admits connections of every network transport: it bounds each connection,
// counts it against its site in shared tables, reads its hello, and calls the server's handler.
//
// # The steps of a connection
//
//	MustProveAddress   first packet, over UDP: prove the address first, or
//	Reserve            take an entry in the table, or refuse before any work is done
//	Pending.Serve         cryptographic handshake complete: one goroutine serves it from here
//	                    after Refuse, or above a limit: closed with a code, at once
//	 1. Incoming.Open    a stream to read from
//	 2.                 one Hello frame, both within a deadline
//	 3. Handler.Admit   may block until its own deadline
//	 4.                 Welcome, Admitted.Joined
//	 5. driver.Run      until the connection ends
//	 6.                 Link.End
package admission
