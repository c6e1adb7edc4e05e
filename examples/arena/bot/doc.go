// Package bot plays the arena for load tests: it flies after pickups, keeps away from
// rocks, shoots at whoever is ahead, chats and looks at the standings.
//
// The flow:
//
//	Watch    keeps lists of the ships, rocks and pickups that exist
//	Said     hears what others say
//	control  the input of each fixed step; it decides ten times a second (pilot.go)
//	look     what the pilot feels, in each frame as it is drawn (feel.go)
//	Calls    asks for the standings, twice a second, on the load test's schedule
//
// A pilot's decisions depend on what it sees and on the random numbers of its Meter
// alone. It is written only against the public packages, as a game author's own bot
// would be.
package bot
