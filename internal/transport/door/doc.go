// Package door decides who may come as far as a hello, for all listeners of a server at once:
// whatever a connection comes by, it counts against the same places and rates.
//
// # The way in
//
//	AskForProof  a first packet, whose address may be forged: shall it prove it?
//	Refusing     nobody can come in now
//	Begin        a place among the strangers, if the site has one and keeps to its rate
//	Meet         its handshake is complete: it may say hello
//	Leave        it is a player now, or gone
//	Admit, Left  the players' own places
//
// A TCP connection has proven its address, so it begins at Refusing.
package door
