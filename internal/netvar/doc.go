// Package netvar replicates objects from a server to its clients.
//
// The flow of one tick, in the order in which the bytes travel:
//
//	server, room goroutine                               client, goroutine of Step
//	World.Spawn, Edit, SetOwner, Despawn
//	World.Capture(tick)      edited objects become
//	    │                    versions
//	    ▼
//	Peer.AppendSnapshot      pending versions are
//	    │                    put into packets ──────▶   Replica.Apply   checked whole, then
//	    │                                                    │           applied whole
//	    ├─ Peer.Large        records too large
//	    │                    for a packet ──────────▶   Replica.ApplyLarge
//	    ▼                                                    ▼
//	Peer.Ack, AckLarge       ◀──── ids ───────────────   Applied.Ack
//	    baselines advance, contents of lost                  │
//	    packets are sent again                          Replica.Events  spawn, change, despawn
//
// An object holds one value of a plain struct. A version is that value in wire precision with the
// tick of its capture. For each client the server stores the version that the client has
// acknowledged, the baseline, and the versions sent since. A version is pending for a client until
// the client has acknowledged it. A record carries the difference from the baseline, or all fields
// if there is none.
//
// # An example
//
// Three objects A, B and C, two clients P and Q, and one lost packet. B3 is the version of B that
// was captured in tick 3. Acknowledgements arrive before the next tick.
//
//	tick  the game does  P has     to P             Q has     to Q                 encoded
//	   1  spawn A, B, C            A1 B1 C1 in full            A1 B1 C1 in full           3
//	   2  edit B and C   A1 B1 C1  B2 C2 as of 1     A1 B1 C1  B2 C2 as of 1, lost        2
//	   3  edit B         A1 B2 C2  B3 as of 2        A1 B1 C1  B3 C2 as of 1              3
//	   4  despawn A      A1 B3 C2  A ended           A1 B3 C2  A ended                    0
//	   5                 B3 C2     no record         B3 C2     no record                  0
//
// Tick 1: neither client has any object, so the records are full ones. Both clients are sent the
// same bits, and each object is encoded once.
//
// Tick 2: both clients have acknowledged tick 1. B and C are pending, because their last change is
// later than tick 1. The records are differences from the clients' state as of tick 1. The packet
// to Q is lost, which the server cannot see yet.
//
// Tick 3: P has acknowledged tick 2, so only B is pending for P. Q has not acknowledged it, so B
// and C are pending for Q. The packet has the newest version of B, because packets are never sent
// again as bytes, and a second copy of C2. Both are differences from the state of Q as of tick 1.
// So the bits differ from those for P, and B is encoded twice.
//
// Tick 4: Q has acknowledged the packet of tick 3. A client applies no packet of an earlier tick
// than one that it has applied, so the server now counts the packet of tick 2 as lost. The packet
// of tick 3 has the same objects, so none is sent again. The game despawns A, and a despawn is sent
// to both clients, because both have A.
//
// Tick 5: no version is pending. A packet without records is sent nevertheless, because its
// acknowledgement shows which earlier packets are lost.
//
// If the packet of tick 3 had been lost as well, B and C would be pending for Q until it
// acknowledges a later packet. At most two copies of each version would be in flight, and the next
// copy would be sent only once both are known to be lost.
//
// # Where the code is
//
//   - Sets of slots store the pending objects of each client, and those in flight (peer.go).
//   - For nearly all objects the server derives the baseline from the ticks of acknowledged packets
//     (ackedticks.go, derived.go). It stores a baseline only for the others, for example after a
//     delay (entry.go).
//   - The bits of a record depend on the object and on the ticks on which the record is based. They
//     are encoded once a tick for all clients with the same pending objects (run.go, share.go).
//   - An acknowledgement advances baselines and shows which packets are lost (flight.go).
//
// # Invariants
//
//   - Pending means that the tick of the last change is later than the acknowledged version. Values
//     are not compared for that, so the sequence A, B, A is sent.
//   - A version is in flight in at most two snapshots. Further copies are sent only after all
//     packets with it are lost.
//   - A client discards a packet, and does not acknowledge it, if it has already applied a packet
//     of a later tick. So an unacknowledged packet is lost as soon as a packet of a later tick is
//     acknowledged.
//   - An acknowledgement counts for an object only if the packet's tick is not before the beginning
//     of the object's lifetime. A baseline only advances.
//   - A client applies a difference to its stored copy of the version from which the difference was
//     computed, never to the current value. Both sides drop old versions by the same rule
//     (History.Commit). The server also drops versions that take too much memory, and these are no
//     longer baselines.
//   - A record that fits no packet is sent over the client's stream, and until it is acknowledged
//     no other record of its slot is sent (large.go).
//   - After a record of a slot was sent, the server stores this fact, even in later lifetimes of
//     the slot, until a despawn is acknowledged.
//   - A snapshot without records is still a packet, because its acknowledgement shows which packets
//     are lost.
//   - If a client resumes with another connection, all packets and large records in flight count as
//     lost. A client without copies is treated like a joining client (resume.go).
//
// # Packages
//
// This package is the sender. Each of these packages imports only those above it:
//
//	bitset    sets of slots
//	packet    layout of packets
//	state     classes, objects and their versions
//	slots     ids of objects
//	interest  which client sees which objects and fields
//	replica   the receiver
//
// This package imports replica only for Mirror. It reads no clock, starts no goroutine and takes no
// lock: a World belongs to one goroutine, with its peers.
package netvar
