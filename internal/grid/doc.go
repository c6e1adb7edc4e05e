// Package grid finds who comes near whom, at a cost that follows those that change their cell.
//
//	Index.MoveThing, MoveEye     a move within a cell is nothing; others are noted
//	        │
//	        ▼
//	Index.Settle                 for each that moved: the cells around where it was and where it
//	        │                    is, and in them the eyes (or things) for which that matters
//	        ▼
//	suspect(thing, eye)          a pair whose zone may have become Inside or Outside
//
// Space is cut into cubes. Between two cells there is a gap, the shortest way from any point of the
// one to any of the other; it is never longer than the way between two things in them. A pair is
// Inside if the gap is at most the radius, Outside if it is more than radius and margin, and at the
// Border in between. Who was seen stays seen at the border, and who was not stays unseen: so what
// goes to and fro over the edge of a cell does not come and go, as long as the margin is at least
// what one step can change the gap by.
//
// The package knows nothing of objects and clients, only of numbers, and belongs to one goroutine.
package grid
