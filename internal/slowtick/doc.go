// Package slowtick records ticks in detail: the last ones, and the worst of the last hour.
// Histograms show that ticks were slow; these records show which, when, and which system was the
// cause.
//
// The flow:
//
//	goroutine of the ticks   Observe(record, facts) after each tick
//	HTTP goroutines          Last(), Worst(): copies, fit for JSON
//
// Observe allocates no memory and never waits: a reader locks one record at a time, and a tick that
// finds a record locked writes into the next one.
package slowtick
