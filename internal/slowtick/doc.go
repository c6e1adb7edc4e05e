// Package slowtick records ticks in detail: the newest ticks, and the slowest ticks of the last
// hour. Histograms show that ticks were slow. These records show which ticks were slow, when they
// ran, and which system was the cause.
//
// The flow:
//
//	goroutine of the ticks   Observe(record, facts) after each tick
//	HTTP goroutines          Last(), Worst(): copies, fit for JSON
//
// Observe allocates no memory and never waits. A reader locks one record at a time; a tick that
// finds a record locked writes into the next record.
package slowtick
