// Package metrics provides a server's measurements: Prometheus series for operators, and the exact
// account of ticks (package ticks) for load tests.
//
// The measurements are one table (table.go): a row names a family, describes it, and gives the
// source of its values (source.go). The flow:
//
//	tick goroutine     ObserveTick(record): histograms, HDR counts, the account
//	                   Report(room): the room's plain numbers, four times a second
//	any goroutine      Add to a family that is counted into; ObserveFlushLag
//	scrape             the Server's atomics and the account, then all series are read
//
// One *Metrics is one prometheus.Collector. It has a registry of its own, so that two servers in a
// process never collide, and is also in the caller's registry if one is given.
//
// Rules of every series here: prefix netloop_, base units (seconds, bytes), and bounded label sets.
// No series is labelled by client: one histogram per client would take 1.2 KB each without value to
// an operator. Labels from a game's code (systems, methods) are bounded by a named constant, and
// label sets beyond it are counted in netloop_metrics_series_refused_total.
package metrics
