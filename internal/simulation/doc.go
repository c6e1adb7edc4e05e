// Package simulation plays whole servers from seeds: rooms, clients, networks and troubles, all
// features at once, in virtual time and on one goroutine, or in real time over real carriers. It
// has tests alone.
//
//	seed ─▶ draw ─▶ Story ─▶ play ─▶ facts ─▶ checks ─▶ finding ─▶ shrink ─▶ a shorter Story
//
//	story     events with times: draw_test.go draws them, actions_test.go has their kinds
//	play      play_test.go; the game is game_test.go, the program of a client bot_test.go
//	checks    check_*_test.go, one file for each promise
//	shrink    shrink_test.go
//	world     world_test.go: the virtual one; real_*_test.go: a server on loopback ports
//
// docs/SIMULATION.md describes the ranges, the promises and the commands.
package simulation
