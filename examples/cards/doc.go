// Package cards is a game of rooms: a lobby, and tables of up to four players of Crazy Eights. It
// shows the features that the arena does not use: rooms that open, sleep and close, tickets between
// rooms, hands that only their player can read, turns with a time limit, absent and returning
// players, spectators, and a database behind netloop.Go.
//
// The files in the order of a player's path:
//
//	schema.go   shared by server and clients
//	cards.go    the game: the kinds of rooms, and admission
//	lobby.go    lists the tables, finds a seat at one, and reports a player's record
//	table.go    a table: its seats, turns and timers, and the state that clients see of it
//	rules.go    the rules of Crazy Eights, without rooms and clocks
//	store.go    the database: saved tables, and the players' records
//
// Clients use package player, which moves from the lobby to a table and back over one connection;
// bots are in package bot.
package cards
