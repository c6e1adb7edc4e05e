// Package replica is the client's side of replication: it receives packets and keeps the objects
// that the server has sent.
//
//	Replica.Apply       checks a whole packet, then applies it; Applied.Ack asks for an
//	                    acknowledgement
//	Replica.ApplyLarge  does the same with a record from the stream
//	Replica.Events      spawns, changes and despawns since the last call
//	Replica.Draw        an object between two snapshots
//	Replica.Digest      whether the client's state is the server's
//	Replica.Adapt       reads the classes of a server of another build
//
// A client trusts no server: a malformed packet changes nothing, and stored memory is bounded
// (memory.go). A Replica belongs to one goroutine.
package replica
