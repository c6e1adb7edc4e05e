// Package admission admits connections of every transport: each is bounded and charged to its site
// in the same tables, sends its hello, and is judged by the server.
//
// # What a connection goes through
//
//	Door.AskForProof  its first packet, where addresses can be forged: a proof first, or
//	Door.Begin        its place among the strangers, or a refusal before anything is worked out
//	Place.Enter       its cryptographic handshake is complete: one goroutine serves it from here
//	                    Refuse was called, or too many? closed with a code, at once
//	 1. Visitor.Open    a stream to read from
//	 2.                 one Hello frame, both within a deadline
//	 3. Handler.Admit   which may block until its own deadline
//	 4.                 Welcome, Admission.Joined
//	 5. carrier.Run     until the connection ends
//	 6.                 Link.End
package admission
