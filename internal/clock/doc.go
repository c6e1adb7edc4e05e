// Package clock holds the clocks and waits that the core is handed as values.
// It is the only package of the core that reads time.
//
//	System   the machine: monotonic since it was made, and accurate waits
//	Virtual  for tests and simulations: stands still until it is moved
//	Sync     a client's estimate of the server's monotonic clock
package clock
