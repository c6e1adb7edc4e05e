// Package bot plays the arena for load tests: it flies after pickups, avoids rocks, shoots at the
// nearest ship in range, chats and reads the standings.
//
// The flow:
//
//	Watch    keeps lists of the existing ships, rocks and pickups
//	Said     counts the chat of others
//	control  the input of each fixed step; it decides ten times a second (pilot.go)
//	look     measures the delays that a player notices, in each drawn frame (feel.go)
//	Calls    asks for the standings, twice a second, on the load test's schedule
//
// A pilot's decisions depend only on its view and on the random numbers of its Meter. It uses only
// the public packages, as a game author's own bot would.
package bot
