// Package slots allocates the ids of a world's objects: a slot, and a generation of that slot.
package slots
