// Package cubes measures the size and the speed of the state coder on the usual workload for such
// comparisons: a player's cube that pushes a field of 900 others, 60 times a second.
//
// Open reads the frames of a capture, and Run passes them through the same code as a game: a class
// declared by a plain struct with tags (class.go), edits of changed objects, captures, snapshots
// for one client with acknowledgements after 100 ms, and a replica that must have exactly the
// integers of every frame. It also counts the size of the same frames for published coders of
// others (reference.go).
//
//	Source ─▶ edit ─▶ World.Capture ─▶ Peer.AppendSnapshot ─▶ Replica.Apply ─▶ equal to the frame?
//	                                          ▲                     │
//	                                          └── 6 frames later ───┘
//
// Records are counted: ids, baselines and differences, without the headers of packets and of the
// transport. The first six frames do not count, since no frame is acknowledged before.
package cubes
