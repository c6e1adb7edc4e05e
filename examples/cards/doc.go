// Package cards is a game of rooms: a lobby, and tables of up to four at which Crazy Eights is
// played. It shows what the arena does not: rooms that come, sleep and go, tickets from one to the
// other, hands that nobody else reads, turns that run out of time, players who are away and come
// back, and a database behind netloop.Go.
//
// The files in the order of a player's way:
//
//	schema.go   what server and clients share
//	cards.go    the game: which room is what, and who may come
//	lobby.go    asks for a place at a table, and for what a player has won
//	table.go    a table: its seats, its turns, its times
//	rules.go    the rules of Crazy Eights, without rooms and clocks
//	store.go    the database: tables as they were left, and what players have won
package cards
