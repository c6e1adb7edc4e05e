// Package membership is a server's part in its cluster: the names of its rooms, its entries on the
// board, the rooms of other servers, and calls.
//
//	room opens   Claim ─▶ epoch ─▶ Announce        listing ◀─ Sync ◀─ boards of other servers
//	room ends    Announce(nil) ─▶ Release          Place   ◀─ load of all servers
//	call         Call ─▶ handler of the other server ─▶ Reply: a result, or a refusal
//
// It decides nothing about seats: a call asks the room's own server.
package membership
