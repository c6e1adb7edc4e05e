//go:build !linux

package clock

// newWaiter returns what this system waits with: there is no timerfd.
func newWaiter() waiter { return timers{} }
