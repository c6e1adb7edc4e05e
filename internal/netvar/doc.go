// Package netvar replicates objects from a server to its clients.
//
// The flow of one tick, in the order in which the bytes travel:
//
//	server, room goroutine                               client, goroutine of Step
//	World.Spawn, Edit, SetOwner, Despawn
//	World.Capture(tick)      edited objects become
//	    │                    versions (history.go)
//	    ▼
//	Peer.AppendSnapshot      what is owed to this client
//	    │                    becomes packets ────────▶   Replica.Apply   checked whole, then
//	    │                                                    │           applied whole
//	    ├─ Peer.Large        what fits no packet ────▶   Replica.ApplyLarge
//	    ▼                                                    ▼
//	Peer.Ack, AckLarge       ◀──── ids ───────────────   Applied.Ack
//	    baselines move, lost packets make                    │
//	    their objects owed again                         Replica.Events  spawn, change, despawn
//
// An object holds one value of a plain struct. A version is that value in wire precision with the
// tick of its capture. For each client the server knows which version it has acknowledged (the
// baseline), and what was sent since: mostly from which packets have arrived (steady.go), else from
// an entry of the object. A record carries the difference from the baseline, or all fields when
// there is none.
//
// # Rules that everything here serves
//
//   - Owed means: the tick of the last change is later than the acknowledged version. Values
//     are never compared for that, so A, B, A is sent.
//   - A version goes into at most two snapshots and then waits until one of their packets is
//     acknowledged or all are lost.
//   - A client discards, unacknowledged, a packet of an earlier tick than one that it has
//     applied. So a packet is lost as soon as a packet of a later tick is acknowledged and it
//     is not.
//   - An acknowledgement counts for an object only if the packet's tick is not before the
//     object's lifetime began. A baseline only moves forward.
//   - A client applies a difference to its stored copy of the version that it names, never to
//     the current value. Both sides drop old versions by the same rule (history.commit); what a
//     server drops beyond that for its size is no baseline any more.
//   - A record that fits no packet goes over the client's stream, and until it is there nothing
//     else of its slot is sent (large.go).
//   - That something of a slot was ever sent is remembered across lifetimes until a despawn is
//     acknowledged.
//   - A snapshot with nothing in it is still a packet: its acknowledgement tells what is lost.
//   - A client that is back with another connection has lost what was in flight, large records too;
//     without copies it begins as one that joins (resume.go). Resume of Peer and of Replica wait
//     for a session that reconnects: nothing outside of this package calls them yet.
//
// The byte layout is normative in docs/WIRE.md and repeated above its writer (record.go).
// Nothing here reads a clock, starts a goroutine or takes a lock: a World with its peers, and
// a Replica, each belong to one goroutine. Classes and tables never change once made and may
// be shared.
package netvar
