// Package arena is a small real game: ships thrust, turn and shoot among
// drifting rocks, collect pickups and talk. It is what cmd/server serves, and
// what the load client plays.
//
// It is written against netloop's public packages only, in the order in which a
// tick touches it:
//
//	schema.go  what server and clients share: classes, messages, calls
//	arena.go   Open: which code runs at which stage
//	ship.go    FixedUpdate: inputs, steering and flight, as plain functions of values
//	shot.go    FixedUpdate: what a shot hits of what its player saw, and its beam
//	rock.go    FixedUpdate: drifting rocks
//	pickup.go  PreUpdate: what ships collect
//	chat.go    Update: chat and standings
//	play.go    a player's client: what it predicts, and what it draws in between
package arena
