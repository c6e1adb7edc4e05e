// Package arena is a small real game: ships thrust, turn and shoot among drifting rocks, collect
// pickups and chat. cmd/server serves it, and the load client plays it.
//
// It uses only netloop's public packages. Its files, in the order in which a tick uses them:
//
//	schema.go  shared by server and clients: classes, messages, calls
//	arena.go   Open: the code of each stage
//	ship.go    FixedUpdate: inputs, steering and flight, as plain functions of values
//	shot.go    FixedUpdate: hits in the shooting player's view, and the beam of a shot
//	rock.go    FixedUpdate: drifting rocks
//	pickup.go  PreUpdate: the collection of pickups by ships
//	chat.go    Update: chat and standings
//	play.go    a player's client: prediction and interpolation
package arena
