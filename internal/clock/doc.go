// Package clock provides the clocks and waits that the core receives as values. It is the only
// package of the core that reads time.
//
//	System   the machine: monotonic since its creation, with accurate waits
//	Virtual  for tests and simulations: advances only when it is set
//	Sync     a client's estimate of the server's monotonic clock
package clock
