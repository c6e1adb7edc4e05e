// Package ticks is the exact account of a server's ticks that the admin listener serves at /ticks
// and that a load client reads before and after its measured window.
//
// The flow:
//
//	tick goroutine                admin listener             load client
//	Histogram.Record      ──▶     Snapshot, as JSON   ──▶    Decode (before, after)
//	                                                         after.Sub(before): the window alone
//	                                                         Percentile, Max, RateHz
//
// All values of a Snapshot only ever grow while the server lives, so the difference of two is
// exact: no sample is lost to scraping, averaging or a sliding window. The histograms are HDR
// histograms (Gil Tene) of microseconds from 1 µs to 60 s with three significant digits: two values
// within 0.1 % of each other may share a bucket.
//
// The package is pure. It reads no clock, holds no lock and starts no goroutine.
package ticks
