// Package room is the engine of a room: one loop, one world of replicated objects, one queue of
// messages, and its clients. It has no access to the types of a game: it calls a [Game], which
// package netloop implements by closures over the room's only tick object.
//
// A [Room] is the tick (tick.go) over its parts. Each part is a struct that owns its fields and
// reads the room's core (core.go: configuration, time, world, clients):
//
//	Admission      admit.go       who may join; seats and tickets are in package seats
//	connections    connections.go clients join, are dropped, resume and leave
//	requests       poll.go        digests and full states that clients ask for
//	Messages       dispatch.go    the path of a message: queue, handler, answer
//	               payloads.go    the last messages of a method, while somebody looks
//	Mailbox        mail.go        posted messages, and messages between rooms
//	Async          work.go        work on other goroutines, and its results
//	Inputs         inputs.go      inputs by fixed step; viewcheck.go checks the views they carry
//	spectatorFeed  spectatorfeed.go  spectators, with and without a delay
//	Load           overload.go    the level of overload
//	Sleep          sleep.go       whether the next ticks have any work to do
//	Questions      ask.go         inspection by other goroutines
//	Commands       commands.go    commands of operators
//	Stats, Faults  report.go      the cost of a tick, faults of systems
//	Supervisor     supervise.go   the room's goroutine
//	Shutdown       finish.go      the end of the room
//
// source.go is the origin of a tick's outside facts: the network, or a recording. run.go paces the
// ticks.
package room
