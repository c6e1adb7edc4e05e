//go:build !linux

package clock

// newWaiter returns the waiter of this system, which has no timerfd.
func newWaiter() waiter { return timers{} }
