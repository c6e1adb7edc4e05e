// Package watchdog notices a tick that does not return, from outside of it, and a hook of
// the game that brings the room to its end.
//
// The flow:
//
//	goroutine of the ticks   Adopt(), then for each tick Begin, Stage ..., End
//	                         for each hook BeginHook, End
//	goroutine that watches   Check(now), now and then; Dump() when it reports a hang
//	anybody                  Err()
//
// The goroutine of the ticks pays a few atomic stores a tick. The package reads no clock
// and starts no goroutine.
package watchdog
