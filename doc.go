// Package netloop is a dedicated game-server runtime. A server process runs a staged update loop as
// its tick. A game consists of three kinds of declarations: systems, which run at a stage; RPCs,
// which run at the stage that they name; and classes of replicated objects. Changes of objects are
// sent to clients automatically.
//
// # The flow of a tick
//
//	Initialization    systems added or changed since the last tick take effect
//	EarlyUpdate       transport.poll: joins, leaves, acknowledgements, messages, in arrival order
//	FixedUpdate       the simulation, 0..n fixed steps
//	PreUpdate         preparations for Update
//	Update            game logic; the default stage of systems and RPCs
//	PreLateUpdate     last adjustments, then netvar.snapshot captures the edits
//	PostLateUpdate    bookkeeping, then transport.flush: one batch per client
//
// External events never drive game state. They wait in bounded queues, and the tick takes them from
// there at a named stage. All code of a room therefore runs on one goroutine, and needs no lock.
//
// # Writing a game
//
// A [Game] names a [Schema] and opens a [Room]. The schema's descriptors, made by [NewClass],
// [NewRPC], [NewCall] and [NewInput], are package values that the server, the clients, the bots and
// the tests share. Code that changes a room needs a [*Tick], which is valid only while the function
// that received it runs.
//
// The documentation of [Class] lists the types of fields of states and messages, and their tags,
// such as net:"quant=1/256".
//
// Package app turns a Game into a server's main function. Package client is the client for players,
// package netlooptest runs tests in memory and virtual time, and package loadtest runs many clients
// at once.
package netloop
