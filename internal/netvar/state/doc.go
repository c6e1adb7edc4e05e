// Package state holds objects and their versions, as a server and its clients store them.
//
//	Class    kind of objects: the layout of its struct, its rules for readers, its weights
//	Table    the ordered classes that both sides agree on
//	Object   one value of a class, with its ID and its History of versions
//	History  versions of an object in wire precision, each with the tick of its capture
//	Set      objects by slot, by class and by owner
//	View     part of an object that a client may read, and the versions of that part
//	Moment   point in time between two snapshots, at which an object is drawn
//
// Exported fields and setters of Object are for the packages netvar, interest and replica. Classes
// and tables are immutable once made and may be shared; everything else belongs to the goroutine of
// its World or Replica.
package state
