// Package grid finds pairs of a thing and an eye (a point of view) that are near each other. Its
// cost is proportional to the number of things and eyes that change their cell.
//
//	Index.MoveThing, MoveEye     a move to another cell is recorded
//	        │
//	        ▼
//	Index.Settle                 for each move: visits the cells around its start and its end, and
//	        │                    in them the eyes (or things) that may change their zone
//	        ▼
//	suspect(thing, eye)          a pair that may have become Inside or Outside
//
// Space is divided into cubic cells. The gap between two cells is the shortest distance between any
// two points in them; it is never longer than the distance of two things in them. A pair is Inside
// if the gap is at most the radius, Outside if it is more than radius plus margin, and Border in
// between. At the border a visible thing remains visible, and an invisible thing remains invisible.
// So a thing that moves back and forth over the edge of a cell does not repeatedly appear and
// disappear, if the margin is at least the change of the gap by one cell.
//
// The package uses only the numbers of things and eyes, not objects and clients. An Index belongs
// to one goroutine.
package grid
