// Package app is the command line of a dedicated server, for any game. A main function only calls
// [Main] with its game.
//
//	func main() { app.Main(arena.New()) }
//
// # The flow
//
//	settings   every field of the server's options and of the game's Config
//	           becomes one setting: a flag, an environment variable, a file key
//	load       file, environment and flags are merged; the last one wins, and
//	           unknown names are refused with the nearest name that exists
//	serve      the game opens, the ports are opened, the addresses and the stage
//	           table are printed to stdout, the log to stderr
//	replay     runs a recording of --record again, and compares every tick
//	doctor     checks the game, the machine and the settings, and prints remedies
//	inspect    the admin listener of a running server is shown in this terminal
//	reload     SIGHUP: the file is read again, and the log level takes effect
//	end        SIGINT, SIGTERM or --for: clients are told, the game saves, exit 0
//
// # The game's own configuration
//
// A game that has a method Config() any returns a pointer to a struct from it.
// Each exported field is a setting named after the game's schema: field Rocks of
// schema "arena" is --arena.rocks, NETLOOP_ARENA_ROCKS and, in the file,
//
//	arena:
//	  rocks: 250
//
// The field's value is its default, and the setting is stored before the game's Open is called.
// Fields are booleans, integers, floats, strings, durations (time.Duration), or types that
// implement encoding.TextUnmarshaler. Tags:
//
//	name:"rocks"              the name; without it the field's, as in max-speed
//	help:"rocks, 0 to 2000"   the line in --help: name the unit and the range
//	default:"100"             the default of a field that is zero when Config returns it
//
// Open checks ranges and returns a netloop.ConfigError.
//
// # Exit status
//
// 0: the server ran and ended when it was told to. 1: it failed while it ran, or a second signal
// cut its end short, or the doctor found a problem. 2: it never ran, because of the command line,
// the environment, the file, a port, or the game's Open; one line on stderr names the setting to
// change.
package app
