// Package seats keeps the seats of a room: a client has one from its admission until it has left,
// whatever happens to its connections. Any goroutine may use it.
//
//	Claim, by a secret ─┐                              ┌─▶ Take ─▶ Leave
//	Show, a ticket ─▶ Assign ─▶ Issue ─▶ AddSession ─▶ Entered
package seats
