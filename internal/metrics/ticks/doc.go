// Package ticks is the exact account of a server's ticks. The admin listener serves it at /ticks;
// a load client reads it before and after its measured window.
//
// The flow:
//
//	tick goroutine                admin listener             load client
//	Histogram.Record      ──▶     Snapshot, as JSON   ──▶    Decode (before, after)
//	                                                         after.Sub(before): the window alone
//	                                                         Percentile, Max, RateHz
//
// The values of a Snapshot never decrease while the server runs, so the difference of two
// snapshots is exact: no sample is lost to scraping, averaging or a sliding window. The histograms
// are HDR histograms (Gil Tene) of microseconds from 1 µs to 60 s with three significant digits:
// two values within 0.1 % of each other may share a bucket.
//
// The package is pure. It reads no clock, holds no lock and starts no goroutine.
package ticks
