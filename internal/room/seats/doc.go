// Package seats keeps the seats of a room. A client has one seat from its admission until it has
// left, over any number of connections. Any goroutine may use it.
//
//	Claim, by a secret ─┐                              ┌─▶ Take ─▶ Leave
//	Show, a ticket ─▶ Assign ─▶ Issue ─▶ AddSession ─▶ Entered
package seats
