// Package cubes measures how small and how fast state is encoded, on the workload by which such
// coders are compared: a player's cube that pushes a field of 900 others about, 60 times a second.
//
// A Source yields frames: from a capture (Open), or from a simulation (NewField). Run takes them
// through what a game would use: a class that is declared by a plain struct with tags (class.go),
// objects that are edited where they have changed, captures, snapshots for one client whose
// acknowledgements come back 100 ms later, and a replica that must hold exactly the integers of
// every frame. Beside that it counts what coders that others have published take for the same
// frames (reference.go).
//
//	Source ─▶ edit ─▶ World.Capture ─▶ Peer.AppendSnapshot ─▶ Replica.Apply ─▶ equal to the frame?
//	                                          ▲                     │
//	                                          └── 6 frames later ───┘
//
// What is counted are records: ids, baselines and differences, but not the header of a packet nor
// what carries it. The first six frames do not count, since nothing is acknowledged by then.
package cubes
