// Package rigid simulates cubes that fall, tumble, push each other and stop on a plane: as much
// physics as a workload for replication needs. It is no engine for games.
//
// A step of a World, in order:
//
//	wake and pair    grid.go      cubes near enough to touch; a hit body wakes
//	collide          collide.go   separating axes, then points of contact
//	solve            solve.go     impulses against penetration, and friction, in a few rounds
//	integrate        world.go     positions and rotations; a calm body sleeps
//
// Every product is rounded before it is added (vec.go), no result depends on the order of a map,
// and there is no randomness: the same calls give the same bits on every machine.
package rigid
