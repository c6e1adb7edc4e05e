// Package slowtick remembers ticks in detail: the last ones, and the worst of the last hour.
// Histograms say that ticks were slow; these records say which, when, and whose fault it was.
//
// The flow:
//
//	goroutine of the ticks   Observe(record, facts) after each tick
//	HTTP goroutines          Last(), Worst(): copies, fit for JSON
//
// Observe allocates nothing and never waits: a reader locks one record at a time, and a tick
// that meets it there writes into the next one.
package slowtick
