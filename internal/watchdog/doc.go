// Package watchdog detects from outside a tick that does not return, or a hook of the game at the
// end of the room.
//
// The flow:
//
//	goroutine of the ticks   SetGoroutine(), then for each tick Begin, Stage ..., End
//	                         for each hook BeginHook, End
//	watching goroutine       Check(now), at intervals; Dump() when it reports a hang
//	any goroutine            Err()
//
// It costs the goroutine of the ticks a few atomic stores a tick. The package reads no clock and
// starts no goroutine.
package watchdog
