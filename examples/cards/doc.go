// Package cards is a game of rooms: a lobby, and tables of up to four at which Crazy Eights is
// played. It shows what the arena does not: rooms that come, sleep and go, tickets from one to the
// other, hands that nobody else reads, turns that run out of time, players who are away and come
// back, people who watch, and a database behind netloop.Go.
//
// The files in the order of a player's way:
//
//	schema.go   what server and clients share
//	cards.go    the game: which room is what, and who may come
//	lobby.go    lists the tables, finds a place at one, and tells what a player has won
//	table.go    a table: its turns and its times, and who comes and goes
//	seats.go    what clients and the lobby see of it
//	rules.go    the rules of Crazy Eights, without rooms and clocks
//	save.go     keeps the match of a table, one state after the other
//	store.go    the database: tables as they were left, and what players have won
//
// Clients are made of package player, which goes from the lobby to a table and back over one
// connection; bots of it are in package bot.
package cards
