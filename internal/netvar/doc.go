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
// tick of its capture. For each client the server knows which version the client has acknowledged,
// the baseline, and what was sent since. A record carries the difference from the baseline, or all
// fields if there is none.
//
// # An example
//
// Three objects A, B and C, two clients P and Q, and one lost packet. B3 is the version of B that
// was captured in tick 3. An acknowledgement arrives before the next tick.
//
//	tick  the game does  P has     to P             Q has     to Q                 encoded
//	   1  spawn A, B, C            A1 B1 C1 in full            A1 B1 C1 in full           3
//	   2  edit B and C   A1 B1 C1  B2 C2 as of 1     A1 B1 C1  B2 C2 as of 1, lost        2
//	   3  edit B         A1 B2 C2  B3 as of 2        A1 B1 C1  B3 C2 as of 1              3
//	   4  despawn A      A1 B3 C2  A ended           A1 B3 C2  A ended                    0
//	   5                 B3 C2     no record         B3 C2     no record                  0
//
// Tick 1: neither client has anything, so the records are full ones. Both clients get the same
// bits, and each object is encoded once.
//
// Tick 2: both clients have acknowledged tick 1. They are owed B and C, whose last change is later
// than that, and the records are differences from what the clients had as of tick 1. The packet to
// Q is lost, which nobody knows yet.
//
// Tick 3: P has acknowledged tick 2 and is owed B alone. Q has not, and is owed B and C. Of B it
// gets the newest version, since nothing is ever sent again as bytes, and of C a second copy of the
// same one. Both are differences from what Q had as of tick 1. So the bits are not those for P, and
// B is encoded twice.
//
// Tick 4: Q has acknowledged the packet of tick 3. A client applies no packet of an earlier tick
// than one that it has applied, so now the server knows that the packet of tick 2 is lost. What it
// carried is in the packet of tick 3, so nothing is owed again. The game despawns A, and each
// client is told so, because it has A.
//
// Tick 5: nothing is owed. A packet without records leaves all the same, because its
// acknowledgement tells the server which packets before it are lost.
//
// Had the packet of tick 3 been lost as well, Q would be owed B and C until it acknowledges a later
// one. Of each version there would be two copies in flight at most, and the next one would leave
// only once both are known to be lost.
//
// # Where the example is found
//
//   - What each client is owed, and what of that is in flight, are sets of objects (peer.go).
//   - Of nearly every object the server derives the baseline from the ticks whose packets have
//     arrived (marks.go, steady.go). It keeps a baseline only of an object to which something
//     happened alone (entry.go).
//   - The bits of a record depend on the object and on the ticks that the record leads from. They
//     are encoded once a tick for all clients that are owed the same (run.go, share.go).
//   - An acknowledgement moves baselines and shows which packets are lost (flight.go).
//
// # Rules that everything here serves
//
//   - Owed means that the tick of the last change is later than the acknowledged version. Values
//     are never compared for that, so the sequence A, B, A is sent.
//   - A version goes into at most two snapshots and then waits until one of their packets is
//     acknowledged or all of them are lost.
//   - A client discards, without acknowledging it, a packet of an earlier tick than one that it
//     has applied. So a packet is lost as soon as a packet of a later tick is acknowledged and it
//     is not.
//   - An acknowledgement counts for an object only if the packet's tick is not before the
//     object's lifetime began. A baseline only moves forward.
//   - A client applies a difference to its stored copy of the version that the record leads from,
//     never to the current value. Both sides drop old versions by the same rule (history.commit).
//     The server also drops versions that take too much room, and these are no baseline any more.
//   - A record that fits no packet goes over the client's stream, and until it is there nothing
//     else of its slot is sent (large.go).
//   - That something of a slot was ever sent is remembered across lifetimes until a despawn is
//     acknowledged.
//   - A snapshot with nothing in it is still a packet, because its acknowledgement tells what is
//     lost.
//   - A client that is back with another connection has lost what was in flight, large records too.
//     Without copies it begins as one that joins (resume.go). Resume of Peer and of Replica wait
//     for a session that reconnects: nothing outside of this package calls them yet.
//
// The byte layout is normative in docs/WIRE.md and repeated above its writer (record.go).
// Nothing here reads a clock, starts a goroutine or takes a lock: a World with its peers, and
// a Replica, each belong to one goroutine. Classes and tables never change once made and may
// be shared.
package netvar
